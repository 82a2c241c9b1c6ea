"""What a caller may give of a `dd` manager, and what is told otherwise."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.interchange.faults import InterchangeError
from mtbdd.language.syntax import ModelType
from mtbdd.manager import Manager, Node
from mtbdd.transfer import BACK_ENDS, is_manager, is_node, manager_names

Part = tuple[float, Node]

_OVER = 1e-5  # probabilities may add up to this much more than 1: they are often given rounded


def fault(what: str, message: str) -> InterchangeError:
    """Return an error that names the argument."""
    return InterchangeError(f"from_dd: {what}: {message}")


@dataclass(frozen=True)
class DdVariables:
    """A caller's manager and the variables in it that stand for states, in its order.

    Attributes
    ----------
    bdd : dd manager
    rows, columns : tuple of str
        Bit by bit, from the top of the manager's order on.
    """

    bdd: Any
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def ours(self, manager: Manager) -> dict[str, str]:
        """Return the names of the same bits in one of our managers."""
        return manager_names(manager, self.rows, self.columns)

    def check(self, node: Any, what: str, rows_only: bool = False) -> None:
        """Refuse what is no function of the variables."""
        if not is_node(self.bdd, node):
            raise fault(what, f"expected a function of the given manager, got {_told(node)}")
        allowed = set(self.rows) if rows_only else {*self.rows, *self.columns}
        if stray := sorted(set(self.bdd.support(node)) - allowed):
            known = "row variables" if rows_only else "row and column variables"
            raise fault(what, f"expected a function of {known} alone, got one that depends on {stray[0]!r}")

    def depends_on_columns(self, node: Node) -> bool:
        """Whether a function depends on column variables."""
        return not set(self.columns).isdisjoint(self.bdd.support(node))


def check_type(given: Any) -> ModelType:
    """Return the kind of model."""
    kinds = {kind.value: kind for kind in (ModelType.DTMC, ModelType.CTMC, ModelType.MDP)}
    if not isinstance(given, str) or given not in kinds:
        raise fault("type", f"expected one of {', '.join(kinds)}, got {given!r}")
    return kinds[given]


def check_variables(bdd: Any, rows: Any, columns: Any) -> DdVariables:
    """Return the variables of states, in the manager's order of the row variables."""
    if not is_manager(bdd):
        raise fault("bdd", f"expected a manager of {' or '.join(BACK_ENDS)}, got {_told(bdd)}")
    declared = set(bdd.vars)
    seen: dict[str, str] = {}
    for what, given in (("rows", rows), ("columns", columns)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise fault(what, f"expected a list of names of variables, got {_told(given)}")
        for name in given:
            if not isinstance(name, str) or name not in declared:
                raise fault(what, f"expected names of the manager's variables, got {name!r}; declare it")
            if name in seen:
                raise fault(what, f"expected every variable once, got {name!r} again, after `{seen[name]}`")
            seen[name] = what
    if len(rows) != len(columns):
        raise fault(
            "columns",
            f"expected as many as rows, one for each, got {len(rows)} rows and {len(columns)} columns",
        )
    if not rows:
        raise fault("rows", "expected at least one variable, got none")
    pairs = sorted(zip(rows, columns, strict=True), key=lambda pair: int(bdd.level_of_var(pair[0])))
    return DdVariables(bdd, tuple(row for row, _ in pairs), tuple(column for _, column in pairs))


def check_actions(parts: Any, kind: ModelType) -> dict[str | None, Any]:
    """Return the parts by action: of a chain one entry, without a name."""
    if kind is not ModelType.MDP:
        if isinstance(parts, Mapping):
            raise fault(
                "parts", f"expected a list of (number, set) for a {kind.value}, got a mapping; use type='mdp'"
            )
        return {None: parts}
    if not isinstance(parts, Mapping) or not parts:
        raise fault(
            "parts", f"expected a mapping of actions to lists of (number, set) for an mdp, got {_told(parts)}"
        )
    for action in parts:
        if not isinstance(action, str) or not action.isprintable() or not action:
            raise fault("parts", f"expected names of actions, got {action!r}")
    return dict(parts)


def check_parts(
    names: DdVariables, parts: Any, kind: ModelType | None, what: str
) -> list[tuple[float, Node]]:
    """Return numbers and sets of transitions; of rewards if there is no kind of model."""
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise fault(what, f"expected a list of (number, set), got {_told(parts)}")
    found = []
    for i, part in enumerate(parts):
        here = f"{what}[{i}]"
        if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
            raise fault(here, f"expected a pair of a number and a set, got {_told(part)}")
        value, node = part
        number = _number(value, here)
        if kind is not None and number < 0:
            raise fault(here, f"expected a probability or a rate from 0 on, got {number}")
        if kind not in (None, ModelType.CTMC) and number > 1 + _OVER:
            raise fault(here, f"expected a probability of at most 1, got {number}; use type='ctmc' for rates")
        names.check(node, here)
        if number != 0:
            found.append((number, node))
    return found


def _number(value: Any, what: str) -> float:
    """Return a finite double."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise fault(what, f"expected a number first, got {_told(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise fault(what, f"expected a finite number, got {value}")
    return number


def check_labels(given: Any, what: str = "labels") -> None:
    """Refuse names that properties could not ask for."""
    if not isinstance(given, Mapping):
        raise fault(what, f"expected a mapping of names, got {_told(given)}")
    for name in given:
        if not isinstance(name, str) or not name or '"' in name or not name.isprintable():
            raise fault(what, f"expected names without quotes, got {name!r}")
        if what == "labels" and name in ("init", "deadlock"):
            raise fault(
                what, f"expected names other than init and deadlock, which every model has, got {name!r}"
            )


def _told(thing: Any) -> str:
    """Return what something is, shortly."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")

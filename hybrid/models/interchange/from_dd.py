"""Models from a caller's own decision diagrams: sets of `dd`, one a probability."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.base.errors import InterchangeError
from hybrid.base.option_types import ModelTypeName, PackageName
from hybrid.models.interchange.explicit_model import divided_rows, row_sums
from hybrid.models.model import Model
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.diagram_parts import DiagramReward
from mtbdd.build.model_from_diagrams import model_from_diagrams, variable_of_range
from mtbdd.build.reachable import reachable_states
from mtbdd.diagrams.arithmetic import multiply, sum_over
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import BACK_ENDS, SymbolicMatrix, is_manager, is_node, manager_names, transferred
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.errors import BuildError, format_state
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import index_states

Part = tuple[float, Node]
_OVER = 1e-5  # probabilities may add up to this much more than 1: they are often given rounded


def fault(what: str, message: str) -> InterchangeError:
    """Return an error that names the argument."""
    return InterchangeError(f"from_dd: {what}: {message}")


@dataclass(frozen=True)
class DdVariables:
    """A caller's manager and the variables in it that stand for states, in its order."""

    bdd: Any
    # rows and columns: bit by bit, from the top of the manager's order on
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
        """Return whether a function depends on column variables."""
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


def from_dd(
    bdd: Any,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    parts: Sequence[Part] | Mapping[str, Sequence[Part]],
    type: ModelTypeName = "dtmc",
    initial: Node,
    labels: Mapping[str, Node] | None = None,
    rewards: Mapping[str, Sequence[Part]] | None = None,
    fix_deadlocks: bool = True,
    package: PackageName = "auto",
) -> Model:
    """Return the model whose transitions are sets of a caller's `dd` manager.

    Parameters
    ----------
    bdd : dd manager
        Of `dd.cudd` or `dd.autoref`, with any order of its variables; it is only read.
    rows, columns : sequence of str
        Its variables for the bits of a state and, at the same place, of the next state.
    parts : sequence of (float, node), or mapping of str to such sequences
        Probabilities, in a CTMC rates, each with the transitions that have it, a function of row and column
        variables. Where parts overlap, they add up. For an MDP, every action's parts by its name.
    type : {"dtmc", "ctmc", "mdp"}
    initial : node
        The initial states, a function of row variables. What they do not lead to is left out.
    labels : mapping of str to node, optional
        Sets of states by name, functions of row variables.
    rewards : mapping of str to sequence of (float, node), optional
        Reward structures by name. A function of row variables is earned in its states, one that depends on
        column variables by its transitions; parts that overlap add up.
    fix_deadlocks : bool
        Give states without a transition a loop, with a warning; otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        Back end of the model's own diagrams.

    Returns
    -------
    Model
        With a boolean variable a row variable, of its name, in the order of the caller's manager: that
        order numbers the states.

    Raises
    ------
    InterchangeError
        Anything that makes no model: names that the manager does not have, sets of other variables, numbers
        that are no probabilities, rows that do not add up to 1 (within 1e-5; they are divided by their sums).

    Notes
    -----
    Time: a call of the package for every node of every part, the search for reachable states, and the
    sums of the rows as diagrams; nothing is done a state or a transition.
    """
    started = time.perf_counter()
    kind = check_type(type)
    names = check_variables(bdd, rows, columns)
    actions: dict[str | None, list[tuple[float, Node]]] = {
        action: check_parts(names, own, kind, "parts" if action is None else f"parts[{action!r}]")
        for action, own in check_actions(parts, kind).items()
    }
    check_labels(labels or {})
    check_labels(rewards or {}, "rewards")
    variables = [variable_of_range(name, 0, 1, True, "from_dd") for name in names.rows]
    reader = _DiagramReader(names, Encoding(variables, package))
    encoding, manager = reader.encoding, reader.encoding.manager
    start = reader.states(initial, "initial")
    if start == manager.false:
        raise fault("initial", "expected at least one state, got the empty set")
    label_sets = {name: reader.states(node, f"labels[{name!r}]") for name, node in (labels or {}).items()}
    offered = {action: reader.function(own, encoding) for action, own in actions.items()}
    relations = [Relation.whole(manager, part.support, i) for i, part in enumerate(offered.values())]
    found = reachable_states(encoding, start, relations)
    try:
        index_states(manager, found)
    except OverflowError as error:
        raise fault("parts", str(error)) from None
    sources = [relation.sources & found for relation in relations]
    deadlocks = found & ~manager.disjunction(sources)
    if deadlocks != manager.false and not fix_deadlocks:
        state = format_state(encoding.pick(deadlocks))
        raise fault(
            "parts",
            f"expected a transition from every state, got none from {state}; add one, or fix_deadlocks",
        )
    layers, exits = _layers(encoding, kind, offered, sources, found, deadlocks)
    structures = [
        reader.reward(name, own, layers, found & ~deadlocks) for name, own in (rewards or {}).items()
    ]
    try:
        model = model_from_diagrams(
            encoding,
            variables,
            kind,
            layers,
            start,
            found,
            exits=exits,
            labels={name: states & found for name, states in label_sets.items()},
            rewards=structures,
            deadlocks=deadlocks,
            source="from_dd",
            started=started,
        )
        return Model.of(model)
    except BuildError as error:
        raise fault("parts", str(error)) from None


def _layers(
    encoding: Encoding,
    kind: ModelType,
    offered: Mapping[str | None, Partition],
    sources: Sequence[Node],
    found: Node,
    deadlocks: Node,
) -> tuple[list[ChoiceLayer], SymbolicMatrix | None]:
    """Return a layer an action, deadlocks with a loop in the first one, and the exit rates of a CTMC."""
    manager = encoding.manager
    layers: list[ChoiceLayer] = []
    exits = None
    for number, ((action, rates), own) in enumerate(zip(offered.items(), sources, strict=True)):
        parts = [ChoicePart(action, own, None)]
        if number == 0 and deadlocks != manager.false:
            loops = deadlocks & manager.equal_bits(range(encoding.n_bits))
            rates = rates.plus(Partition(manager, {1.0: loops}))
            parts.append(ChoicePart(None, deadlocks, None))
            own = own | deadlocks
        matrix = SymbolicMatrix.from_partition(rates).only(found)
        sums = row_sums(matrix)
        if kind is ModelType.CTMC:
            exits = sums
        else:
            matrix = divided_rows(
                encoding, matrix, sums, "from_dd" if action is None else f"from_dd: action {action!r}"
            )
        parts = [part for part in parts if part.states != manager.false]
        layers.append(ChoiceLayer(matrix, own, tuple(parts)))
    return layers, exits


@dataclass(frozen=True)
class _DiagramReader:
    """Reads a caller's sets into the diagrams of an encoding."""

    names: DdVariables
    encoding: Encoding

    def states(self, node: Any, what: str) -> Node:
        """Return a set of states."""
        self.names.check(node, what, rows_only=True)
        return self._moved(node)

    def function(self, parts: Sequence[tuple[float, Node]], encoding: Encoding) -> Partition:
        """Return the sum of numbers over sets."""
        manager = encoding.manager
        return Partition.total(manager, [Partition(manager, {v: self._moved(node)}) for v, node in parts])

    def reward(
        self, name: str, given: Sequence[Part], layers: Sequence[ChoiceLayer], earning: Node
    ) -> DiagramReward:
        """Return a reward structure; loops that deadlocks got earn nothing of transitions."""
        what = f"rewards[{name!r}]"
        states: list[tuple[float, Node]] = []
        moves: list[tuple[float, Node]] = []
        for value, node in check_parts(self.names, given, None, what):
            (moves if self.names.depends_on_columns(node) else states).append((value, node))
        own = SymbolicMatrix.from_partition(self.function(states, self.encoding), unite=False)
        choices: list[SymbolicMatrix | None] = [None] * len(layers)
        if moves:
            earned = SymbolicMatrix.from_partition(self.function(moves, self.encoding), unite=False)
            columns = self.encoding.manager.columns
            choices = [sum_over(multiply(layer.matrix, earned.only(earning)), columns) for layer in layers]
        terms = [own, *(c for c in choices if c is not None)]
        if any(term.units == float("inf") for term in terms):
            raise fault(
                what,
                "expected rewards of one sign where they are added up, got both, which may cancel so far "
                "that nothing is known of the sum; give them disjoint sets, or two structures",
            )
        return DiagramReward(name, own if states else None, tuple(choices))

    def _moved(self, node: Any) -> Node:
        manager = self.encoding.manager
        return transferred(self.names.bdd, node, manager.bdd, self.names.ours(manager))

"""Declared names of a model: each declared once, and what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mtbdd.language.errors import FaultCollector
from mtbdd.language.model_syntax import ModelSyntax, Variable
from mtbdd.language.syntax import Position, Type
from mtbdd.language.walk import introduced_actions

# The order in which definitions that mention one another can be worked out.

_MOST_CYCLES = 20


def dependency_order(graph: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Sort names so that each comes after those it depends on.

    Parameters
    ----------
    graph : mapping of str to iterable of str
        What each name depends on; names that are no key are passed over.

    Returns
    -------
    order : list of str
        Every key that is not on a cycle nor depends on one.
    cycles : list of list of str
        The cycles met, each without its first name repeated; at most 20, since all of them together may be
        longer than the graph by far.

    Notes
    -----
    Depth-first search with its own stack.  Time: O(names + dependencies).
    """
    order: list[str] = []
    cycles: list[list[str]] = []
    state: dict[str, str] = {}  # "open" while below the search, then "good" or "bad"
    for root in graph:
        if root in state:
            continue
        path = [root]
        pending = [iter(graph[root])]
        state[root] = "open"
        bad = {root: False}
        while path:
            name = path[-1]
            for below in pending[-1]:
                if below not in graph:
                    continue
                known = state.get(below)
                if known is None:
                    state[below] = "open"
                    bad[below] = False
                    path.append(below)
                    pending.append(iter(graph[below]))
                    break
                if known == "open":
                    if len(cycles) < _MOST_CYCLES:
                        cycles.append(path[path.index(below) :])
                    bad[name] = True
                elif known == "bad":
                    bad[name] = True
            else:
                path.pop()
                pending.pop()
                state[name] = "bad" if bad[name] else "good"
                if bad[name]:
                    if path:
                        bad[path[-1]] = True
                else:
                    order.append(name)
    return order, cycles


BUILT_IN_LABELS = frozenset(("init", "deadlock"))


@dataclass
class DeclaredNames:
    """The names that expressions may mention, and who may write the variables.

    Attributes
    ----------
    types : dict of str to (Type or None)
        Of constants and variables; formulas have None until they are worked out.
    owners : dict of str to (str or None)
        The module of each variable; None for a global one.
    actions : frozenset of str
        The actions of all commands, and those that system blocks introduce by renaming.
    """

    types: dict[str, Type | None] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()


def report_repeated(items: Iterable[tuple[str, str, Position]], faults: FaultCollector) -> None:
    """Note a fault for each name after its first declaration.

    Parameters
    ----------
    items : iterable of (str, str, Position)
        Name, kind of declaration for messages, place.
    faults : FaultCollector
        Takes the faults.
    """
    seen: dict[str, tuple[str, Position]] = {}
    for name, kind, position in items:
        if name in seen:
            first_kind, first = seen[name]
            faults.add(
                position,
                f"{kind} '{name}' is declared a second time, first as {first_kind} at "
                f"{first.line}:{first.column}; rename one of them",
            )
        else:
            seen[name] = (kind, position)


def check_names(syntax: ModelSyntax, faults: FaultCollector) -> DeclaredNames:
    """Gather a model's names and note those declared twice.

    Parameters
    ----------
    syntax : ModelSyntax
        The model.
    faults : FaultCollector
        Takes the faults.

    Returns
    -------
    DeclaredNames
        Of a name declared twice the first declaration counts.
    """
    variables: list[tuple[Variable, str | None]] = [(v, None) for v in syntax.variables]
    variables += [(v, module.name) for module in syntax.modules for v in module.variables]
    named: list[tuple[str, str, Position]] = []
    named += [(c.name, "constant", c.position) for c in syntax.constants]
    named += [(f.name, "formula", f.position) for f in syntax.formulas]
    named += [(v.name, "variable", v.position) for v, _ in variables]
    report_repeated(named, faults)
    report_repeated([(m.name, "module", m.position) for m in syntax.modules], faults)
    report_repeated([(label.name, "label", label.position) for label in syntax.labels], faults)
    report_repeated(
        [(r.name, "reward structure", r.position) for r in syntax.rewards if r.name is not None], faults
    )
    for label in syntax.labels:
        if label.name in BUILT_IN_LABELS:
            faults.add(label.position, f'the label "{label.name}" is built in; choose another name')

    names = DeclaredNames(
        actions=introduced_actions(syntax.systems).union(
            command.action
            for module in syntax.modules
            for command in module.commands
            if command.action is not None
        )
    )
    for constant in syntax.constants:
        names.types.setdefault(constant.name, constant.type)
    for formula in syntax.formulas:
        names.types.setdefault(formula.name, None)
    for variable, owner in variables:
        names.types.setdefault(variable.name, Type.BOOL if variable.is_bool else Type.INT)
        names.owners.setdefault(variable.name, owner)
    return names

"""Variable orders: the model's own, its modules reversed, and a heuristic that draws variables together.

The size of a decision diagram depends on the order of its variables, and no polynomial
algorithm finds the best one.  FORCE (Aloul, Markov and Sakallah, 2003) places every
variable at the centre of gravity of the commands that mention it and repeats; a command here is
a hyperedge over the variables of its guard, weights and assignments, and a synchronised action ties the
variables that its commands change.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtbdd.language.model_syntax import Command, ResolvedModel, ResolvedVariable
from mtbdd.language.walk import expression_variables

Order = str | tuple[str, ...]
"""The name of an order, or the names of all variables in theirs."""

ORDERS = ("model", "reversed", "force")
_ROUNDS = 100


def order_variables(model: ResolvedModel, order: Order = "model") -> tuple[ResolvedVariable, ...]:
    """Return the variables in the order in which their bits are laid out.

    Parameters
    ----------
    model : ResolvedModel
    order : {"model", "reversed", "force"}, or tuple of str
        "model" is the order of the text (globals, then the modules'), as PRISM has it; "reversed" has the
        last module first (values that one module copies from a later one then lie above the copies);
        "force" is the heuristic's, taken only if its total span is smaller; a tuple has the names of all
        variables as they follow each other.

    Raises
    ------
    ValueError
        Another name, or names that are not those of the variables, each once.

    Notes
    -----
    Time: O(rounds * (variables log variables + mentions)).
    """
    names = [v.name for v in model.variables]
    if isinstance(order, tuple):
        if sorted(order) != sorted(names):
            raise ValueError(f"order: expected the variables {', '.join(names)}, each once, got {order!r}")
        names = list(order)
    elif order not in ORDERS:
        raise ValueError(f"order: expected one of {', '.join(ORDERS)}, got {order!r}")
    if order == "reversed":
        modules = [[v.name for v in module.variables] for module in reversed(model.modules)]
        local = [name for own in modules for name in own]
        names = [name for name in names if name not in set(local)] + local
    if order == "force":
        edges = _hyperedges(model)
        best = force_order(names, edges)
        if total_span(best, edges) < total_span(names, edges):
            names = best
    by_name = {v.name: v for v in model.variables}
    return tuple(by_name[n] for n in names)


def total_span(names: Sequence[str], edges: Sequence[frozenset[str]]) -> int:
    """Return the sum over all hyperedges of the distance from their first to their last variable."""
    place = {name: i for i, name in enumerate(names)}
    spans = ([place[n] for n in edge] for edge in edges)
    return sum(max(at) - min(at) for at in spans)


def force_order(names: Sequence[str], edges: Sequence[frozenset[str]]) -> list[str]:
    """Return the best order met while variables move to the centres of their edges, sets of names."""
    order = best = list(names)
    least = total_span(order, edges)
    for _ in range(_ROUNDS):
        place = {name: float(i) for i, name in enumerate(order)}
        pulls: dict[str, list[float]] = {name: [] for name in order}
        for edge in edges:
            centre = sum(place[n] for n in edge) / len(edge)
            for n in edge:
                pulls[n].append(centre)
        target = {n: sum(p) / len(p) if p else place[n] for n, p in pulls.items()}
        moved = sorted(order, key=lambda n: (target[n], place[n]))
        if moved == order:
            break
        order = moved
        span = total_span(order, edges)
        if span < least:
            best, least = order, span
    return best


def _hyperedges(model: ResolvedModel) -> list[frozenset[str]]:
    """Return the sets of variables that belong together."""
    edges = []
    actions: dict[str, set[str]] = {}
    for module in model.modules:
        for command in module.commands:
            mentioned, assigned = _mentions(command)
            edges.append(mentioned | assigned)
            if command.action is not None:
                actions.setdefault(command.action, set()).update(assigned)
    edges.extend(frozenset(names) for names in actions.values())
    return [edge for edge in edges if len(edge) > 1]


def _mentions(command: Command) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables that a command reads, and those it assigns."""
    read = set(expression_variables(command.guard))
    assigned = set()
    for update in command.updates:
        if update.weight is not None:
            read |= expression_variables(update.weight)
        for assignment in update.assignments:
            read |= expression_variables(assignment.expression)
            assigned.add(assignment.variable)
    return frozenset(read), frozenset(assigned)

"""Variable orders: the model's own, its modules reversed, and a heuristic that draws variables together.

The size of a decision diagram depends on the order of its variables, and no polynomial algorithm finds the
best one. FORCE (Aloul, Markov and Sakallah, 2003) places every variable at the centre of gravity of the
commands that mention it and repeats. A command here is a hyperedge over the variables of its guard, weights
and assignments. A synchronised action ties the variables that its commands change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from mtbdd.base.budget import check_budget
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.limits import Limits, current, raised
from mtbdd.language.syntax import Command, Position, ResolvedModel, ResolvedVariable
from mtbdd.language.walk import Interner

# The work of translating a model, held against the limits.

_ENTRY, _PAIR, _VALUE, _UPDATE = 0.01, 16.0, 50.0, 400.0
"""Microseconds, as a rule, that an entry of a table takes, a pair, a value distinguished, an update."""

_watch: ContextVar[Callable[[float], None] | None] = ContextVar("watch", default=None)


class EffortError(BuildError):
    """The limits do not suffice for a model's commands as diagrams."""


@contextmanager
def watched(watch: Callable[[float], None]) -> Iterator[None]:
    """Report to `watch`, in a block, the work about to be done: microseconds by counts, not by a clock.

    What it raises ends the work.
    """
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def _tell(microseconds: float) -> None:
    """Notify the observer."""
    watch = _watch.get()
    if watch is not None:
        watch(microseconds)


class Effort:
    """Counts the steps of a translation and refuses more than the limits allow.

    Counts, not times, decide: every machine refuses the same texts. `limits`: by default those that hold
    where it is made.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or current()
        self._tables = 0
        self._pairs = 0

    def table(self, steps: int, position: Position) -> None:
        """Count the entries of a table, once an operator.

        Raises BuildError: there are more than the limits allow, all tables together.
        """
        check_budget()
        self._tables += steps
        if self._tables > self.limits.table_steps:
            self._refuse(position, self._tables, "table_steps", "entries of tables")
        _tell(_ENTRY * steps)

    def pairs(self, count: int, position: Position) -> None:
        """Count pairs of values or of sets that are put together.

        Raises BuildError: there are more than the limits allow, all of them together.
        """
        self._pairs += count
        if self._pairs > self.limits.pair_steps:
            self._refuse(position, self._pairs, "pair_steps", "pairs of values")
        _tell(_PAIR * count)

    def updates(self, count: int) -> None:
        """Count the updates of a command."""
        _tell(_UPDATE * count)

    def values(self, count: int, position: Position) -> None:
        """Refuse an expression or a variable that takes too many values.

        Raises BuildError: there are more than the limits allow.
        """
        if count > self.limits.values:
            message = (
                f"expected at most {self.limits.values} values where they must be told apart, got {count}; "
                "give the variable a smaller range, compare it with constants only, or "
                f"{raised('values', count)}"
            )
            raise EffortError([Fault(position, message)])
        _tell(_VALUE * count)

    @staticmethod
    def _refuse(position: Position, count: int, name: str, what: str) -> None:
        message = (
            f"expected a model whose commands are worked out in fewer steps, got {count} {what} up to here; "
            f"give variables smaller ranges, split wide expressions, or {raised(name, 2 * count)}"
        )
        raise EffortError([Fault(position, message)])


Order = str | tuple[str, ...]
"""The name of an order, or the names of all variables in theirs."""

ORDERS = ("model", "reversed", "force")
_ROUNDS = 100


def order_variables(model: ResolvedModel, order: Order = "model") -> tuple[ResolvedVariable, ...]:
    """Return the variables in the order in which their bits are laid out.

    `order` ({"model", "reversed", "force"}, or tuple of str): "model" is the order of the text (globals, then
    the modules'), as PRISM has it; "reversed" has the last module first (values that one module copies from a
    later one then lie above the copies); "force" is the heuristic's, taken only if its total span is smaller;
    a tuple has the names of all variables as they follow each other. Raises ValueError: another name, or
    names that are not those of the variables, each once.

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
    mentions = Interner()
    for module in model.modules:
        for command in module.commands:
            mentioned, assigned = _mentions(command, mentions)
            edges.append(mentioned | assigned)
            if command.action is not None:
                actions.setdefault(command.action, set()).update(assigned)
    edges.extend(frozenset(names) for names in actions.values())
    return [edge for edge in edges if len(edge) > 1]


def _mentions(command: Command, known: Interner) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables that a command reads, and those it assigns."""
    read = set(known.names(command.guard))
    assigned = set()
    for update in command.updates:
        if update.weight is not None:
            read.update(known.names(update.weight))
        for assignment in update.assignments:
            read.update(known.names(assignment.expression))
            assigned.add(assignment.variable)
    return frozenset(read), frozenset(assigned)

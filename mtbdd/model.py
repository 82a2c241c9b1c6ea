"""Building the symbolic model: events, reachable states, checks, transition matrix.

The result holds everything later stages ask for: the transition matrix as an MTBDD and as
an offset-labelled MTBDD, sets of states for labels and expressions, reward vectors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mtbdd.assemble import assemble, enabled_choices
from mtbdd.convert import count_nonzeros, offset_label
from mtbdd.encoding import Encoding
from mtbdd.events import Event, Suspect, probability_suspects, translate_events
from mtbdd.expressions import ExpressionTranslator
from mtbdd.faults import BuildError, format_state
from mtbdd.language.errors import Fault
from mtbdd.language.syntax import Expression, ModelType, Position, ResolvedModel
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.nodes import TRUE, NodeTable, read_nodes
from mtbdd.offset import OffsetMTBDD
from mtbdd.order import order_variables
from mtbdd.partition import Partition
from mtbdd.reach import Transition, fixpoint, image
from mtbdd.states import StateIndex, expand_values, index_states
from mtbdd.vectors import expand, expand_sum

__all__ = ["SymbolicModel", "build_model"]


@dataclass(frozen=True)
class BuildStatistics:
    """What the symbolic build cost and produced."""

    seconds: float
    states: int
    transitions: int
    mtbdd_nodes: int
    terminals: int


class SymbolicModel:
    """A DTMC or CTMC as decision diagrams over its reachable states.

    Made by `build_model`.

    Attributes
    ----------
    source : ResolvedModel
        The checked model text.
    encoding : Encoding
        Variables, bits and the manager.
    initial, reachable, deadlocks : Node
        Sets over row bits; `deadlocks` are the states that were given a self-loop.
    matrix : SymbolicMatrix
        Rates (CTMC) or probabilities (DTMC) between reachable states.
    events : tuple of Event
        The commands as partitions by rate.
    relations : tuple of Transition
        The same as relations between states.
    translator : ExpressionTranslator
        Turns expressions over the variables into sets and partitions.
    warnings : tuple of str
        What the user should know about the build.
    """

    def __init__(
        self,
        source: ResolvedModel,
        encoding: Encoding,
        translator: ExpressionTranslator,
        events: Sequence[Event],
        relations: Sequence[Transition],
        initial: Node,
        reachable_states: Node,
        deadlocks: Node,
        choices: Partition | None,
        matrix: SymbolicMatrix,
        warnings: Sequence[str],
    ) -> None:
        self.source = source
        self.encoding = encoding
        self.manager = encoding.manager
        self.initial = initial
        self.reachable = reachable_states
        self.deadlocks = deadlocks
        self.matrix = matrix
        self.relations = tuple(relations)
        self.warnings = tuple(warnings)
        self.translator = translator
        self.events = tuple(events)
        self._choices = choices
        self.build_seconds = 0.0
        translator.labels.update(init=initial, deadlock=deadlocks)

    # ------------------------------------------------------------------ size

    @property
    def type(self) -> ModelType:
        """Kind of model."""
        return self.source.type

    @cached_property
    def index(self) -> StateIndex:
        """The reachable states in index order."""
        return index_states(self.manager, self.reachable)

    @property
    def n_states(self) -> int:
        """Number of reachable states."""
        return self.index.size

    @cached_property
    def n_transitions(self) -> int:
        """Number of non-zero matrix entries."""
        return count_nonzeros(self.transitions)

    @cached_property
    def _table(self) -> NodeTable:
        """The matrix's nodes."""
        return self.matrix.table()

    @cached_property
    def statistics(self) -> BuildStatistics:
        """Sizes as PRISM counts them: nodes include terminals, terminals include zero."""
        nodes, terminals = self.matrix.mtbdd_nodes(self._table)
        return BuildStatistics(self.build_seconds, self.n_states, self.n_transitions, nodes, terminals)

    # ------------------------------------------------------------------ matrices

    @cached_property
    def transitions(self) -> OffsetMTBDD:
        """The whole transition matrix, offset-labelled; self-loops included."""
        return offset_label(self.matrix, self.index, self.index, self._table)

    def submatrix(self, rows: StateIndex, columns: StateIndex, diagonal: bool = True) -> OffsetMTBDD:
        """Return the transitions from one set of states to another, numbered within those sets.

        Parameters
        ----------
        rows, columns : StateIndex
            Subsets of the reachable states.
        diagonal : bool
            Whether to keep entries from a state to itself.
        """
        entries = rows.states & self.manager.to_columns(columns.states)
        if not diagonal:
            entries = entries & ~self.manager.equal_bits(range(self.encoding.n_bits))
        return offset_label(self.matrix.only(entries), rows, columns)

    def self_loops(self, within: StateIndex) -> NDArray[np.float64]:
        """Return the diagonal of the transition matrix over a set, shape (within.size,)."""
        manager = self.manager
        diagonal = self.matrix.node & within.states & manager.equal_bits(range(self.encoding.n_bits))
        rows = SymbolicMatrix(manager, manager.exists(manager.columns, diagonal), self.matrix.terminals)
        return expand(rows, within)

    def exit_rates(self, within: StateIndex) -> NDArray[np.float64]:
        """Return the row sums of the transition matrix over a set, shape (within.size,).

        Summed symbolically over the events; self-loops count.
        """
        parts = [self.event_exits(event) for event in self.events]
        return expand_sum([*parts, Partition(self.manager, {1.0: self.deadlocks})], within)

    # ------------------------------------------------------------------ states

    def states(self, expression: Expression) -> Node:
        """Return the reachable states where a boolean expression holds."""
        return self.translator.states(expression) & self.reachable

    def indicator(self, states: Node, within: StateIndex | None = None) -> NDArray[np.bool_]:
        """Return membership of a set as a vector in the order of `within` (default: all states)."""
        index = within or self.index
        table = read_nodes(self.manager, states & index.states)
        return expand_values(index, table, lambda refs: refs == TRUE, np.bool_)

    def first(self, states: Node) -> dict[str, bool | int]:
        """Return one state of a non-empty set, by variable name."""
        return self.encoding.pick(states)

    def describe(
        self, indices: NDArray[np.int64], within: StateIndex | None = None
    ) -> list[dict[str, bool | int]]:
        """Return states as assignments, by index in `within` (default: all states)."""
        bits = (within or self.index).bits_at(np.asarray(indices, dtype=np.int64))
        found = []
        for row in bits:
            values: dict[str, bool | int] = {}
            for v in self.encoding.variables:
                number = 0
                for bit in v.bits:
                    number = 2 * number + int(row[bit])
                values[v.name] = v.decode(number)
            found.append(values)
        return found

    def event_exits(self, event: Event) -> Partition:
        """Return an event's total rate by state, divided by the number of choices in a DTMC."""
        exits = event.exits.only(self.reachable)
        if self._choices is None or all(count == 1 for count, _ in self._choices):
            return exits
        return exits.combine(self._choices, lambda rate, count: rate / count)


def build_model(
    source: ResolvedModel,
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: str = "model",
    progress: Callable[[str], None] | None = None,
) -> SymbolicModel:
    """Build the decision diagrams of a DTMC or CTMC.

    Parameters
    ----------
    source : ResolvedModel
        From `mtbdd.language.resolve`.
    fix_deadlocks : bool
        Give states without successors a self-loop (with a warning); otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        `dd` back end.
    order : {"model", "force"}
        Variable order, see `mtbdd.order.order_variables`.
    progress : callable, optional
        Called with a line of text at every stage.

    Returns
    -------
    SymbolicModel

    Raises
    ------
    BuildError
        Probabilities that do not add up to 1, updates that leave a range, negative or infinite
        rates, no initial state, or deadlocks that must not be: all faults found, each with its
        place in the text and a reachable state.  Also for models too large to be numbered.
    """
    try:
        return _build(source, fix_deadlocks, package, order, progress or (lambda text: None))
    except OverflowError as error:
        raise BuildError([_fault(source, str(error))]) from None
    except RecursionError:
        message = "expected expressions nested less deeply; split them with formulas"
        raise BuildError([_fault(source, message)]) from None


def _build(
    source: ResolvedModel, fix_deadlocks: bool, package: str, order: str, say: Callable[[str], None]
) -> SymbolicModel:
    """Build the model, stage by stage."""
    started = time.perf_counter()
    if source.type is ModelType.MDP:
        raise BuildError(
            [_fault(source, "MDPs are parsed but cannot be built yet: expected a dtmc or a ctmc")]
        )
    encoding = Encoding(order_variables(source, order), package)
    translator = ExpressionTranslator(encoding)
    say("translating commands")
    events = translate_events(source, translator)
    initial = _initial_states(source, encoding, translator)
    say("reachable states")
    manager = encoding.manager
    relations = [Transition.of(encoding, e.touched, e.rates.support) for e in events]
    relations = [t for t in relations if t.relation != manager.false]
    found = fixpoint(
        encoding,
        initial,
        relations,
        image,
        progress=lambda rounds: say(f"reachable states, round {rounds}"),
    )
    _refuse(encoding, found, _suspects(source, translator, events))
    choices = enabled_choices(events, found) if source.type is ModelType.DTMC and events else None
    deadlocks = found & ~manager.disjunction(e.exits.support for e in events)
    warnings = _deadlock_warnings(source, encoding, deadlocks, fix_deadlocks)
    say("transition matrix")
    matrix = assemble(encoding, events, found, deadlocks, choices)
    _refuse_infinite(source, encoding, matrix)
    model = SymbolicModel(
        source,
        encoding,
        translator,
        events,
        relations,
        initial,
        found,
        deadlocks,
        choices,
        matrix,
        warnings,
    )
    say("offset labels")
    _ = model.transitions
    model.build_seconds = time.perf_counter() - started
    return model


def _fault(source: ResolvedModel, message: str) -> Fault:
    return Fault(Position(source.file, 1, 1), message)


def _initial_states(source: ResolvedModel, encoding: Encoding, translator: ExpressionTranslator) -> Node:
    """Return the set of initial states: the variables' initial values, or `init ... endinit`."""
    if source.initial is None:
        return encoding.state({v.name: int(v.initial) for v in source.variables})
    states = translator.states(source.initial) & encoding.valid
    if states == encoding.manager.false:
        message = "no state satisfies init ... endinit: the model has no initial state"
        raise BuildError([Fault(source.initial.position, message)])
    return states


def _suspects(
    source: ResolvedModel, translator: ExpressionTranslator, events: Sequence[Event]
) -> list[Suspect]:
    """Gather everything that must not be reachable."""
    suspects = [s for event in events for s in event.suspects]
    if source.type is not ModelType.CTMC:
        suspects += probability_suspects(source, translator)
    return suspects


def _refuse(encoding: Encoding, found: Node, suspects: Sequence[Suspect]) -> None:
    """Raise for every suspect that is reachable, once a place and message."""
    faults: dict[tuple[Position, str], Fault] = {}
    for suspect in suspects:
        hit = suspect.states & found
        key = (suspect.position, suspect.message)
        if hit != encoding.manager.false and key not in faults:
            state = format_state(encoding.pick(hit))
            faults[key] = Fault(suspect.position, f"{suspect.message}, in reachable state {state}")
    if faults:
        raise BuildError(sorted(faults.values(), key=lambda f: (f.position.line, f.position.column)))


def _refuse_infinite(source: ResolvedModel, encoding: Encoding, matrix: SymbolicMatrix) -> None:
    """Raise for an infinite entry: finite rates may multiply or add up to more than a double holds."""
    for k in np.flatnonzero(~np.isfinite(matrix.terminals)).tolist():
        entries = matrix.node & encoding.manager.cube(matrix.index_bits, k)
        if entries != encoding.manager.false:
            state = format_state(encoding.pick(entries))
            message = "expected rates that multiply and add up to less than 1.79e308, the largest double"
            raise BuildError([_fault(source, f"{message}, got more in reachable state {state}")])


def _deadlock_warnings(source: ResolvedModel, encoding: Encoding, deadlocks: Node, fix: bool) -> list[str]:
    """Name a deadlock state: as a warning if they were fixed, as an error otherwise."""
    if deadlocks == encoding.manager.false:
        return []
    count = index_states(encoding.manager, deadlocks).size
    text = format_state(encoding.pick(deadlocks))
    many = f"{count} states have" if count > 1 else "1 state has"
    if not fix:
        hint = "give it a transition or build without --no-fix-deadlocks"
        raise BuildError([_fault(source, f"{many} no outgoing transition, for example {text}: {hint}")])
    return [f"{many} no outgoing transition and got a self-loop, for example {text}"]

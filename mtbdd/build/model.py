"""The symbolic model, the input of all analyses.

It has the transition matrix as an MTBDD and as an offset-labelled MTBDD, in an MDP one for every layer of
choices. Labels and expressions are sets of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.communicator import Communicator, Share
from mtbdd.base.memoised import Memoised
from mtbdd.base.records import Record
from mtbdd.build.events import Event
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import UNITED_UNITS, SymbolicMatrix
from mtbdd.diagrams.nodes import TRUE, NodeTable, read_nodes
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import Expression, ModelType, ResolvedModel
from mtbdd.offset.convert import entry_units, has_diagonal, list_entries, offset_label
from mtbdd.offset.expansion import expand, expand_sum, expand_values
from mtbdd.offset.offset import MAX_COUNT, OffsetMTBDD
from mtbdd.offset.states import StateIndex, index_states

if TYPE_CHECKING:
    from mtbdd.build.choices import ChoiceLayer
    from mtbdd.build.diagram_parts import DiagramParts
    from mtbdd.offset.distributed import DistributedMTBDD

_FEW_STATES = 10_000

# The states of a model: their numbers, sets of them, and their values of variables.


class ModelStates(Memoised):
    """The reachable states of a model; parameters as for `mtbdd.build.model.SymbolicModel`."""

    def __init__(
        self,
        encoding: Encoding,
        translator: ExpressionTranslator,
        reachable: Node,
        given: DiagramParts | None,
    ) -> None:
        self.encoding, self.manager = encoding, encoding.manager
        self.translator, self.reachable, self.given = translator, reachable, given

    @property
    def communicator(self) -> Communicator:
        """The communicator of the processes that share the states."""
        return self.manager.communicator

    @cached_property
    def index(self) -> StateIndex:
        """The reachable states in index order."""
        return index_states(self.manager, self.reachable)

    @property
    def n_states(self) -> int:
        """Number of reachable states."""
        return self.index.size

    @cached_property
    def numbering(self) -> NDArray[np.int64] | None:
        """The index of every state as users number them, shape (n,); None: the same."""
        from mtbdd.offset.states import numbering

        if self.given is not None and self.given.numbering is not None:
            return self.given.numbering
        return numbering(self.encoding, self.index)

    def states(self, expression: Expression, among: Node | None = None) -> Node:
        """Return the reachable states (or those among them) where a boolean expression holds.

        Raises EvaluationError: the expression has no value in one of these states.
        """
        states = self.reachable if among is None else among
        self.translator.require_value(expression, states)
        return self.translator.states(expression) & states

    def indicator(self, states: Node, within: StateIndex | None = None) -> NDArray[np.bool_]:
        """Return membership of a set as a vector in the order of `within` (default: all states)."""
        index = within or self.index
        inside = states & index.states
        if inside == self.manager.false or inside == index.states:
            # A vector of one value is not read out of a diagram.
            index.place.require(index.size, f"a vector of {index.size} states", "choose smaller constants")
            same: NDArray[np.bool_] = index.place.xp.full(index.size, inside != self.manager.false, np.bool_)
            return same
        known = index.masks.get(inside)
        if known is not None:
            return known.copy()
        found = expand_values(index, read_nodes(self.manager, inside), lambda refs: refs == TRUE, np.bool_)
        if index.size <= _FEW_STATES:
            index.masks.keep(inside, found.copy(), index.size)
        return found

    def first(self, states: Node) -> dict[str, bool | int]:
        """Return one state of a non-empty set, by variable name."""
        return self.encoding.pick(states)

    def describe(
        self, indices: NDArray[np.int64], within: StateIndex | None = None
    ) -> list[dict[str, bool | int]]:
        """Return states as assignments, by index in `within` (default: all states)."""
        bits = (within or self.index).bits_at(np.asarray(indices, dtype=np.int64))
        return [self.encoding.decode(row) for row in bits]


# Statistics of a symbolic build.

_FEW_TRANSITIONS = 1 << 16  # to number a part of them takes less time than to label its diagram


class BuildStatistics(Record):
    """Statistics of the symbolic build.

    `choices` is None for chains; in an MDP `mtbdd_nodes` is the sum over the layers' diagrams and
    `terminals` counts the distinct values of all layers.
    """

    seconds: float
    states: int
    choices: int | None
    transitions: int
    mtbdd_nodes: int
    terminals: int


class SymbolicModel(ModelStates):
    """A DTMC, CTMC or MDP as decision diagrams over its reachable states.

    Made from a text by `mtbdd.build.build.build_model`, without one by
    `mtbdd.build.model_from_diagrams.model_from_diagrams`.

    Attributes
    ----------
    source : ResolvedModel
        The checked model text.
    encoding : Encoding
        Variables, bits and the manager.
    initial, reachable, deadlocks : Node
        Sets over row bits; `deadlocks` are the states that were given a self-loop.
    layers : tuple of ChoiceLayer
        Matrices between reachable states, each with at most one choice of every state; a chain
        has one layer.
    events : tuple of Event
        The commands as partitions by rate; in an MDP every event offers at most one choice.
    relations : tuple of Relation
        The same as relations between states.
    translator : ExpressionTranslator
        Turns expressions over the variables into sets and partitions.
    divisors : Partition or None
        What every row of a DTMC's text is divided by, see `mtbdd.build.build.row_divisors`; None: nothing.
    warnings : tuple of str
        What the user should know about the build.
    given : DiagramParts or None
        What a model without a text has in place of events.
    is_reached : bool
        Whether all states are known to be reached from the initial ones: those of files and arrays, and of a
        scheduler's chain, need not be.
    """

    def __init__(
        self,
        source: ResolvedModel,
        encoding: Encoding,
        translator: ExpressionTranslator,
        events: Sequence[Event],
        relations: Sequence[Relation],
        initial: Node,
        reachable_states: Node,
        deadlocks: Node,
        divisors: Partition | None,
        layers: Sequence[ChoiceLayer],
        warnings: Sequence[str],
        given: DiagramParts | None = None,
    ) -> None:
        super().__init__(encoding, translator, reachable_states, given)
        self.source = source
        self.initial = initial
        self.deadlocks = deadlocks
        self.layers = tuple(layers)
        self.relations = tuple(relations)
        self.warnings = tuple(warnings)
        self.events = tuple(events)
        self.divisors = divisors
        self._offsets: dict[int, OffsetMTBDD] = {}
        self._tables: dict[int, NodeTable] = {}
        self._is_numbered: bool | None = None
        self.build_seconds = 0.0
        self.is_reached = given is None or given.is_listed
        translator.labels.update(init=initial, deadlock=deadlocks)

    # ------------------------------------------------------------------ size

    @property
    def whole(self) -> SymbolicModel:
        """The model with all states numbered: this one, unless it is a part."""
        return self

    @property
    def type(self) -> ModelType:
        """Kind of model."""
        return self.source.type

    @cached_property
    def n_choices(self) -> int | None:
        """Number of choices of all states together; None for chains."""
        if not self.is_mdp:
            return None
        return sum(index_states(self.manager, layer.enabled).total for layer in self.layers)

    @cached_property
    def n_transitions(self) -> int:
        """Number of non-zero matrix entries; in an MDP of all layers together."""
        if self.is_numbered:
            return sum(self.layer_transitions(i).n_entries for i in range(len(self.layers)))
        return sum(layer.matrix.entries()[0] for layer in self.layers)

    @property
    def is_numbered(self) -> bool:
        """Whether states and entries are few enough for indices of 64 bits; more are counted alone."""
        if self._is_numbered is None:
            self._is_numbered = self.whole.n_states <= MAX_COUNT
            if self._is_numbered:
                try:
                    for number in range(len(self.layers)):
                        check_budget()
                        self.layer_transitions(number)
                except OverflowError:
                    self._is_numbered = False
        return self._is_numbered

    @cached_property
    def statistics(self) -> BuildStatistics:
        """Sizes as PRISM counts them: nodes include terminals, terminals include zero."""
        nodes = 0
        values: set[float] = set()
        for i, layer in enumerate(self.layers):
            own, terminals = layer.matrix.mtbdd_nodes(self._table(i))
            found = self._whole_matrix(i).values.tolist() if self.is_numbered else None
            present = set(layer.matrix.entries()[1] if found is None else found)
            self._tables.pop(i, None)  # what else is asked rarely may read it again
            nodes += own
            values |= present | ({0.0} if terminals > len(present) else set())
        return BuildStatistics(
            self.build_seconds, self.n_states, self.n_choices, self.n_transitions, nodes, len(values)
        )

    def _table(self, layer: int) -> NodeTable:
        """Return the nodes of a layer's matrix."""
        if layer not in self._tables:
            self._tables[layer] = self.layers[layer].matrix.table()
        return self._tables[layer]

    # ------------------------------------------------------------------ matrices

    @property
    def is_mdp(self) -> bool:
        """Whether states have choices."""
        return self.type is ModelType.MDP

    @property
    def matrix(self) -> SymbolicMatrix:
        """A chain's rates or probabilities between reachable states; `ValueError` for an MDP."""
        return self.layer(None).matrix

    @property
    def transitions(self) -> OffsetMTBDD:
        """A chain's whole transition matrix, offset-labelled, with self-loops; `ValueError` for an MDP."""
        self.layer(None)
        return self.layer_transitions(0)

    def layer(self, number: int | None) -> ChoiceLayer:
        """Return a layer by its number; None stands for a chain's only one.

        Raises
        ------
        ValueError
            None for an MDP, or no layer has the number.
        """
        if number is None:
            if self.is_mdp:
                raise ValueError(
                    f"an MDP has no single transition matrix but {len(self.layers)} layers of choices: "
                    "name one, as in `layer_transitions(0)` or `layer=0`"
                )
            number = 0
        if not 0 <= number < len(self.layers):
            raise ValueError(f"layer: expected a number from 0 to {len(self.layers) - 1}, got {number}")
        return self.layers[number]

    def layer_transitions(self, layer: int) -> OffsetMTBDD:
        """Return a layer's matrix over all reachable states, offset-labelled; kept for later calls.

        Rows of states without a choice in the layer are empty.  `ValueError` if no layer has the number.
        """
        self.layer(layer)
        return self._whole_matrix(layer)

    def _whole_matrix(self, layer: int) -> OffsetMTBDD:
        """Return what `layer_transitions` shows, as the analysis takes it."""
        if layer not in self._offsets:
            matrix, index, table = self.layers[layer].matrix, self.index, self._table(layer)
            entries = None
            if 0 < index.size <= _FEW_STATES and self._is_alone:
                entries = list_entries(matrix, index, table, _FEW_TRANSITIONS)
            if entries is None:
                self._offsets[layer] = offset_label(matrix, index, index, table)
            else:
                self._offsets[layer] = OffsetMTBDD.written(
                    (index.size, index.size),
                    index.n_bits,
                    entries,
                    entry_units(matrix),
                    lambda: offset_label(matrix, index, index),
                )
        return self._offsets[layer]

    @cached_property
    def entry_units(self) -> float:
        """Bound on the relative error of any matrix entry, in units of 2^-53.

        The error is that against the exact number that the text means: rounding of literals, of expressions
        and of products over synchronised commands, uniting values next to each other, and blocks shared up to
        a scale;
        every matrix and submatrix has its own `entry_units`, none greater.
        """
        return max(entry_units(layer.matrix) for layer in self.layers)  # lemma: entry-units

    @cached_property
    def exit_units(self) -> float:
        """Bound on the relative error of the row sums that `exit_rates` returns, in units of 2^-53.

        Raises
        ------
        ValueError
            The model is an MDP.
        """
        self.layer(None)
        if self.given is None:
            parts = [self.event_rates(event) for event in self.events]
        elif isinstance(self.given.exits, SymbolicMatrix):
            return self.given.exits.units
        else:
            parts = list(self.given.exits)
        # lemma: entry-units
        return max((part.units for part in parts), default=0.0) + len(parts) + UNITED_UNITS

    def layer_relation(self, layer: int) -> Node:
        """Return a layer's non-zero entries as a set over row and column bits."""
        return self.layer(layer).matrix.support()

    @cached_property
    def choice_relations(self) -> tuple[Relation, ...]:
        """The graph, in an MDP in parts with at most one choice of every state, each of one layer.

        Choices of a layer that touch the same bits are one relation, a chain as a whole is one.
        """
        from mtbdd.build.choices import choice_relations

        if self.is_mdp:
            if self.given is not None:
                return self.given.relations
            return tuple(choice_relations(self.encoding, self.layers))
        return (Relation.whole(self.manager, self.layer_relation(0)),)

    def submatrix(
        self,
        rows: StateIndex,
        columns: StateIndex,
        diagonal: bool = True,
        layer: int | None = None,
        transposed: bool = False,
    ) -> OffsetMTBDD:
        """Return the transitions from one set of states to another, numbered within those sets.

        Parameters
        ----------
        rows, columns : StateIndex
            Subsets of the reachable states.
        diagonal : bool
            Whether to keep entries from a state to itself.
        layer : int, optional
            Which layer of an MDP.
        transposed : bool
            Whether to return the transposed matrix.

        Raises
        ------
        ValueError
            No layer is given for an MDP.
        """
        of_layer = self.layer(layer).matrix
        if self.whole is self and rows.states == columns.states == self.reachable:
            found = self._whole_matrix(layer or 0)
            if diagonal or not has_diagonal(found):
                return found.transpose() if transposed else found
        if self.is_few:
            part = self.part(layer or 0, rows, columns, rows, diagonal)
            return part.transpose() if transposed else part
        return self.numbered(self._cut(of_layer, rows, columns, diagonal), rows, columns, transposed)

    def _cut(
        self, matrix: SymbolicMatrix, rows: StateIndex, columns: StateIndex, diagonal: bool
    ) -> SymbolicMatrix:
        """Return the entries from one set of states to another."""
        # Cut by one set after the other: the product of two scattered sets may be far larger than the matrix.
        found = matrix.only(rows.states).only(self.manager.to_columns(columns.states))
        return found if diagonal else found.only(~self.manager.equal_bits(range(self.encoding.n_bits)))

    @cached_property
    def is_few(self) -> bool:
        """Whether states and transitions are few enough to be numbered one by one; see `part`."""
        whole = self.n_states <= _FEW_STATES and self._is_alone and self.n_transitions <= _FEW_TRANSITIONS
        return whole and all(self._whole_matrix(i).entries is not None for i in range(len(self.layers)))

    @property
    def _is_alone(self) -> bool:
        """Whether no other process has a part of the states."""
        return self.whole is self and self.manager.share is None

    def part(
        self, layer: int, rows: StateIndex, columns: StateIndex, chosen: StateIndex, diagonal: bool = True
    ) -> OffsetMTBDD:
        """Return what `submatrix` does, of a model with few states, without the entries of rows not chosen.

        Time: O(transitions of the layer), and O(states) for every bit where the sets are new.
        """
        whole = self._whole_matrix(layer).entries
        assert whole is not None
        matrix, places = self.layers[layer].matrix, self._places_of
        kept = None if chosen is rows else places(chosen)
        return OffsetMTBDD.written(
            (rows.size, columns.size),
            self.encoding.n_bits,
            whole.part(self.n_states, places(rows), places(columns), kept, diagonal),
            entry_units(matrix),
            lambda: offset_label(self._cut(matrix, chosen, columns, diagonal), rows, columns),
        )

    def _places_of(self, states: StateIndex) -> NDArray[np.int64] | None:
        """Return the numbers of a set's states, ascending; None for all."""
        return None if states.size == self.n_states else np.flatnonzero(self.indicator(states.states))

    def numbered(
        self, entries: SymbolicMatrix, rows: StateIndex, columns: StateIndex, transposed: bool = False
    ) -> OffsetMTBDD:
        """Return a matrix, all entries inside of rows and columns, numbered within these sets."""
        found = offset_label(entries, rows, columns)
        return found.transpose() if transposed else found

    def numbered_together(
        self, entries: Sequence[SymbolicMatrix], rows: Sequence[StateIndex], columns: StateIndex
    ) -> list[OffsetMTBDD]:
        """Return matrices over the same columns, each within its own rows; see `numbered`."""
        return [offset_label(own, within, columns) for own, within in zip(entries, rows, strict=True)]

    def has_self_loops(self, within: StateIndex, layer: int | None = None) -> bool:
        """Return whether some state of a set leads to itself. Time: that of one conjunction of diagrams."""
        return bool(self._loops(within, layer) != self.manager.false)

    def self_loops(self, within: StateIndex, layer: int | None = None) -> NDArray[np.float64]:
        """Return the diagonal of the transition matrix (of a layer) over a set, shape (within.size,)."""
        manager, diagonal = self.manager, self._loops(within, layer)
        terminals = self.layer(layer).matrix.terminals
        return expand(SymbolicMatrix(manager, manager.exists(manager.columns, diagonal), terminals), within)

    def _loops(self, within: StateIndex, layer: int | None) -> Node:
        """Return the diagonal of the transition matrix (of a layer) over a set, as a diagram."""
        same = self.manager.equal_bits(range(self.encoding.n_bits))
        return self.layer(layer).matrix.node & within.states & same

    def exit_rates(self, within: StateIndex) -> NDArray[np.float64]:
        """Return the row sums of a chain's transition matrix over a set, shape (within.size,).

        Summed symbolically over the events; self-loops count.

        Raises
        ------
        ValueError
            The model is an MDP.
        """
        self.layer(None)
        if self.given is not None:
            exits = self.given.exits
            return expand(exits, within) if isinstance(exits, SymbolicMatrix) else expand_sum(exits, within)
        parts = [self.event_rates(event) for event in self.events]
        return expand_sum([*parts, Partition(self.manager, {1.0: self.deadlocks})], within)

    def event_exits(self, event: Event) -> Partition:
        """Return an event's total rate by state, divided as the rows of a DTMC are."""
        return self.event_rates(event).only(self.reachable)

    def event_rates(self, event: Event) -> Partition:
        """Return `event_exits` where a state is, and anything elsewhere: with diagrams of few variables."""
        exits, divisors = event.exits, self.divisors
        return exits if divisors is None or all(d == 1 for d, _ in divisors) else exits.divided(divisors)


# The part of a model in one of several processes: whole diagrams, and vectors of its own states.


class PartModel(SymbolicModel):
    """See `SymbolicModel`; made of one that is whole.

    `index` has the own states, and so have all sets that are numbered; diagrams, counts and whole matrices
    (`n_states`, `layer_transitions`) are those of the model. `share`: of its reachable states.
    """

    def __init__(self, model: SymbolicModel, share: Share) -> None:
        given = model.given
        super().__init__(
            model.source, model.encoding, model.translator, model.events, model.relations, model.initial,
            model.reachable, model.deadlocks, model.divisors, model.layers, model.warnings, given,
        )  # fmt: skip
        self._model = model
        self.manager = model.manager.sharing(share)
        self.build_seconds, self.is_reached = model.build_seconds, model.is_reached

    @property
    def whole(self) -> SymbolicModel:
        """The model that it is a part of."""
        return self._model

    @property
    def n_states(self) -> int:
        """Number of reachable states, those of other processes among them."""
        return self._model.n_states

    def layer_transitions(self, layer: int) -> OffsetMTBDD:
        """Return a layer's whole matrix, over the states of all processes."""
        return self._model.layer_transitions(layer)

    def numbered(
        self, entries: SymbolicMatrix, rows: StateIndex, columns: StateIndex, transposed: bool = False
    ) -> DistributedMTBDD:
        """See `SymbolicModel.numbered`; of the rows that are own."""
        from mtbdd.offset.distributed import distribute

        return distribute(self.manager, entries, rows, columns, transposed)

    def numbered_together(
        self, entries: Sequence[SymbolicMatrix], rows: Sequence[StateIndex], columns: StateIndex
    ) -> list[OffsetMTBDD]:
        """See `SymbolicModel.numbered_together`; all receive the same elements of others."""
        from mtbdd.offset.distributed import distribute_all

        return list(distribute_all(self.manager, entries, rows, columns)) if entries else []

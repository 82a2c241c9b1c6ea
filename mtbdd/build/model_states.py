"""The states of a model: their numbers, sets of them, and what they are in variables."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.communicator import Communicator
from mtbdd.diagrams.encoding import Encoding
from mtbdd.offset.expansion import expand_values
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.build.given import GivenParts
from mtbdd.language.syntax import Expression
from mtbdd.diagrams.manager import Node
from mtbdd.base.memoised import Memoised
from mtbdd.diagrams.nodes import TRUE, read_nodes
from mtbdd.build.numbering import numbering
from mtbdd.offset.states import StateIndex, index_states


class ModelStates(Memoised):
    """The reachable states of a model; see `mtbdd.build.model.SymbolicModel` for what the parameters are."""

    def __init__(
        self,
        encoding: Encoding,
        translator: ExpressionTranslator,
        reachable: Node,
        given: GivenParts | None,
    ) -> None:
        self.encoding, self.manager = encoding, encoding.manager
        self.translator, self.reachable, self.given = translator, reachable, given

    @property
    def communicator(self) -> Communicator:
        """Who decides together where processes share the states."""
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
        if self.given is not None and self.given.numbering is not None:
            return self.given.numbering
        return numbering(self.encoding, self.index)

    def states(self, expression: Expression, among: Node | None = None) -> Node:
        """Return the reachable states (or those among them) where a boolean expression holds.

        Raises
        ------
        EvaluationError
            The expression has no value in one of these states.
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
        return expand_values(index, read_nodes(self.manager, inside), lambda refs: refs == TRUE, np.bool_)

    def first(self, states: Node) -> dict[str, bool | int]:
        """Return one state of a non-empty set, by variable name."""
        return self.encoding.pick(states)

    def describe(
        self, indices: NDArray[np.int64], within: StateIndex | None = None
    ) -> list[dict[str, bool | int]]:
        """Return states as assignments, by index in `within` (default: all states)."""
        bits = (within or self.index).bits_at(np.asarray(indices, dtype=np.int64))
        return [self.encoding.decode(row) for row in bits]

"""Relations between states: images, preimages and closures, over the bits that each may change.

Sets are over row bits; a relation joins row bits to column bits. So an image over column bits has to be
renamed to row bits. For a preimage the relation is inverted once (row and column bits exchanged). So again
the result is renamed and not the set. Results are mostly small, since one part of a graph adds little to the
states of a search. Only the bits that the part may change are renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Manager, Node


class Relation(Record):
    """Transitions between states: those of an event, of some choices, or of a whole graph.

    `node`: over all row bits and the column bits of what it may change; the other bits stay as they are.
    `bits`: numbers of the bits that it may change. `layer`: the layer of choices that it belongs to.
    """

    manager: Manager
    node: Node
    bits: tuple[int, ...]
    layer: int = 0

    @classmethod
    def whole(cls, manager: Manager, node: Node, layer: int = 0) -> Relation:
        """Return the relation of a diagram over all row and column bits."""
        return cls(manager, node, tuple(range(manager.n_bits)), layer)

    @classmethod
    def of(cls, encoding: Encoding, touched: Sequence[str], node: Node) -> Relation:
        """Return the relation of an event, by the names of the variables it may change."""
        return cls(encoding.manager, node, tuple(encoding.bits_of(touched)))

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The row bits that it may change."""
        return tuple(self.manager.rows[i] for i in self.bits)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Their column bits."""
        return tuple(self.manager.columns[i] for i in self.bits)

    @cached_property
    def _spares(self) -> tuple[str, ...]:
        return tuple(self.manager.spares[i] for i in self.bits)

    @cached_property
    def _to_rows(self) -> dict[str, str]:
        return dict(zip(self.columns, self.rows, strict=True))

    @cached_property
    def _identity(self) -> Node:
        return self.manager.equal_bits(self.bits)

    @cached_property
    def inverse(self) -> Node:
        """The diagram with row and column bits exchanged, of those bits that it may change."""
        turned = self.node
        for old, new in ((self.rows, self._spares), (self.columns, self.rows), (self._spares, self.columns)):
            turned = self.manager.rename(dict(zip(old, new, strict=True)), turned)
        return turned

    @cached_property
    def sources(self) -> Node:
        """The states that it starts from."""
        return self.manager.exists(self.columns, self.node)

    def from_states(self, states: Node) -> Relation:
        """Return the transitions that start in a set."""
        return replace(self, node=self.node & states)

    def moving(self) -> Relation:
        """Return the relation without transitions from a state to itself."""
        return replace(self, node=self.node & ~self.manager.equal_bits(self.bits))

    def over_bits(self, bits: Sequence[int]) -> Node:
        """Return the diagram over the column bits of more than it may change.  Time: one conjunction."""
        changed = frozenset(self.bits)
        return self.node & self.manager.equal_bits(i for i in bits if i not in changed)

    def image(self, states: Node) -> Node:
        """Return the successors of a set.  Time: one relational product."""
        check_budget()
        return self._renamed(self.manager.and_exists(states, self.node, self.rows))

    def preimage(self, states: Node) -> Node:
        """Return the states with a successor in a set.  Time: one relational product."""
        check_budget()
        return self._renamed(self.manager.and_exists(states, self.inverse, self.rows))

    def united(self, other: Relation) -> Relation:
        """Return the transitions of both, over the bits of both."""
        bits = tuple(sorted({*self.bits, *other.bits}))
        node = self.manager.disjunction(part.over_bits(bits) for part in (self, other))
        return Relation(self.manager, node, bits, self.layer)

    def closure(self, most_nodes: int) -> Relation | None:
        """Return any number of repetitions from one on, or None if its diagram grows beyond some nodes.

        Time: O(log k) relational products for chains of length k.
        """
        manager, node, spares = self.manager, self.node, self._spares
        targets = dict(zip(self.columns, spares, strict=True))
        starts = dict(zip(self.rows, spares, strict=True))
        while True:
            check_budget()
            longer = node | manager.and_exists(
                manager.rename(targets, node), manager.rename(starts, node), spares
            )
            if longer == node:
                return replace(self, node=node)
            if manager.size(longer) > most_nodes:
                return None
            node = longer

    def _renamed(self, found: Node) -> Node:
        """Return the set `found` over column bits of those that it may change, over row bits."""
        manager = self.manager
        if found == manager.false:
            return found
        if manager.is_cudd:
            # CUDD remembers relational products node by node, and forgets each swap of variables.
            return manager.and_exists(found, self._identity, self.columns)
        return manager.rename(self._to_rows, found)

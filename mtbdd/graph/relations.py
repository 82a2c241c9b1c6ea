"""Steps of a graph forward and backward, each part of it over the bits that it may change.

A set is over row bits, and so is the set of its successors or predecessors, but a relation joins row bits to
column bits: something has to be renamed.  Forward it is the successors.  Backward it would be the set;
instead the relation is turned round once, so that a successor stands on row bits and its source on column
bits, and the predecessors are renamed.  A search looks at all that it found last, and each part of a graph
adds little to it: what is renamed is small, and only in the bits that the part may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mtbdd.choices import choice_relations
from mtbdd.manager import Manager, Node
from mtbdd.model import SymbolicModel

__all__ = ["Step", "model_steps"]


@dataclass(frozen=True)
class Step:
    """A part of a graph.

    Attributes
    ----------
    manager : Manager
    relation : Node
        Over all row bits and the column bits of what it may change; the other bits stay as they are.
    bits : tuple of int
        Numbers of the bits that it may change.
    layer : int
        The layer of choices that it belongs to.
    """

    manager: Manager
    relation: Node
    bits: tuple[int, ...]
    layer: int = 0

    @classmethod
    def whole(cls, manager: Manager, relation: Node, layer: int = 0) -> Step:
        """Return the step of a relation over all row and column bits."""
        return cls(manager, relation, tuple(range(manager.n_bits)), layer)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The row bits that it may change."""
        return tuple(self.manager.rows[i] for i in self.bits)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Their column bits."""
        return tuple(self.manager.columns[i] for i in self.bits)

    @cached_property
    def _to_rows(self) -> dict[str, str]:
        return dict(zip(self.columns, self.rows, strict=True))

    @cached_property
    def turned(self) -> Node:
        """The relation with row and column bits exchanged where it may change them."""
        turned, spares = self.relation, tuple(self.manager.spares[i] for i in self.bits)
        for old, new in ((self.rows, spares), (self.columns, self.rows), (spares, self.columns)):
            turned = self.manager.rename(dict(zip(old, new, strict=True)), turned)
        return turned

    @cached_property
    def sources(self) -> Node:
        """The states that it starts from."""
        return self.manager.exists(self.columns, self.relation)

    def moving(self) -> Step:
        """Return the step without transitions from a state to itself."""
        relation = self.relation & ~self.manager.equal_bits(self.bits)
        return Step(self.manager, relation, self.bits, self.layer)

    def over_all_bits(self) -> Node:
        """Return the relation over all row and column bits.  Time: one conjunction."""
        changed = frozenset(self.bits)
        kept = (i for i in range(self.manager.n_bits) if i not in changed)
        return self.relation & self.manager.equal_bits(kept)

    def after(self, states: Node) -> Node:
        """Return the successors of a set.  Time: one relational product."""
        return self._renamed(self.manager.and_exists(states, self.relation, self.rows))

    def before(self, states: Node) -> Node:
        """Return the states with a successor in a set.  Time: one relational product."""
        return self._renamed(self.manager.and_exists(states, self.turned, self.rows))

    def _renamed(self, found: Node) -> Node:
        return found if found == self.manager.false else self.manager.rename(self._to_rows, found)


def model_steps(model: SymbolicModel) -> tuple[Step, ...]:
    """Return the graph of a model in steps, made once; in an MDP each holds at most one choice of a state.

    Choices of a layer that touch the same bits are one step, a chain as a whole is one.
    """
    return model.once(_steps)


def _steps(model: SymbolicModel) -> tuple[Step, ...]:
    if not model.is_mdp:
        return (Step.whole(model.manager, model.layer_relation(0)),)
    return tuple(
        Step(model.manager, c.transition.relation, c.transition.bits, number)
        for number, layer in enumerate(model.layers)
        for c in choice_relations(model.encoding, [layer])
    )

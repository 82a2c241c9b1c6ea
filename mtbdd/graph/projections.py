"""Dividing a graph by what single parts of its states can do, before anything is searched.

Seen through a part of the bits, a graph becomes a small one: the values of those bits, and the changes
of value that some transition makes.  A cycle of the graph is a closed walk there.  Transitions to a value
from which the part cannot come back are therefore in no component and are taken away; states whose values
cannot come from each other are in different ones.  Where processes drop out, decide or count up one by one,
as in protocols and randomised algorithms, this alone separates components whose number grows exponentially
in that of the processes.

References
----------
C. Wang, R. Bloem, G. D. Hachtel, K. Ravi, F. Somenzi, "Divide and compose: SCC refinement for language
emptiness", CONCUR 2001: components of an abstraction hold those of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation

Part = tuple[int, ...]

_WIDEST = 20  # bits of a part: its relation is closed over three times as many variables
_CLOSURE_NODES = 3_000  # a closure with more nodes costs more than it saves


def model_parts(model: SymbolicModel) -> tuple[Part, ...]:
    """Return the parts of a model's states: the bits of every module, then those of every variable.

    Those that are too wide, or all there is, are left out.
    """
    encoding = model.encoding
    groups = [[variable.name for variable in module.variables] for module in model.source.modules]
    groups += [[variable.name] for variable in model.source.variables]
    most = min(_WIDEST, encoding.n_bits - 1)
    # A module of one variable has the same bits as that.
    parts = dict.fromkeys(tuple(encoding.bits_of(names)) for names in groups)
    return tuple(bits for bits in parts if 0 < len(bits) <= most)


def common_cycles(manager: Manager, relation: Node, part: Part) -> Relation | None:
    """Return which values of a part may come from each other, both ways.

    Parameters
    ----------
    manager : Manager
    relation : Node
        The graph's transitions, over row and column bits.
    part : tuple of int
        Numbers of bits.

    Returns
    -------
    Relation or None
        An equivalence over the part's row and column bits: pairs of values on a closed walk of the graph
        seen through the part, and equal ones.  None if it would be a large diagram.

    Notes
    -----
    Time: one quantification of the relation, and O(log k) products of relations over the part's bits alone
    for paths of k values.
    """
    own = frozenset(part)
    others = _names(manager, (i for i in range(manager.n_bits) if i not in own))
    projected = Relation(manager, manager.exists(others, relation), part)
    small = manager.size(projected.node) <= _CLOSURE_NODES
    closed = projected.closure(_CLOSURE_NODES) if small else None
    if closed is None:
        return None
    return Relation(manager, (closed.node & closed.turned) | manager.equal_bits(part), part)


def cut_by_parts(manager: Manager, relation: Node, parts: Sequence[Part]) -> tuple[Node, list[Relation]]:
    """Return the transitions on which every part may come back, and the equivalences of `common_cycles`.

    A part inside one that has an equivalence already tells nothing new, and has none of its own.
    Time: `common_cycles` and one conjunction with the relation a part.
    """
    classes: list[Relation] = []
    for part in parts:
        if any(set(part) <= set(found.bits) for found in classes):
            continue
        found = common_cycles(manager, relation, part)
        if found is not None:
            classes.append(found)
    for found in classes:
        relation = relation & found.node
    return relation, classes


def split_by_parts(manager: Manager, states: Node, classes: Sequence[Relation]) -> list[Node]:
    """Return a set in pieces, two states together if all equivalences hold between their values.

    Notes
    -----
    Time: a few operations on sets for every piece.  If every state of the set has a successor in it by one
    of the transitions that `cut_by_parts` left, every piece holds a cycle: there are no more pieces than
    components of several states.
    """
    pieces = [] if states == manager.false else [states]
    for same in classes:
        own = frozenset(same.bits)
        others = [name for i, name in enumerate(manager.rows) if i not in own]
        divided = []
        for piece in pieces:
            values = manager.exists(others, piece)
            while values != manager.false:
                together = same.after(_one_value(manager, values, same))
                divided.append(piece & together)
                values = values & ~together
        pieces = divided
    return pieces


def _one_value(manager: Manager, values: Node, part: Relation) -> Node:
    """Return one member of a set over a part's row bits."""
    chosen = manager.bdd.pick(values, care_vars=part.rows)
    return manager.bdd.cube({name: bool(chosen[name]) for name in part.rows})


def _names(manager: Manager, bits: Iterable[int]) -> list[str]:
    """Return the row and column bits of some numbers."""
    return [name for i in bits for name in (manager.rows[i], manager.columns[i])]

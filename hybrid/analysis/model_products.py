"""The product of a model and an automaton, with the automaton's bits where the level curve wants them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hybrid.analysis.model_automata import automaton_moves
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.levels.layers import least_instance_bytes
from hybrid.properties.automata.automaton import DeterministicAutomaton
from mtbdd.base.shares import Share
from mtbdd.build.automaton_product import AutomatonProduct, automaton_product
from mtbdd.build.model import SymbolicModel
from mtbdd.build.part_model import PartModel
from mtbdd.diagrams.manager import Node

_log = logging.getLogger(__name__)

MOST_COMPARED = 1 << 20
"""States of a model up to which both orders are built; beyond, the automaton's bits stand above."""


def model_product(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    options: CheckOptions,
    structures: Sequence[int] = (),
    labels: Mapping[str, Node] | None = None,
    start: Node | None = None,
) -> AutomatonProduct:
    """Return the product of a model and an automaton, in the order whose level curve has the lower minimum.

    Parameters
    ----------
    automaton : DeterministicAutomaton
        State 0 is the initial one.
    propositions : sequence of Node
        Where its propositions hold.
    options : CheckOptions
        The explicit engine, which writes the matrix out, takes the order with the automaton's bits above.
    structures, labels, start : optional
        Reward structures and labels that the product has, states to begin in, see `automaton_product`.

    Raises
    ------
    BuildError

    Notes
    -----
    Time: two products and their level curves.
    """
    moves, n_marks = automaton_moves(automaton), automaton.n_marks
    above = automaton_product(model, propositions, moves, n_marks, structures, labels=labels, start=start)
    if len(moves) == 1 or options.engine == "explicit" or model.n_states > MOST_COMPARED:
        chosen = above
    else:
        below = automaton_product(model, propositions, moves, n_marks, structures, True, labels, start)
        chosen = min(above, below, key=_least_bytes)
    _log.info(
        "product with an automaton of %d states: %d pairs, its bits %s the model's",
        automaton.n_states, chosen.model.n_states, "above" if chosen is above else "below",
    )  # fmt: skip
    return _divided(model, chosen)


def _divided(model: SymbolicModel, product: AutomatonProduct) -> AutomatonProduct:
    """Return a product whose states belong to the process that has those of the model."""
    share = model.manager.share
    if share is None or product.model is model:
        return product
    owners = tuple(product.model.reachable & product.lifted(owner) for owner in share.owners)
    return replace(product, model=PartModel(product.model, Share(share.communicator, owners)))


def _least_bytes(product: AutomatonProduct) -> int:
    """Return what the level of least memory takes, of all layers."""
    model = product.model
    return least_instance_bytes([model.layer_transitions(k) for k in range(len(model.layers))])

"""Allowed choices in the unknown states, layer by layer, with their immediate values.

Values of a decision process over a set of unknown states solve ``x = opt over i of (A_i x + b_i)``. Here opt
is the minimum or maximum over the layers with an allowed choice in a state. A_i is the layer's matrix within
the unknown states, b_i the immediate value of a choice: a reward, or the probability of entering a target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.operators.rounding import ratio_units
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import Quotient
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.partition import Partition
from mtbdd.offset.expansion import expand_sum
from mtbdd.offset.offset import OffsetMTBDD, row_entries
from mtbdd.offset.states import StateIndex, index_states

if TYPE_CHECKING:
    from mtbdd.graph.components import EndComponents

Vector = NDArray[np.float64]
RewardOf = Callable[[int, StateIndex], Vector]

# lemma: rounding
_NEAR = 8.0 * UNIT  # probabilities whose sum is this near to 1 are not scaled
_FEW = 4  # a layer with a choice in at most one state in four gets a matrix of these rows alone
_ROUNDINGS = 48  # units of rounding behind b, factors and sums; see `choice_slack`


class LayerChoices(Record, eq=False):
    """The allowed choices of one layer in the unknown states, A_i and b_i of the equation above.

    The layer of the whole model is `mtbdd.build.choices.ChoiceLayer`.

    Attributes
    ----------
    layer : int
        Number of the model's layer.
    place : ndarray, shape (rows,), int64, or None
        Where few unknown states have the choice, their places, one a row of the matrix; None if there is a
        row for every unknown state.
    matrix : OffsetMTBDD or None
        From the rows to the unknown states; None where all choices leave them for certain.
    gain : ndarray, shape (rows,), float64
        Reward of each choice; the worst value, an infinity, where there is no choice.
    factor : ndarray, shape (rows,), float64, or None
        To multiply the product with, where probabilities add up to 1 only roughly; None is 1.
    """

    layer: int
    place: NDArray[np.int64] | None
    matrix: OffsetMTBDD | None
    gain: Vector
    factor: Vector | None


class LayerMatrix(Record, eq=False):
    """The choices of one layer in the unknown states, without their immediate values.

    Attributes
    ----------
    layer : int
        Number of the model's layer.
    chosen : StateIndex
        The unknown states that have the choice.
    place : ndarray, shape (chosen.size,), int64, or None
        Their places among the unknown states; None if they are all of them.
    size : int
        Unknown states.
    is_whole : bool
        Whether there is a row for every unknown state, and not for `chosen` alone.
    matrix : OffsetMTBDD or None
    factor : ndarray, shape (rows,), float64, or None
        See `LayerChoices`.
    """

    layer: int
    chosen: StateIndex
    place: NDArray[np.int64] | None
    size: int
    is_whole: bool
    matrix: OffsetMTBDD | None
    factor: Vector | None

    def choices(self, gain: RewardOf, maximise: bool) -> LayerChoices:
        """Return the choices with their immediate values; parameters as of `layer_choices_of`."""
        own, place = gain(self.layer, self.chosen), self.place
        if place is not None and self.is_whole:
            own = _scattered(own, place, self.size, -np.inf if maximise else np.inf)
        return LayerChoices(self.layer, None if self.is_whole else place, self.matrix, own, self.factor)


def layer_choices_of(
    model: SymbolicModel,
    unknown: StateIndex,
    allowed: Sequence[Node],
    gain: RewardOf,
    maximise: bool,
    whole: bool = False,
) -> list[LayerChoices]:
    """Return the choices of all layers that have an allowed choice in some unknown state.

    Parameters
    ----------
    gain : callable
        Called with a layer and the states that have the choice; returns what it is worth.
    maximise : bool
        Which infinity stands for no choice.

    Returns
    -------
    list of LayerChoices
        The one with the most rows first; other parameters as of `layer_matrices`.
    """
    return [own.choices(gain, maximise) for own in layer_matrices(model, unknown, allowed, whole)]


def layer_matrices(
    model: SymbolicModel, unknown: StateIndex, allowed: Sequence[Node], whole: bool = False
) -> list[LayerMatrix]:
    """Return the matrices of all layers that have an allowed choice in some unknown state.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    unknown : StateIndex
    allowed : sequence of Node
        For every layer the states whose choice in it is allowed.
    whole : bool
        Give every layer a row for every unknown state.

    Returns
    -------
    list of LayerMatrix
        The one with the most rows first.
    """
    found: list[tuple[StateIndex, LayerMatrix]] = []
    for layer, states in enumerate(allowed):
        inside = states & model.layers[layer].enabled & unknown.states
        if inside == model.manager.false:
            continue
        chosen = unknown if inside == unknown.states else index_states(model.manager, inside)
        place = None
        if chosen is not unknown:
            place = np.flatnonzero(model.indicator(inside, unknown)).astype(np.int64)
        totals = choice_totals(model, layer, chosen)
        factor = None if totals is None else 1.0 / totals
        is_whole = place is None or whole or _FEW * chosen.total > unknown.total
        if place is not None and is_whole and factor is not None:
            factor = _scattered(factor, place, unknown.size, 1.0)
        own = LayerMatrix(layer, chosen, place, unknown.size, is_whole, None, factor)
        found.append((unknown if is_whole else chosen, own))
    found.sort(key=lambda pair: -pair[0].total)
    numbered = _numbered(model, found, unknown)
    return [replace(own, matrix=numbered.get(own.layer)) for _, own in found]


def _numbered(
    model: SymbolicModel, layers: Sequence[tuple[StateIndex, LayerMatrix]], unknown: StateIndex
) -> dict[int, OffsetMTBDD]:
    """Return the matrices of layers with entries, from the rows given with each to the unknown states."""
    if model.is_few:
        parts = {own.layer: model.part(own.layer, rows, unknown, own.chosen) for rows, own in layers}
        return {layer: matrix for layer, matrix in parts.items() if matrix.n_entries}
    columns = model.manager.to_columns(unknown.states)
    # Cut by one set after the other: their product may be far larger than the matrix.
    cut = [(own, rows, model.layers[own.layer].matrix.only(own.chosen.states)) for rows, own in layers]
    entered = [(own, rows, matrix.only(columns)) for own, rows, matrix in cut]
    entered = [each for each in entered if each[2].node != model.manager.false]
    matrices = model.numbered_together([m for _, _, m in entered], [rows for _, rows, _ in entered], unknown)
    return {own.layer: matrix for (own, _, _), matrix in zip(entered, matrices, strict=True)}


def _scattered(values: Vector, place: NDArray[np.int64], size: int, other: float) -> Vector:
    """Return values at their places, and another number elsewhere."""
    full = np.full(size, other)
    full[place] = values
    return full


def choice_slack(model: SymbolicModel) -> float:
    """Return a bound on the relative error of one step over the choices, operands included.

    All numbers are non-negative, so that minima and maxima add none.
    """
    layers = [model.layer_transitions(i) for i in range(len(model.layers))]
    entries, units = max(map(row_entries, layers)), max(map(ratio_units, layers))  # lemma: rounding
    return (2 * entries + units + _ROUNDINGS) * UNIT  # lemma: rounding


def group_states(model: SymbolicModel, unknown: StateIndex, components: EndComponents) -> Quotient | None:
    """Return the end components of several states as groups of unknown states; None if there are none."""
    parts = [np.flatnonzero(model.indicator(c.states, unknown)) for c in components.components]
    groups = [number for number, part in enumerate(parts) if part.size]
    shared = _shared_groups(model, components)
    if not groups and not len(shared):
        return None
    sizes = np.array([parts[number].size for number in groups], np.int64)
    place = np.full(len(parts), -1, np.int64)
    place[shared] = np.arange(len(shared))
    members = [parts[number].astype(np.int64) for number in groups]
    return Quotient(
        np.concatenate([np.zeros(0, np.int64), *members]),
        np.cumsum(sizes) - sizes,
        place[groups],
        len(shared),
    )


def _shared_groups(model: SymbolicModel, components: EndComponents) -> list[int]:
    """Return the numbers of the components that have states of several processes."""
    share = model.manager.share
    if share is None:
        return []
    cut = [[c.states & owner for owner in share.owners] for c in components.components]
    return [i for i, parts in enumerate(cut) if sum(p != model.manager.false for p in parts) > 1]


def leaving_choices(model: SymbolicModel, allowed: Sequence[Node], components: EndComponents) -> list[Node]:
    """Return, for every layer, the states whose allowed choice stays in no end component."""
    every = (components.single, *components.components)
    return [
        states & ~model.manager.disjunction(c.choices[layer] for c in every)
        for layer, states in enumerate(allowed)
    ]


def choice_totals(model: SymbolicModel, layer: int, within: StateIndex) -> Vector | None:
    """Return what the probabilities of a layer's choices add up to; None if that is 1 but for rounding."""
    parts = [(p.sums, p.states) for p in model.layers[layer].parts]
    pieces = [sums.only(states & within.states) for sums, states in parts if sums is not None]
    if all(abs(float(value) - 1.0) <= _NEAR for piece in pieces for value, _ in piece):
        return None
    sure = [states for sums, states in parts if sums is None]
    pieces += [Partition(model.manager, {1.0: states}) for states in sure]
    return expand_sum(pieces, within)

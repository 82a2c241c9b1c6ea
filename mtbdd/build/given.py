"""Models without a text: diagrams that come from arrays, files or a caller's own manager."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.model_syntax import Command, ResolvedModel
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import StateIndex
from mtbdd.offset.vectors import expand

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class GivenReward:
    """A reward structure as functions of the states.

    Attributes
    ----------
    name : str or None
    states : SymbolicMatrix or None
        Over row bits: earned in a state, a step or, in a CTMC, a unit of time. None: nowhere.
    choices : tuple of SymbolicMatrix or None
        Over row bits, one a layer: earned by its choice, expected over its branches; in a CTMC by the
        transitions of a unit of time.
    """

    name: str | None
    states: SymbolicMatrix | None
    choices: tuple[SymbolicMatrix | None, ...]

    def values(
        self, within: StateIndex, with_states: bool, layer: int | None
    ) -> tuple[Vector, Vector | None]:
        """Return what states earn, and a bound on the error, None if there is none.

        Parameters
        ----------
        within : StateIndex
        with_states : bool
            Whether state rewards count.
        layer : int or None
            Whose choices' rewards count.

        Returns
        -------
        values, error : ndarray of float64, shape (within.size,)

        Notes
        -----
        Time: O(n). The error of a sum is that of its terms and of one rounding.
        """
        terms = [self.states] if with_states else []
        terms += [self.choices[layer]] if layer is not None else []
        values: Vector | None = None
        error = np.zeros(within.size)
        for term in terms:
            if term is None:
                continue
            own = expand(term, within)
            if term.units:
                # lemma: entry-units
                error += np.abs(own) * (term.units * 2.0**-53)
            if values is None:
                values = own
            else:
                exact = (values == 0) | (own == 0)
                values = values + own
                # lemma: interval-sum
                error += np.where(exact, 0.0, np.abs(values) * 2.0**-53)
        if values is None:
            return np.zeros(within.size), None
        return values, error * (1 + 2.0**-40) if error.any() else None  # lemma: interval-sum


@dataclass(frozen=True)
class TakenCommands:
    """The commands of a text that choices come from, by state.

    Attributes
    ----------
    commands : tuple of tuple of Command
        Of every way to take a choice the commands, one a module.
    layers : tuple of ndarray of int32, shape (n_states,)
        Of every layer the place in `commands` of each state's choice, by number of the state; -1 where it has
        none, or that of a deadlock.
    """

    commands: tuple[tuple[Command, ...], ...]
    layers: tuple[NDArray[np.int32], ...]


@dataclass(frozen=True)
class GivenParts:
    """What a model without commands has in their place.

    Attributes
    ----------
    exits : SymbolicMatrix or tuple of Partition
        Over row bits: what a row adds up to, or parts of it that add up; 1 in a DTMC.
    rewards : tuple of GivenReward
    relations : tuple of Relation
        The graph in parts, each with at most one choice of every state, of one layer.
    numbering : ndarray of int64, shape (n_states,), or None
        The index of the k-th state of the source; None if the source numbers them as the diagram does.
    text : ResolvedModel or None
        The text whose states were listed; None: there was none.
    taken : TakenCommands or None
        The commands of choices, where they are known.
    """

    exits: SymbolicMatrix | tuple[Partition, ...]
    rewards: tuple[GivenReward, ...]
    relations: tuple[Relation, ...]
    numbering: NDArray[np.int64] | None = None
    text: ResolvedModel | None = None
    taken: TakenCommands | None = None

    @property
    def is_listed(self) -> bool:
        """Whether the states of a text were listed."""
        return self.text is not None

"""Labels and rewards of a model by name, as vectors in the order of the states' numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import reward_rates, state_rewards
from mtbdd.build.state_order import for_users


class Labels(Mapping[str, NDArray[np.bool_]]):
    """The states where each label holds: ``labels["full"]``, bool, shape (n,).

    The labels of the text, and `init` and `deadlock`.  A vector is made when it is asked for.  Time: O(n).
    """

    def __init__(self, model: SymbolicModel) -> None:
        self._model = model
        self._labels = {label.name: label.expression for label in model.source.labels}

    def __getitem__(self, name: str) -> NDArray[np.bool_]:
        model = self._model
        if name in self._labels:
            states = model.states(self._labels[name])
        elif name in model.translator.labels:
            states = model.translator.labels[name]
        else:
            raise KeyError(f"{name!r}: expected one of the labels {', '.join(self)}")
        return for_users(model, model.indicator(states))

    def __iter__(self) -> Iterator[str]:
        yield from self._labels
        yield from (name for name in self._model.translator.labels if name not in self._labels)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._labels or name in self._model.translator.labels

    def __repr__(self) -> str:
        return f"<labels {', '.join(self)}>"


class Rewards(Mapping[str | int, NDArray[np.float64]]):
    """What each state earns by itself: ``rewards["cost"]``, float64, shape (n,).

    A structure without a name goes by its place among all, counted from 0; so may every other.  Rewards of
    transitions are not part of it: see `rates`.  A vector is made when it is asked for.  Time: O(n).
    """

    def __init__(self, model: SymbolicModel) -> None:
        self._model = model

    def __getitem__(self, name: str | int) -> NDArray[np.float64]:
        return for_users(self._model, state_rewards(self._model, self._place(name), self._model.index))

    def rates(self, name: str | int) -> NDArray[np.float64]:
        """Return what a state of a chain earns a step or a unit of time, shape (n,), transitions included.

        Raises
        ------
        KeyError
            There is no such structure.
        ValueError
            The model is an MDP, where transition rewards depend on the choice.
        """
        return for_users(self._model, reward_rates(self._model, self._place(name), self._model.index))

    def __iter__(self) -> Iterator[str | int]:
        for place, structure in enumerate(self._model.source.rewards):
            yield place if structure.name is None else structure.name

    def __len__(self) -> int:
        return len(self._model.source.rewards)

    def __repr__(self) -> str:
        return f"<rewards {', '.join(map(str, self))}>"

    def _place(self, name: str | int) -> int:
        structures = self._model.source.rewards
        for place, structure in enumerate(structures):
            if name == structure.name or (type(name) is int and name == place):
                return place
        known = ", ".join(map(repr, self)) or "none"
        raise KeyError(f"{name!r}: expected one of the reward structures {known}")

"""Long-run averages by one linear program: the share of time of each choice, on an MDP written out.

Shares are balanced, and mass flows from the initial state to where they are (L. Kallenberg, Linear
programming and finite Markovian control problems, 1983; Puterman, Markov Decision Processes, section 9.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import bmat, coo_array, csr_array

from mtbdd.language import load_model, resolve
from tests.oracles.mdps import explore_mdp
from tests.oracles.optima import states_of

__all__ = ["LongRunProgram"]

Vector = NDArray[np.float64]


class LongRunProgram:
    """Averages of all schedulers, with memory and chance too, as linear functions of shares of time."""

    def __init__(self, path: Path, constants: Mapping[str, float]) -> None:
        self._mdp = mdp = explore_mdp(resolve(load_model(str(path)), constants))
        self._owner = np.array([s for s, own in enumerate(mdp.choices) for _ in own])
        rows = [row for own in mdp.choices for _, row in own]
        entries = [(t, c, float(p)) for c, row in enumerate(rows) for t, p in row.items()]
        targets, choices, values = zip(*entries, strict=True)
        shape = mdp.graph.n_states, len(rows)
        taken = coo_array((np.ones(len(rows)), (self._owner, np.arange(len(rows)))), shape=shape)
        leaving = taken - coo_array((values, (targets, choices)), shape=shape)
        self._flow = csr_array(bmat([[leaving, None], [taken, leaving]]))
        self._start = np.zeros(2 * shape[0])
        (initial,) = mdp.graph.initial
        self._start[shape[0] + initial] = 1.0

    def reward(self, name: str) -> Vector:
        """Return what each choice earns of a reward structure."""
        mdp = self._mdp
        place = [structure.name for structure in mdp.graph.source.rewards].index(name)
        states = mdp.state_rewards(place)
        by_action = {a: mdp.choice_rewards(place, a) for own in mdp.choices for a, _ in own}
        return np.array(
            [float(states[s] + by_action[a][s]) for s, own in enumerate(mdp.choices) for a, _ in own]
        )

    def share(self, wanted: Callable[[Any], bool]) -> Vector:
        """Return 1 of the choices of some states, given by a condition on their variables."""
        return np.isin(self._owner, list(states_of(self._mdp, wanted))).astype(np.float64)

    def best(
        self, earned: Vector, *, maximise: bool, limits: Sequence[tuple[Vector, float]] = ()
    ) -> float | None:
        """Return the best average where others have limits from above; None if nothing keeps to them."""
        size, sign = len(earned), -1.0 if maximise else 1.0
        found = linprog(
            np.concatenate([sign * earned, np.zeros(size)]),
            np.array([np.concatenate([row, np.zeros(size)]) for row, _ in limits]) if limits else None,
            [limit for _, limit in limits] or None,
            self._flow, self._start, method="highs",
        )  # fmt: skip
        if found.status == 2:
            return None
        assert found.status == 0, found.message
        return sign * float(found.fun)

"""What is asked of choices: how many states, which optimum, which states share a value."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.communicator import ALONE, Communicator


@dataclass(frozen=True, eq=False)
class Quotient:
    """States that share one value, the best of any of them: end components made one state by vectors.

    Attributes
    ----------
    members : ndarray, shape (m,), int64
        Places among the unknown states, group by group.
    starts : ndarray, shape (groups,), int64
        Where each group begins in `members`.
    shared : ndarray, shape (groups,), int64
        The number of every group among those that have members in several processes; -1 for the others.
    n_shared : int
        How many such groups there are, those without own members among them.
    """

    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    shared: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    n_shared: int = 0

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each group."""
        return np.diff(np.append(self.starts, len(self.members)))


@dataclass(frozen=True, eq=False)
class ChoiceProblem:
    """The best over all choices of some unknown states.

    Attributes
    ----------
    size : int
        Unknown states.
    maximise : bool
        Whether the best is the greatest.
    quotient : Quotient or None
        States that share one value.
    slack : float
        Bound on the relative error of one step, operands included.
    communicator : Communicator
        Who decides together where processes share the states.
    """

    size: int
    maximise: bool
    quotient: Quotient | None = None
    slack: float = 0.0
    communicator: Communicator = ALONE

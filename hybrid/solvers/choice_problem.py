"""What is asked of choices: how many states, which optimum, which states share a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Quotient:
    """States that share one value, the best of any of them: end components made one state by vectors.

    Attributes
    ----------
    members : ndarray, shape (m,), int64
        Places among the unknown states, group by group.
    starts : ndarray, shape (groups,), int64
        Where each group begins in `members`.
    """

    members: NDArray[np.int64]
    starts: NDArray[np.int64]

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
    """

    size: int
    maximise: bool
    quotient: Quotient | None = None
    slack: float = 0.0

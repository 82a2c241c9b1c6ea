"""What methods ask of steps over choices: the best of them, a policy, and the steps of a policy."""

from __future__ import annotations

from abc import abstractmethod

from hybrid.matrix.space.bellman import BellmanOperator, Rising
from hybrid.matrix.space.workspace import Array, Workspace


class Choosing(BellmanOperator):
    """``x -> opt over i of (A_i x + b_i)``.

    Attributes
    ----------
    maximise : bool
    changes : array, shape (2,)
        Greatest absolute and relative change of the last step, over all processes; see `Steps.changes`.
    """

    maximise: bool
    changes: Array

    @abstractmethod
    def improve(
        self,
        x: Array,
        out: Array,
        factor: float = 1.0,
        *,
        shape: Array | None = None,
        policy: Array | None = None,
    ) -> None:
        """Queue ``out = factor * opt (A_i x + b_i)``, or ``out = factor * opt (A_i x) + shape``.

        Parameters
        ----------
        x, out : array, shape (size,), float64
        factor : float
            1 - slack rounds down for certain, 1 / (1 - slack) rounds up.
        shape : array, shape (size,), float64, optional
            Takes the place of the gains, and is not scaled.
        policy : array, shape (size,), uint16, optional
            From `choose`: the choices to take, in place of the best ones.

        Notes
        -----
        Afterwards `changes` has the greatest absolute and relative difference between `out` and x.
        """

    @abstractmethod
    def follow(self, x: Array, out: Array, policy: Array) -> None:
        """Queue ``out = A x`` with the rows that a policy chooses; `changes` are left as they are."""

    def gauss_seidel(
        self,
        x: Array,
        out: Array,
        descending: bool,
        factor: float = 1.0,
        *,
        shape: Array | None = None,
        policy: Array | None = None,
    ) -> None:
        """Do as `improve` does, but each state from the newest values of those before it.

        Parameters
        ----------
        descending : bool
            Whether the last state comes first.

        Notes
        -----
        Parts of the states are improved at the same time, each from the values of the others in x.
        """
        raise NotImplementedError

    def added_up(self, shape: Array, policy: Array | None = None) -> Rising | None:
        """Return steps ``w -> shape + opt A_i w`` whose values rise; None where `improve` is all there is."""
        return None

    @property
    @abstractmethod
    def has_policies(self) -> bool:
        """Whether `of_policy` is there: on the host, and on a device that has all states."""

    @abstractmethod
    def of_policy(self, policy: Array) -> Workspace:
        """Return the workspace beside the matrix of the rows that a policy chooses.

        Parameters
        ----------
        policy : array, shape (size,), uint16
            From `choose`.

        Notes
        -----
        On a device a product allocates nothing, so that recurrences can be recorded.
        """

    @abstractmethod
    def choose(self, x: Array) -> Array:
        """Return the layer whose choice is best at x in every state, shape (size,), uint16.

        Of equal ones the first.  Of a group of states one only has a choice, a best one, the others
        `NO_CHOICE`.
        """

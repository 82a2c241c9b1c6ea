"""Why a device does not take the layers of a decision process fused, and what is done instead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.matrix.backends import Backend, CpuBackend
from hybrid.matrix.space.choice_problem import ChoiceProblem
from mtbdd.base.communicator import Communicator

NOTHING_TO_MULTIPLY = "every choice leaves the unknown states at once: there is nothing to multiply"
"""Why such a system stays on the CPU, whatever was asked for."""

_SMALL_STATES = 1 << 16
"""Unknown states below which ``auto`` never takes the device."""


@dataclass(frozen=True)
class Ineligible:
    """A reason against a fused step.

    Attributes
    ----------
    reason : str
        In words.
    is_final : bool
        Whether it speaks against the device altogether, so that ``auto`` takes the CPU; else layers may still
        go one by one there.
    """

    reason: str
    is_final: bool

    def applied_to(self, engine: Backend) -> Backend:
        """Return the backend to take instead of the device, with the reason; other backends stay.

        Parameters
        ----------
        engine : Backend
            The backend chosen so far.
        """
        if engine.name != "gpu":
            return engine
        if self.is_final and engine.is_free:
            return CpuBackend(self.reason)
        return replace(engine, reason=f"{engine.reason}; layers one by one: {self.reason}")


def why_ineligible(engine: Backend, problem: ChoiceProblem) -> Ineligible | None:
    """Return why the layers are not held for a fused step, with a row for every unknown state in each.

    Parameters
    ----------
    engine : Backend
        That matrices are asked for on.
    problem : ChoiceProblem

    Returns
    -------
    Ineligible or None
        None if they are; the same in all processes that share the states.
    """
    if engine.name != "gpu":
        return Ineligible(engine.reason, True)
    size = int(problem.communicator.total([problem.size])[0])
    if size == 0:
        return Ineligible("no state is unknown", True)
    if engine.is_free and size < _SMALL_STATES:
        return Ineligible(
            f"{size} unknown states are too few for the GPU to be faster (below {_SMALL_STATES})", True
        )
    return None


def refusal_of_all(communicator: Communicator, own: Ineligible | None) -> Ineligible | None:
    """Return why the first process that refuses does so: then no process takes a fused step.

    Parameters
    ----------
    communicator : Communicator
    own : Ineligible or None
        Why this process refuses; None if it does not.
    """
    reason = communicator.first_text(None if own is None else own.reason)
    is_final = communicator.any(own is not None and own.is_final)
    return None if reason is None else Ineligible(reason, is_final)

"""Why a device does not take the layers of a decision process in one pass, and what is done instead."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_kernels import device_problem
from hybrid.core.backend import BackendChoice
from hybrid.run.options import CheckOptions

__all__ = ["NOTHING_TO_MULTIPLY", "Refusal", "refuse_device"]

NOTHING_TO_MULTIPLY = "every choice leaves the unknown states at once: there is nothing to multiply"
"""Why such a system stays on the CPU, whatever was asked for."""

_SMALL_STATES = 1 << 16
"""Unknown states below which ``auto`` never takes the device."""


@dataclass(frozen=True)
class Refusal:
    """A reason against one pass.

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

    def applied_to(self, engine: BackendChoice, asked: str) -> BackendChoice:
        """Return what is left of a choice of the device, with the reason; other choices stay as they are.

        Parameters
        ----------
        engine : BackendChoice
            What :func:`hybrid.core.backend.choose_backend` returned for `asked`.
        """
        if engine.name != "gpu":
            return engine
        if self.is_final and asked == "auto":
            return BackendChoice("cpu", self.reason)
        return BackendChoice("gpu", f"{engine.reason}; layers one by one: {self.reason}")


def refuse_device(options: CheckOptions, size: int) -> Refusal | None:
    """Return why offers for one pass, with a row for every unknown state, are not worth making.

    Returns
    -------
    Refusal or None
        None if they are.
    """
    backend = options.matrix_backend()
    if backend not in ("auto", "gpu"):
        return Refusal(options.host_reason() or "asked for", True)
    problem = device_problem()
    if problem is not None:
        return Refusal(f"no GPU: {problem}", True)
    if size == 0:
        return Refusal("no state is unknown", True)
    if backend == "auto" and size < _SMALL_STATES:
        return Refusal(
            f"{size} unknown states are too few for the GPU to be faster (below {_SMALL_STATES})", True
        )
    return None

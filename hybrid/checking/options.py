"""What a caller may choose about a check, verified once."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.backend import choose_backend
from hybrid.options import OptionError
from hybrid.solvers import Criterion, Jacobi, Power

__all__ = ["ENGINES", "METHODS", "CheckOptions"]

ENGINES = ("hybrid",)
METHODS = ("auto", "jacobi", "jor", "power")
_STEADY_OMEGA = 0.9  # breaks the period of jump chains, for which plain Jacobi never settles


@dataclass(frozen=True)
class CheckOptions:
    """Engine, backend, injection level, method and precision of a check.

    Attributes
    ----------
    engine : {"hybrid"}
    backend : {"auto", "cpu", "reference"}
    level : {"auto", "min-memory", "min-time"} or int
        Injection level, see `hybrid.inject`.
    method : {"auto", "jacobi", "jor", "power"}
        "auto" is Jacobi for linear systems and JOR with omega 0.9 for steady states.
    omega : float, optional
        Relaxation of JOR; default 0.9.
    criterion : Criterion
        When iterations stop.

    Raises
    ------
    OptionError
        A value that is not offered.
    """

    engine: str = "hybrid"
    backend: str = "auto"
    level: str | int = "auto"
    method: str = "auto"
    omega: float | None = None
    criterion: Criterion = Criterion()

    def __post_init__(self) -> None:
        """Check the names."""
        if self.engine not in ENGINES:
            raise OptionError(f"engine {self.engine!r} is not offered by this version; choose hybrid")
        if self.method not in METHODS:
            raise OptionError(f"method {self.method!r} is not offered; choose one of {', '.join(METHODS)}")
        try:
            choose_backend(self.backend)
        except ValueError as error:
            raise OptionError(str(error)) from None
        if self.omega is not None and self.method not in ("auto", "jor"):
            raise OptionError(f"omega belongs to the method jor, not to {self.method}")
        if self.omega is not None and not 0 < self.omega < 2:
            raise OptionError(f"omega must lie between 0 and 2, got {self.omega}")

    @classmethod
    def of(
        cls,
        engine: str = "hybrid",
        backend: str = "auto",
        level: str | int = "auto",
        method: str = "auto",
        omega: float | None = None,
        epsilon: float = 1e-8,
        absolute: bool = False,
        max_iterations: int = 100_000,
    ) -> CheckOptions:
        """Return options from plain values; every senseless one is an `OptionError`."""
        try:
            criterion = Criterion(epsilon, absolute, max_iterations)
        except ValueError as error:
            raise OptionError(str(error)) from None
        return cls(engine, backend, level, method, omega, criterion)

    def solver(self, steady: bool) -> Jacobi | Power:
        """Return the method for a linear system or for a steady state."""
        if self.method == "power":
            return Power(self.criterion)
        if self.method == "jacobi":
            return Jacobi(self.criterion)
        if self.method == "jor" or self.omega is not None:
            return Jacobi(self.criterion, _STEADY_OMEGA if self.omega is None else self.omega)
        return Jacobi(self.criterion, _STEADY_OMEGA if steady else 1.0)

"""Errors of options, properties, solutions, files and certificates, each a `HybridError`.

Faults of model and property texts are `mtbdd.language.LanguageError`, which is a `HybridError` too.
"""

from __future__ import annotations

from enum import Enum

from mtbdd.base.errors import HybridError as HybridError


class OptionError(HybridError, ValueError):
    """An option with a value that does not exist, does not fit, or is not offered by this version."""


class PropertyError(HybridError, ValueError):
    """A property that has no answer on this model: what it asks for does not exist or does not fit."""


class UnsupportedError(HybridError, NotImplementedError):
    """A property that parses but that this version cannot check."""


class NotConvergedError(HybridError, ArithmeticError):
    """An iteration that did not reach an answer.

    `status` says how it ended, a `hybrid.solvers.Status`, whose text says so in words.
    """

    def __init__(self, what: str, status: Enum, iterations: int, difference: float) -> None:
        self.status = status
        detail = f"after {iterations} iterations, last difference {difference:.3g}"
        super().__init__(f"{what}: {status} ({detail})")


class UnknownError(HybridError, ArithmeticError):
    """A comparison that the bounds of a value do not decide."""


class NotExactError(HybridError, ArithmeticError):
    """A question that is not answered in rational numbers, or would take too long."""


class CertificateError(HybridError, ValueError):
    """A certificate that does not show what it claims: damaged, of another model, or a broken inequality."""


class CheckpointError(HybridError, ValueError):
    """A folder of checkpoints that is of no use here: damaged, or of another check."""


class DiskError(HybridError, MemoryError):
    """A folder for long arrays that has no room for them, or whose disk lost what was written there."""


class InterchangeError(HybridError, ValueError):
    """A file or arrays that are no model, or a model that does not fit a format.

    The message has the place (file and line, or file, array and index), what was expected, what came and what
    to do.
    """


class NotCertifiableError(HybridError, ValueError):
    """A property or model for which there is no certificate."""


class ModellingError(HybridError, ValueError):
    """A model written in Python that is none: a wrong argument, a function that fails, a fault in a state.

    The message has the place (file and line of the call), what was expected, what came and what to do.
    """

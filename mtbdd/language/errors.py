"""Faults of a text in the PRISM language: what is wrong, and where.

A syntax error ends the reading at once.  Faults of names, types and values are collected,
so that one run reports them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mtbdd.language.syntax import Position

__all__ = [
    "EvaluationError",
    "Fault",
    "FaultCollector",
    "LanguageError",
    "SourceError",
    "SyntaxFaultError",
    "suggestion",
]


@dataclass(frozen=True)
class Fault:
    """One fault: its place and a message saying what was expected, what came and what to do."""

    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.message}"


class LanguageError(ValueError):
    """A text that cannot be used; its string has one line a fault, `file:line:column: message`.

    Parameters
    ----------
    faults : iterable of Fault
        At least one.

    Attributes
    ----------
    faults : tuple of Fault
        Sorted by line and column (faults of one file), without repetitions.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        unique = dict.fromkeys(faults)
        # Sorting by file name as well would tear a properties file's faults from their own order.
        self.faults = tuple(sorted(unique, key=lambda f: (f.position.line, f.position.column)))
        super().__init__("\n".join(str(fault) for fault in self.faults))

    @classmethod
    def single(cls, position: Position, message: str) -> LanguageError:
        """Return an error of one fault."""
        return cls([Fault(position, message)])


class SourceError(LanguageError):
    """A file that cannot be read as text."""


class SyntaxFaultError(LanguageError):
    """A text that does not follow the grammar; holds the first fault only."""


class EvaluationError(LanguageError):
    """An expression without a value: a division by zero, a missing variable, an overflow."""


class FaultCollector:
    """Gathers faults, so that a model's are reported together."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, position: Position, message: str) -> None:
        """Note one fault."""
        self._faults.append(Fault(position, message))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Note several faults."""
        self._faults.extend(faults)

    def raise_if_any(self) -> None:
        """Raise the collected faults.

        Raises
        ------
        LanguageError
            If there is any.
        """
        if self._faults:
            raise LanguageError(self._faults)


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` for the candidate closest to a misspelt name, else an empty text."""
    # Only a faulty text pays for this import.
    from difflib import get_close_matches

    close = get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""

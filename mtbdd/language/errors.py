"""Faults of a text in the PRISM language: what is wrong, and where.

A syntax error ends the reading at once.  Faults of names, types and values are collected,
so that one run reports them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from mtbdd.base.errors import HybridError
from mtbdd.base.records import Record
from mtbdd.language.limits import current, raised
from mtbdd.language.syntax import Position

_LISTED = 20  # names in a message
_LONGEST_NAME = 60  # a name to which another is offered; longer ones are surely no slips
_CANDIDATES = 2_000  # names that are compared with a misspelt one


class Fault(Record):
    """One fault: its place, `position`, and `message`: what was expected, what came and what to do."""

    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.message}"


class UsageFault(Fault):
    """A question that does not fit the kind of the model, wrong usage: `P=?` on an MDP."""


class LanguageError(HybridError, ValueError):
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

    @property
    def is_usage(self) -> bool:
        """Whether a question does not fit the kind of the model."""
        return any(isinstance(fault, UsageFault) for fault in self.faults)

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
    """Gathers faults, so that a model's are reported together; as many as the limits allow."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._most = current().faults

    def __len__(self) -> int:
        return len(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, position: Position, message: str) -> None:
        """Note one fault, see `extend`."""
        self.extend([Fault(position, message)])

    def extend(self, faults: Iterable[Fault]) -> None:
        """Note some faults.

        Raises LanguageError: there are more faults than the limits allow; it holds those that they do.
        """
        for fault in faults:
            if len(self._faults) >= self._most:
                advice = f"more than {self._most} faults: mend these first, or {raised('faults')}"
                raise LanguageError([*self._faults, Fault(fault.position, advice)])
            self._faults.append(fault)

    def raise_if_any(self) -> None:
        """Raise the collected faults.

        Raises LanguageError: if there is any.
        """
        if self._faults:
            raise LanguageError(self._faults)


def listed(names: Sequence[str]) -> str:
    """Return names for a message, separated by commas; of many the first ones."""
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def shown_circle(names: Sequence[str], sign: str = " -> ") -> str:
    """Return names on a circle for a message, the first one again at the end; a long circle is cut short."""
    if len(names) <= _LISTED:
        return sign.join([*names, names[0]])
    return sign.join([*names[: _LISTED - 1], f"... ({len(names) - _LISTED} more)", names[-1], names[0]])


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` for the candidate closest to a misspelt name, else an empty text.

    Long names, and all but the first 2,000 candidates, are not examined: a comparison takes time.
    """
    if len(name) > _LONGEST_NAME:
        return ""
    # Only a faulty text pays for this import.
    from difflib import get_close_matches

    compared = [c for c in islice(candidates, _CANDIDATES) if len(c) <= _LONGEST_NAME]
    close = get_close_matches(name, compared, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


# Faults of a model found while it is built: what is wrong, where in the text, in which state.


class BuildError(LanguageError):
    """A model that parses but cannot be built; carries every fault found, each with its place."""


def format_state(values: dict[str, bool | int]) -> str:
    """Return a state as text, `(a=1, b=true)`."""
    parts = (f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())
    return f"({', '.join(parts)})"

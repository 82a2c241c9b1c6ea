"""Values of a JSON text, checked where they are taken, with their places."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from hybrid.interchange.faults import InterchangeError


class JsonValue:
    """A value with its place in a text.

    Parameters
    ----------
    value : object
        As `json.loads` returns it.
    place : str
        File, member, and the keys that lead to the value.
    """

    def __init__(self, value: Any, place: str) -> None:
        self._value = value
        self.place = place

    def fault(self, expected: str, advice: str = "correct it") -> InterchangeError:
        """Return the error that another value was expected here."""
        return InterchangeError(f"{self.place}: expected {expected}, got {_shown(self._value)}; {advice}")

    def entry(self, key: str) -> JsonValue:
        """Return an entry that must be there."""
        found = self.optional(key)
        if found is None:
            raise InterchangeError(f"{self.place}: expected an entry {key!r}, got none; add it")
        return found

    def optional(self, key: str) -> JsonValue | None:
        """Return an entry, or None where it is missing or null."""
        if not isinstance(self._value, dict):
            raise self.fault("an object")
        value = self._value.get(key)
        return None if value is None else JsonValue(value, f"{self.place}.{key}")

    def entries(self) -> list[tuple[str, JsonValue]]:
        """Return all entries of an object."""
        if not isinstance(self._value, dict):
            raise self.fault("an object")
        return [(key, JsonValue(value, f"{self.place}.{key[:80]}")) for key, value in self._value.items()]

    def elements(self) -> list[JsonValue]:
        """Return the elements of an array."""
        if not isinstance(self._value, list):
            raise self.fault("an array")
        return [JsonValue(value, f"{self.place}[{k}]") for k, value in enumerate(self._value)]

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self._value, str):
            raise self.fault("a string")
        return self._value

    def name(self, among: Collection[str]) -> str:
        """Return a string that is one of some."""
        if not isinstance(self._value, str) or self._value not in among:
            raise self.fault(f"one of {', '.join(sorted(among))}")
        return self._value

    def flag(self) -> bool:
        """Return a truth value."""
        if not isinstance(self._value, bool):
            raise self.fault("true or false")
        return self._value

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`."""
        value = self._value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fault(f"an integer from {low} to {high}")
        return value


def parsed_json(data: bytes, place: str) -> JsonValue:
    """Return the value that a text of JSON in UTF-8 has.

    Raises
    ------
    InterchangeError
        No such text, one with a key twice, or one nested too deep.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_repetition, parse_constant=_no_constant
        )
    except RecursionError:
        raise InterchangeError(
            f"{place}: expected a JSON text, got one with too many brackets inside each other; write it again"
        ) from None
    except ValueError as error:
        raise InterchangeError(
            f"{place}: expected a JSON text in UTF-8, got another one ({error}); write it again"
        ) from None
    return JsonValue(value, place)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} stands twice in an object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 200 else "a longer integer"
    return text if len(text) <= 80 else f"{text[:77]}..."

"""Arguments of a compiled function that many threads call together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PerPart:
    """An argument with one value for every part of a call.

    Parameters
    ----------
    values : sequence of int, or ndarray with a row a part
    """

    def __init__(self, values: Sequence[int] | NDArray[Any]) -> None:
        self.values = values


class SharedArguments:
    """Arguments shared by many calls, whose words are computed once.

    Parameters
    ----------
    arguments : tuple
        Of arrays and numbers.

    Attributes
    ----------
    words : tuple of CallEntry, ndarray, or None
        The words for an entry, see `hybrid.matrix.cpu.entries`; None until a call asks for them.
    """

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.words: tuple[Any, NDArray[np.int64]] | None = None


def arguments_of_part(arguments: Sequence[Any], part: int) -> list[Any]:
    """Return the arguments of one part, as the function itself takes them."""
    found: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if kind is SharedArguments:
            found += argument.arguments
        else:
            found.append(argument.values[part] if kind is PerPart else argument)
    return found

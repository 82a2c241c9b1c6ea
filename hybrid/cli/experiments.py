"""Experiments: ranges of constants."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from itertools import product

from hybrid.errors import OptionError

_MOST = 100_000  # combinations; more are surely a slip
_MOST_DIGITS = 400  # a double has fewer in front of the point and behind it


def expand_ranges(text: str) -> list[str]:
    """Return the combinations that constants with ranges stand for, each as constants without ranges.

    Parameters
    ----------
    text : str
        As `--const` takes it; ``N=2:10`` and ``N=2:2:10`` (from, step, to) are ranges.

    Returns
    -------
    list of str
        The last constant varies fastest; the text itself if it has no range.

    Raises
    ------
    OptionError
        A range that does not count upwards, or ends of it that are no numbers.

    Notes
    -----
    Steps are decimal, so that ``T=0:0.1:1`` ends with 1 and meets 0.3.
    """
    if ":" not in text:
        return [text]
    choices = []
    for item in text.split(","):
        name, sign, values = item.partition("=")
        choices.append([f"{name}={v}" for v in _range(name.strip(), values)] if ":" in values else [item])
    if math.prod(map(len, choices)) > _MOST:
        raise OptionError(f"--const: the ranges have more than {_MOST} combinations; choose larger steps")
    return [",".join(combination) for combination in product(*choices)]


def _range(name: str, text: str) -> list[str]:
    """Return the values of one range as texts."""
    parts = [part.strip() for part in text.split(":")]
    wrong = OptionError(
        f"--const: expected {name}=FROM:TO or {name}=FROM:STEP:TO with numbers, a positive step and "
        f"FROM not above TO, got '{text.strip()}'"
    )
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        raise wrong from None
    if len(numbers) not in (2, 3) or not all(number.is_finite() for number in numbers):
        raise wrong
    first, last = numbers[0], numbers[-1]
    step = numbers[1] if len(numbers) == 3 else Decimal(1)
    if step <= 0 or first > last:
        raise wrong
    if any(abs(number.adjusted()) > _MOST_DIGITS for number in numbers if number):
        raise OptionError(
            f"--const: the numbers of the range of {name} need more than {_MOST_DIGITS} digits when they are "
            "written out; choose others"
        )
    count = int((last - first) / step) + 1
    if count > _MOST:
        raise OptionError(f"--const: the range of {name} has more than {_MOST} values; choose a larger step")
    return [f"{first + k * step:f}" for k in range(count)]

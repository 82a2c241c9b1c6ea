"""Experiments: ranges of constants as the command line takes them."""

from __future__ import annotations

from itertools import product

from hybrid.app.experiments import count_runs, range_values
from mtbdd.language.constants import constant_items, is_range


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
    choices = []
    for item in constant_items(text):
        name, _, values = item.partition("=")
        choices.append(
            [f"{name}={v}" for v in range_values(name.strip(), values)] if is_range(values) else [item]
        )
    count_runs(map(len, choices))
    return [",".join(combination) for combination in product(*choices)]

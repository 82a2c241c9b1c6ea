"""Strong bisimulation by definition: split blocks until nothing changes, in rational numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

__all__ = ["coarsest_partition"]

Row = Mapping[int, Fraction]


def coarsest_partition(
    choices: Sequence[Sequence[tuple[Hashable, Row]]], classes: Sequence[Hashable], skip_own: bool = False
) -> list[int]:
    """Return the block of every state, numbered in order of their first states.

    Parameters
    ----------
    choices : sequence of sequence of (class, row)
        What every state may do, as successor -> number; one each in a chain.
    classes : sequence
        What tells states apart from the beginning.
    skip_own : bool
        Whether numbers into the own block do not count.
    """
    block = _numbered(list(classes))
    while True:
        signatures = []
        for state, own in enumerate(choices):
            does = set()
            for kind, row in own:
                sums: dict[int, Fraction] = {}
                for target, number in row.items():
                    if not (skip_own and block[target] == block[state]):
                        sums[block[target]] = sums.get(block[target], Fraction(0)) + number
                does.add((kind, frozenset(sums.items())))
            signatures.append((block[state], frozenset(does)))
        finer = _numbered(signatures)
        if finer == block:
            return block
        block = finer


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    places: dict[Hashable, int] = {}
    return [places.setdefault(key, len(places)) for key in keys]

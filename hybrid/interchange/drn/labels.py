"""Labels of states in DRN files."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.drn.lines import PickedSection
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.heads import shown
from hybrid.interchange.text.source import SMALL
from hybrid.interchange.text.words import distinct_words
from mtbdd.memory import free_memory_bytes

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

_LABEL = re.compile(r'\s*(?:"([^"]+)"|([^\s"]+))(?=\s|"|$)')


def read_state_labels(section: PickedSection, n_states: int) -> tuple[dict[str, Mask], Mask]:
    """Return the labels behind the numbers of states.

    Parameters
    ----------
    section : PickedSection
        A line a state; labels with blanks are in quotes.
    n_states : int

    Returns
    -------
    labels : dict of str to ndarray of bool, shape (n_states,)
        Without ``init``, in the order in which they come.
    initial : ndarray of bool, shape (n_states,)

    Raises
    ------
    InterchangeError
        Quotes that do not match, labels beyond the memory, or no ``init``.

    Notes
    -----
    Sets of labels that are equal are read once. Time: O(text + sets + labels * states).
    """
    data = np.frombuffer(section.data, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    codes, first = distinct_words(data, starts, ends)
    order = np.argsort(first, kind="stable")
    sets: dict[int, list[str]] = {}
    names: dict[str, int] = {}
    for code in order.tolist():
        k = int(first[code])
        sets[code] = _labels(section, k, data[int(starts[k]) : int(ends[k])].tobytes())
        for name in sets[code]:
            names.setdefault(name, len(names))
    # A column a label and a row a set would be as large as the labels are themselves, where all sets differ.
    needed = 2 * len(names) * n_states
    if needed > SMALL and needed > (free := free_memory_bytes() // 2):
        raise InterchangeError(
            f"{section.place(0)}: labels that fit the memory expected, got {len(names)} of {n_states} "
            f"states, which need {needed} bytes of {free}; write fewer labels"
        )
    table = np.zeros((len(names), first.size), dtype=bool)
    for code, own in sets.items():
        table[[names[name] for name in own], code] = True
    masks = {name: table[k][codes] for name, k in names.items()}
    initial = masks.pop("init", None)
    if initial is None:
        raise InterchangeError(
            f"{section.place(0)}: a label 'init' of at least one state expected, got none; label the "
            "initial states"
        )
    return masks, initial


def _labels(section: PickedSection, line: int, text: bytes) -> list[str]:
    """Return the labels of a line."""
    found, end, written = [], 0, text.decode("utf-8").strip()
    while end < len(written):
        match = _LABEL.match(written, end)
        if match is None:
            raise InterchangeError(
                f"{section.place(line)}: labels with blanks between them, in quotes if need be, expected, "
                f"got {shown(text)}; mend this line"
            )
        found.append(match[1] or match[2])
        end = match.end()
    return found

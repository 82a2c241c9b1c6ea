"""Paths as lines of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

import numpy as np

from hybrid.checking.simulation.record import SamplePaths
from hybrid.checking.simulation.sampler import Sampler
from hybrid.checking.simulation.variables import Array

_ROWS = 1 << 18
"""States that are recorded before they are written."""

_PIECE = 1 << 14
"""Steps of a single path that are recorded before they are written, so that a long one is seen to grow."""

_LINES = 1 << 14
"""Lines of a text."""


def csv_texts(sampler: Sampler, progress: Callable[[str], None] | None = None) -> Iterator[str]:
    """Yield the paths of a sampler as CSV, some lines at a time, the names of the columns first.

    The columns are ``path`` and ``step``, counted from 0, ``time`` in a CTMC, ``action``, which is what led
    to the state (empty for the first one, for unlabelled commands and for the loop of a state without
    transitions), the variables, and for every reward structure what is earned on the way to the state.

    Notes
    -----
    Memory: some ten MB, however many paths and steps there are.
    """
    names = [f"reward {name}" for name in sampler.earnings]
    time = ["time"] if sampler.is_timed else []
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(
        ["path", "step", *time, "action", *sampler.rules.variables.names, *names]
    )
    yield header.getvalue()
    width = max(1, _ROWS // (sampler.steps + 1))
    for first, count in sampler.batches(width):
        # Lines stand path by path, so that only a path by itself can be written before its end.
        for begin, part in sampler.pieces(first, count, _PIECE if count == 1 else None, progress):
            yield from _texts(part, first, begin)


def _texts(part: SamplePaths, first: int, begin: int) -> Iterator[str]:
    """Yield the lines of one piece; its first states are left out where they ended the one before."""
    ends = part.lengths + 1 if not begin else part.lengths
    shift = 1 if begin else 0
    paths = np.repeat(np.arange(ends.size), ends)
    steps = np.arange(paths.size) - np.repeat(np.cumsum(ends) - ends, ends) + shift
    for k in range(0, paths.size, _LINES):
        yield _lines(part, paths[k : k + _LINES], steps[k : k + _LINES], first, begin)


def _lines(part: SamplePaths, paths: Array, steps: Array, first: int, begin: int) -> str:
    """Return the lines of some states, given by path and step within a piece."""
    columns = [map(str, (paths + first).tolist()), map(str, (steps + begin).tolist())]
    if part.times is not None:
        columns.append(map(repr, part.times[paths, steps].tolist()))
    names = [*part.action_names, "", ""]  # -2 and -1 have no name
    taken = np.full(paths.shape, -1)
    moved = steps > 0
    taken[moved] = part.actions[paths[moved], steps[moved] - 1]
    columns.append(map(names.__getitem__, taken.tolist()))
    for states in part.states.values():
        found = states[paths, steps]
        if found.dtype == np.bool_:
            columns.append(map(("false", "true").__getitem__, found.tolist()))
        else:
            columns.append(map(str, found.tolist()))
    columns += [map(repr, earned[paths, steps].tolist()) for earned in part.rewards.values()]
    return "".join(",".join(line) + "\n" for line in zip(*columns, strict=True))

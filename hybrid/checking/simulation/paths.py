"""Sample paths of a model, from its text to arrays."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hybrid.checking.simulation.functions import Array
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.sampler import Constants, Model, Sampler, resolved_model
from hybrid.checking.simulation.walk import SamplePaths

# Paths as lines of CSV.

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


def simulate(
    model: Model,
    steps: int = 100,
    paths: int = 1,
    seed: int = 0,
    until: float | None = None,
    *,
    constants: Constants | None = None,
    start: Mapping[str, bool | int] | None = None,
    rewards: bool = False,
    progress: Callable[[str], None] | None = None,
) -> SamplePaths:
    """Draw paths of a model from its text, without building it.

    Parameters
    ----------
    model : ResolvedModel or path-like
        From `mtbdd.language.resolve`, or a file in the PRISM language.
    steps : int
        Steps of every path.
    paths : int
        How many paths.
    seed : int
        Not negative. Path `i` depends on the seed and on `i` alone.
    until : float, optional
        End paths of a CTMC with the state that they are in at this time.
    constants : mapping, optional
        Values of constants that the file leaves open.
    start : mapping of str to bool or int, optional
        Values of variables in the first state. Where `init ... endinit` leaves several states, one of them is
        drawn for every path, each as likely as any other.
    rewards : bool
        Also add up what the paths earn.
    progress : callable, optional
        Called with a line of text now and then.

    Returns
    -------
    SamplePaths

    Raises
    ------
    LanguageError
        The model cannot be read, or a path comes to a state in which it is at fault: told with its place.
    OptionError
        A number is out of range, or `until` is given for a model without time.
    MemoryError
        There is no room for the record.

    Notes
    -----
    In a DTMC a command is chosen among the enabled ones, each as likely as any other, and then one of its
    updates; in a CTMC all enabled ones race; in an MDP the choice is uniform, too, which is one scheduler
    among many. A state without transitions keeps a loop of rate (probability) 1.

    Time: O(steps × paths × commands) in operations on arrays. Memory: the record, and some arrays of
    ``events × paths``, for at most 2^23 entries at a time.
    """
    rules = Rules(resolved_model(model, constants))
    sampler = Sampler(rules, steps, paths, seed, until, start, rewards)
    sampler.require_room()
    return sampler.whole(progress)

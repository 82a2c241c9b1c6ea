"""Sample paths of a model, from its text to arrays."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hybrid.base.errors import OptionError
from hybrid.checking.simulation.functions import MISSING, TRUE, Array, Ints, Variables, condition
from hybrid.checking.simulation.rules import RewardStructureRules, Rules
from hybrid.checking.simulation.walk import WIDTH, Draws, EventDraw, PathBatch, Record, SamplePaths
from mtbdd.base.budget import check_budget
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.language import load_model, resolve
from mtbdd.language.errors import BuildError, Fault, listed, suggestion
from mtbdd.language.syntax import ModelType, ResolvedModel

# Batches of paths: where they begin, and what they draw.

# The states in which paths begin.

_MOST = 1 << 20
"""Combinations of values that are looked through for those of `init ... endinit`."""


def initial_columns(
    model: ResolvedModel, variables: Variables, given: Mapping[str, bool | int] | None = None
) -> Ints:
    """Return the states in which paths may begin, int64, shape (variables, k).

    They are those of `init ... endinit` in lexicographic order, or the one of the initial values. Values that
    are given stand in place of initial ones, or choose among the states of `init ... endinit`. Raises
    OptionError where a given value is none of its variable's, or too many combinations are to be looked
    through, and BuildError where no state satisfies `init ... endinit`, or it has no value somewhere.
    """
    fixed = _checked(variables, given or {})
    if model.initial is None:
        column = [fixed.get(v.name, int(v.initial)) for v in model.variables]
        return np.array(column, dtype=np.int64).reshape(-1, 1)
    open_rows = [row for row, name in enumerate(variables.names) if name not in fixed]
    size = variables.size(open_rows)
    if size > _MOST:
        raise OptionError(
            f"start: expected at most {_MOST:,} combinations of values to look through for init ... endinit, "
            f"got {size:,}; give the values of more variables"
        )
    axes, shape = variables.axes(open_rows)
    states = np.empty((len(variables.names), size), dtype=np.int64)
    for row, name in enumerate(variables.names):
        own: Array = np.asarray(fixed[name] if name in fixed else axes[name], dtype=np.int64)
        states[row] = np.broadcast_to(own, shape).reshape(-1)
    names = {name: variables.typed(row, states[row]) for row, name in enumerate(variables.names)}
    codes = condition(variables, model.initial).over(names, (size,))
    if (codes == MISSING).any():
        state = variables.text(states[:, np.flatnonzero(codes == MISSING)[0]])
        message = f"expected a value in every state, got none in {state}; guard it with a condition"
        raise BuildError([Fault(model.initial.position, message)])
    found = states[:, codes == TRUE]
    if not found.shape[1]:
        message = "no state satisfies init ... endinit: the model has no initial state"
        if fixed:
            raise OptionError("start: no state with these values satisfies init ... endinit")
        raise BuildError([Fault(model.initial.position, message)])
    return found


def _checked(variables: Variables, given: Mapping[str, bool | int]) -> dict[str, int]:
    """Return given values as integers, each one of its variable's."""
    fixed = {}
    for name, value in given.items():
        if name not in variables.place:
            hint = suggestion(name, variables.names)
            raise OptionError(f"start: expected a variable of {listed(variables.names)}, got {name!r}{hint}")
        row = variables.place[name]
        low, high, is_bool = variables.low[row], variables.high[row], variables.is_bool[row]
        kinds = (bool, np.bool_) if is_bool else (int, np.integer)
        if not isinstance(value, kinds) or (not is_bool and isinstance(value, bool)):
            wanted = "true or false" if is_bool else "an integer"
            raise OptionError(f"start: expected {wanted} for {name}, got {value!r}")
        if not low <= value <= high:
            raise OptionError(f"start: expected {name} within {low}..{high}, got {value}")
        fixed[name] = int(value)
    return fixed


_CELLS = 1 << 23
"""Rates of events that a batch of paths holds at a time."""

Constants = Mapping[str, bool | int | float]
Model = SymbolicModel | ResolvedModel | str | os.PathLike[str]


def resolved_model(
    model: Model, constants: Constants | None, spare: frozenset[str] = frozenset()
) -> ResolvedModel:
    """Return the text of a model with its constants, read from a file where need be.

    The model need not declare spare constants. Raises OptionError if a symbolic model has no text.
    """
    if isinstance(model, SymbolicModel):
        text = model.source if model.given is None else model.given.text
        if text is None:
            raise OptionError("model: expected one with a text to draw paths from, got one of matrices")
        model = text
    if isinstance(model, ResolvedModel):
        if (constants or {}).keys() - (spare - model.constants.keys()):
            raise OptionError("constants: expected none for a model whose constants are resolved")
        return model
    return resolve(load_model(model), constants, ignore_unknown=spare)


def whole(value: int, name: str, least: int) -> int:
    """Return a number that is an integer and not too small; OptionError for others."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value < 2**62:
        raise OptionError(f"{name}: expected an integer from {least}, got {value!r}")
    return int(value)


class Sampler:
    """Draws recorded paths in batches; parameters as for `simulate`."""

    def __init__(
        self,
        rules: Rules,
        steps: int,
        paths: int,
        seed: int,
        until: float | None = None,
        start: Mapping[str, bool | int] | None = None,
        rewards: bool = False,
    ) -> None:
        self.rules, self._events = rules, EventDraw(rules)
        self.steps, self.paths, self.seed = (
            whole(steps, "steps", 0),
            whole(paths, "paths", 1),
            whole(seed, "seed", 0),
        )
        self.is_timed = rules.type is ModelType.CTMC
        if until is not None and not self.is_timed:
            raise OptionError("until: expected a CTMC for an end of time; give steps")
        if until is not None and not 0 <= until < math.inf:
            raise OptionError(f"until: expected a finite time of at least 0, got {until!r}")
        self.until = until
        self.initial = initial_columns(rules.model, rules.variables, start)
        structures = rules.model.rewards if rewards else ()
        self.earnings = {
            s.name or str(i): RewardStructureRules(rules, s) for i, s in enumerate(structures, 1)
        }

    @property
    def row_bytes(self) -> int:
        """Bytes that one state of one path takes in a record."""
        cells = sum(kind.itemsize for kind in self.rules.variables.types)
        return cells + 4 + 8 * (self.is_timed + len(self.earnings))

    def require_room(self) -> None:
        """Refuse more paths than there is memory for their record."""
        needed = (self.steps + 1) * self.paths * self.row_bytes
        require_memory(needed, f"the record of {self.paths} paths", "ask for fewer steps or paths")

    def batches(self, most: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the first path and the number of paths of each batch.

        At most `most` paths are one; by default so many that arrays stay in caches.
        """
        width = max(1, min(8, _CELLS // (WIDTH * max(1, len(self.rules.events))))) * WIDTH
        width = width if most is None else min(width, most)
        for first in range(0, self.paths, width):
            yield first, min(width, self.paths - first)

    def walk(self, first: int, count: int) -> PathBatch:
        """Return some paths in their first states."""
        draws = Draws(self.seed, first, count, self.rules.draws, self.is_timed)
        uniform = draws.start(count)
        among = self.initial.shape[1]
        chosen = np.minimum((uniform * among).astype(np.int64), among - 1)
        return PathBatch(self._events, self.initial[:, chosen], draws)

    def whole(self, progress: Callable[[str], None] | None = None) -> SamplePaths:
        """Return the record of all paths."""
        record = Record(self.rules, self.earnings, self.paths, self.steps, self.until)
        for first, count in self.batches():
            walk, part = self.walk(first, count), record.part(first, count)
            part.begin(walk)
            self._advance(walk, part, first, 0, self.steps, progress)
        return record.paths()

    def pieces(
        self, first: int, count: int, most: int | None = None, progress: Callable[[str], None] | None = None
    ) -> Iterator[tuple[int, SamplePaths]]:
        """Yield the record of some paths, in pieces of at most so many steps, each with its first step.

        A piece begins with the states in which the one before ends; none begins behind the end of all paths.
        """
        walk = self.walk(first, count)
        before: Record | None = None
        begin = 0
        while before is None or (begin < self.steps and walk.paths.size):
            length = self.steps - begin if most is None else min(most, self.steps - begin)
            record = Record(self.rules, self.earnings, count, length, self.until)
            if before is None:
                record.begin(walk)
            else:
                record.follow(before, walk)
            self._advance(walk, record, first, begin, length, progress)
            yield begin, record.paths()
            before, begin = record, begin + length

    def _advance(
        self,
        walk: PathBatch,
        record: Record,
        first: int,
        begin: int,
        length: int,
        progress: Callable[[str], None] | None,
    ) -> None:
        """Let paths make some steps, and note them."""
        for k in range(length):
            if not walk.paths.size:
                record.rest(k)
                break
            if k % 64 == 0:
                check_budget()
                if progress is not None:
                    progress(f"path {first + 1} of {self.paths}, step {begin + k} of {self.steps}")
            record.step(walk, k)


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
        # Lines stand path by path, so that only a single path can be written before its end.
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
    """Draw paths of a model from its text.

    Parameters
    ----------
    model : path-like, SymbolicModel or ResolvedModel
        A file in the PRISM language, which is not built, a model from `hybrid.load` or `hybrid.parse`, or one
        from `mtbdd.language.resolve`.
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
        The model cannot be read, or a path comes to a state in which it is at fault: reported with its place.
    OptionError
        A number is out of range, `until` is given for a model without time, or the model has no text.
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

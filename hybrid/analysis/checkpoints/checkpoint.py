"""A folder of checkpoints as one check uses it: the record of every solution, whose it is, when to write."""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.checkpoints.folder import (
    ADVICE,
    CHUNK,
    FORMAT,
    Description,
    StoredPart,
    damaged,
    model_digest,
    put_text,
    remove_others,
    states_digest,
    text_digest,
    vectors_of,
    write_vectors,
)
from hybrid.base.arrays import to_host
from hybrid.base.errors import CheckpointError, OptionError
from hybrid.matrix.parts.plan import planned_owners
from hybrid.matrix.space.base import Array, IterationRecord, ProgressMonitor, RecordedState, State
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import StateIndex, index_states

# Vectors that were kept by other processes than those that go on with them.

Put = Callable[[str, NDArray[np.int64], NDArray[np.float64]], None]
"""Takes the name of a vector, places among the own states, ascending, and elements for them."""


def redistribute(model: SymbolicModel, states: StateIndex, told: Description, folder: Path, put: Put) -> None:
    """Read those elements of kept vectors that are of own states, which `states` number.

    States that were divided in another way than this version does are refused. Time: O(elements kept) for the
    checks, and O(own states) in numpy for every bit.
    """
    manager = model.manager.whole
    own = states.states if model.manager.share is None else states.states & model.manager.share.own
    mine = index_states(manager, own)
    parts = len(told.parts)
    owners = (model.whole.reachable,) if parts == 1 else planned_owners(model.whole, parts)
    for part, owner in zip(told.parts, owners, strict=True):
        theirs = index_states(manager, states.states & owner)
        if theirs.size != part.size or states_digest(theirs) != part.states:
            raise damaged(folder / part.file, "its states are not those that such a process has")
        both = index_states(manager, own & owner)
        sources, places = theirs.places(both), mine.places(both)
        for name, vector in vectors_of(folder, part, told.vectors).items():
            done = 0
            for place, chunk in vector.chunks():
                end = int(np.searchsorted(sources, place.stop))
                if end > done:
                    put(name, places[done:end], chunk[sources[done:end] - place.start])
                done = end


_LEAST_SECONDS = 1.0  # a solution that took less is computed again as quickly as it is read
_BYTES_PER_SECOND = 5e8  # at which a disk is read


Tell = Callable[[str, bool], None]
"""Passes a message about checkpoints on to the user; the truth value says whether something went wrong."""


class SolutionRecord(IterationRecord):
    """The states of one iteration as files of a folder; see `hybrid.matrix.space.base.IterationRecord`.

    The folder is the same for all processes, the files' names begin with `name`; `schedule` says when states
    are written, and passes messages about them to the user.
    """

    def __init__(
        self, folder: Path, name: str, model: SymbolicModel, states: StateIndex, schedule: Checkpoint
    ) -> None:
        self._folder, self._name, self._model, self._states = folder, name, model, states
        self._schedule, self._communicator = schedule, model.communicator
        self._xp: Any = None
        self._method, self._digest, self._generation = "", "", 0
        self._target: float | None = None

    # ------------------------------------------------------------------ reading

    def resume(self, xp: Any, name: str, size: int, target: float | None) -> RecordedState | None:
        """See `IterationRecord.resume`."""
        if self._communicator.any(size != self._states.size):
            return None
        self._xp, self._method, self._target = xp, name, target
        self._digest = states_digest(self._states)
        told = self._description()
        if told is None:
            return None
        self._generation = told.generation
        if (told.method, told.target, told.states) != (name, target, self._states.total):
            return None
        vectors = {vector: xp.zeros(size) for vector in told.vectors}
        failure: str | None = None
        try:
            self._read(told, xp, vectors)
        except CheckpointError as fault:
            failure = str(fault)
        failure = self._communicator.first_text(failure)
        if failure is not None:
            raise CheckpointError(failure)
        self._schedule.note(f"going on from {self._path()}: {name}, {_progress(told)}")
        path = self._path()
        return RecordedState(
            _EarlierRecord(vectors, path), _EarlierRecord(told.numbers, path), told.is_finished
        )

    def _path(self) -> Path:
        return self._folder / f"{self._name}.json"

    def _description(self) -> Description | None:
        """Return the description in the folder, None if it has none; the same in all processes."""
        text = None
        if self._communicator.rank == 0:
            try:
                text = self._path().read_text(encoding="utf-8")
            except FileNotFoundError:
                pass
            except (OSError, UnicodeDecodeError) as fault:
                text = f"\0{fault}"
        text = self._communicator.first_text(text)
        if text is None:
            return None
        if text.startswith("\0"):
            raise damaged(self._path(), f"it cannot be read ({text[1:]})")
        return Description.of(text, self._path())

    def _read(self, told: Description, xp: Any, vectors: Mapping[str, Array]) -> None:
        """Fill vectors of the space, from this process's file or, if parts have changed, from all."""
        part = told.parts[self._communicator.rank] if len(told.parts) == self._communicator.size else None
        is_same = part is not None and part.states == self._digest and part.size == self._states.size
        if part is not None and self._communicator.all(is_same):
            for name, vector in vectors_of(self._folder, part, told.vectors).items():
                for place, chunk in vector.chunks():
                    vectors[name][place] = xp.asarray(chunk)
            return

        def put(name: str, places: NDArray[np.int64], values: NDArray[np.float64]) -> None:
            vectors[name][xp.asarray(places)] = xp.asarray(values)

        redistribute(self._model, self._states, told, self._folder, put)

    # ------------------------------------------------------------------ writing

    def offer(self, state: State) -> None:
        """See `IterationRecord.offer`."""
        if self._xp is not None and self._schedule.is_due():
            self._write(state, False)

    def keep(self, state: State, is_finished: bool = False, seconds: float = 0.0) -> None:
        """See `IterationRecord.keep`."""
        if self._xp is None:
            return
        least = max(_LEAST_SECONDS, 2 * 8 * self._states.size / _BYTES_PER_SECOND)
        if self._communicator.greatest(seconds) >= least or self._generation:
            self._write(state, is_finished, is_last=not is_finished)

    def rescue(self, state: State) -> None:
        """See `IterationRecord.rescue`."""
        if self._xp is not None and self._communicator.size == 1:
            self._write(state, False, is_last=True)

    def _write(self, state: State, is_finished: bool, is_last: bool = False) -> None:
        """Write a state, all processes together; if one fails, warn, and keep the state written before."""
        vectors, numbers = state()
        generation = self._generation + 1
        file = self._folder / f"{self._name}.{generation}.{self._communicator.rank}.bin"
        own, failure = b"", None
        try:
            checks = write_vectors(file, (_chunks(vector) for vector in vectors.values()))
            own = json.dumps(asdict(StoredPart(file.name, self._states.size, self._digest, checks))).encode()
        except OSError as fault:
            failure = str(fault)
        parts = [json.loads(part or b"null") for part in self._communicator.gather_bytes(own)]
        failure = self._communicator.first_text(failure)
        if failure is None and self._communicator.rank == 0:
            told = Description(
                self._method, self._target, self._states.total, is_finished, generation, list(vectors),
                dict(numbers), [StoredPart(**part) for part in parts],
            )  # fmt: skip
            try:
                put_text(self._path(), told.text())
            except OSError as fault:
                failure = str(fault)
        failure = self._communicator.first_text(failure)
        if failure is not None:
            file.unlink(missing_ok=True)
            self._schedule.warn(f"no checkpoint could be written: {failure}; the check goes on without")
        else:
            self._generation = generation
            if is_last:
                self._schedule.note(f"kept in {self._folder}, from where the same check goes on")
            if self._communicator.rank == 0:
                remove_others(self._folder, self._name, {part["file"]: part for part in parts})
        self._schedule.written()


class _EarlierRecord(dict[str, Any]):
    """Vectors or numbers of a description by name; asking for a missing one raises `CheckpointError`."""

    def __init__(self, found: Mapping[str, Any], path: Path) -> None:
        super().__init__(found)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise damaged(self._path, f"expected {name} in it")


def _chunks(vector: Array) -> Iterator[NDArray[Any]]:
    """Yield a vector's chunks on the host."""
    for begin in range(0, len(vector), CHUNK):
        yield to_host(vector[begin : begin + CHUNK])


def _progress(told: Description) -> str:
    """Return how far a solution was, in words."""
    if told.is_finished:
        return "which has arrived"
    made = next(
        (told.numbers[name] for name in ("iterations", "products", "made") if name in told.numbers), None
    )
    return "its last state" if made is None else f"after {int(made)} iterations"


Progress = Callable[[int, float], None]

_log = logging.getLogger(__name__)

_OWNER = "check.json"


class Checkpoint:
    """The checkpoint of a check: its record of iterations, and that of an earlier run.

    Processes that share the states make theirs together, of the same folder, which is made if it is not
    there. Between two states that are written lie `minutes` at least; `options` are what the values of
    iterations depend on besides the model. Without `tell` a log and Python's warnings report to the user. A
    folder that cannot be used is refused, and one of another check.
    """

    def __init__(
        self,
        folder: Path,
        minutes: float,
        model: SymbolicModel,
        options: dict[str, Any],
        tell: Tell | None = None,
    ) -> None:
        self._folder, self._model, self._all = folder, model, model.communicator
        self._seconds, self._tell = 60.0 * minutes, tell or _log_or_warn
        self._property, self._solutions = "", 0
        failure: str | None = None
        is_option = False
        if self._all.rank == 0:
            try:
                constants = {name: str(value) for name, value in model.whole.source.constants.items()}
                owner = {"format": FORMAT, "model": model_digest(model), "constants": constants}
                self._claim(owner | options)
            except OSError as fault:
                failure, is_option = f"{folder}: no folder for checkpoints: {fault}; give another one", True
            except CheckpointError as fault:
                failure = str(fault)
        is_option = self._all.any(is_option)
        failure = self._all.first_text(failure)
        if failure is not None:
            raise OptionError(failure) if is_option else CheckpointError(failure)
        self.written()

    def _claim(self, owner: dict[str, Any]) -> None:
        """Note whose the folder is, or see that it is this check's."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / _OWNER
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if any(entry.suffix != ".new" for entry in self._folder.iterdir()):
                raise CheckpointError(
                    f"{self._folder}: expected an empty folder or one of checkpoints; give another one"
                ) from None
            put_text(path, json.dumps(owner, indent=1))
            return
        except ValueError:
            raise damaged(path, "expected a description of a check") from None
        if not isinstance(found, dict):
            raise damaged(path, "expected a description of a check")
        for name in owner:
            # Constants are part of the model; the message names them where they make it another one.
            if found.get(name) == owner[name] or name == "constants":
                continue
            was = f"its {name} is {found.get(name)!r}, not {owner[name]!r}"
            if name == "model":
                others = _other_constants(found.get("constants"), owner["constants"])
                was = others or "its model is another one"
            raise CheckpointError(f"{self._folder}: of another check: {was}; {ADVICE}")

    def begin(self, text: str) -> Checkpoint:
        """Begin with a property: its solutions come in the same order in every run."""
        self._property, self._solutions = text_digest(text), 0
        return self

    def following(self, progress: Progress | None, states: StateIndex) -> ProgressMonitor:
        """Return the monitor of the next solution; see `SolveStatistics.following`."""
        self._solutions += 1
        name = f"{self._property}-{self._solutions}"
        record = SolutionRecord(self._folder, name, self._model, states, self)
        return RecordingMonitor(progress, record)

    # ------------------------------------------------------------------ schedule

    def is_due(self) -> bool:
        """Return whether it is time to write; asked by all processes, the first of which has the clock."""
        return self._all.any(self._all.rank == 0 and time.monotonic() >= self._next)

    def written(self) -> None:
        """Note that something has been written."""
        self._next = time.monotonic() + self._seconds

    def note(self, text: str) -> None:
        """Report progress to the user, in the first process."""
        if self._all.rank == 0:
            self._tell(text, False)

    def warn(self, text: str) -> None:
        """Report to the user what went wrong, in the first process."""
        if self._all.rank == 0:
            self._tell(text, True)


def _other_constants(kept: object, now: dict[str, str]) -> str:
    """Return which constants a folder's check has with other values; nothing where that is not the reason."""
    if not isinstance(kept, dict):
        return ""
    names = [name for name in (*now, *kept) if kept.get(name) != now.get(name)]
    told = [f"{n} is {kept.get(n, 'none')}, not {now.get(n, 'none')}" for n in dict.fromkeys(names)]
    return f"its constant {', '.join(told[:20])}" if told else ""


def _log_or_warn(text: str, failed: bool) -> None:
    """Log what was found, and warn of what failed."""
    if failed:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    else:
        _log.info("%s", text)


class RecordingMonitor(ProgressMonitor):
    """Follows one solution that has a record, and hands on what it hears."""

    def __init__(self, progress: Progress | None, record: SolutionRecord) -> None:
        self._heard, self.record = progress, record
        self._monitor = progress if isinstance(progress, ProgressMonitor) else None

    @property
    def stopped(self) -> BaseException | None:  # type: ignore[override]
        """See `ProgressMonitor`."""
        return None if self._monitor is None else self._monitor.stopped

    @property
    def is_pressing(self) -> bool:  # type: ignore[override]
        """See `ProgressMonitor`."""
        return self._monitor is not None and self._monitor.is_pressing

    @property
    def unrecorded(self) -> Progress | None:
        """See `ProgressMonitor.unrecorded`."""
        return self._heard

    def __call__(self, iteration: int, difference: float) -> None:
        """See `ProgressMonitor`."""
        if self._heard is not None:
            self._heard(iteration, difference)

    def observe(self, iteration: int, difference: float) -> None:
        """See `ProgressMonitor.observe`."""
        if self._monitor is not None:
            self._monitor.observe(iteration, difference)

    def begin(self, target: float | None, steps: int | None) -> None:
        """See `ProgressMonitor.begin`."""
        if self._monitor is not None:
            self._monitor.begin(target, steps)

    def cancellable(self) -> AbstractContextManager[None]:
        """See `ProgressMonitor.cancellable`."""
        return super().cancellable() if self._monitor is None else self._monitor.cancellable()

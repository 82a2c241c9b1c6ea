"""A folder of checkpoints as one check uses it: whose it is, when to write, which solution comes next."""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hybrid.analysis.checkpoints.folder import ADVICE, FORMAT, damaged, model_digest, put_text, text_digest
from hybrid.analysis.checkpoints.solution_record import SolutionRecord, Teller
from hybrid.base.errors import CheckpointError, OptionError
from hybrid.matrix.space.base import Watch
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import StateIndex

Progress = Callable[[int, float], None]

_log = logging.getLogger(__name__)

_OWNER = "check.json"


class Checkpoint:
    """What a check keeps of its iterations, and finds of those of an earlier one.

    Processes that share the states make theirs together, of the same folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    minutes : float
        Between two states that are written, at least.
    model : SymbolicModel
        As this process has it.
    options : dict of str to a plain value
        What the values of iterations depend on besides.
    teller : Teller, optional
        Tells the user; by default a log and Python's warnings do.

    Raises
    ------
    OptionError
        Such a folder cannot be made or used.
    CheckpointError
        It is of another check.
    """

    def __init__(
        self,
        folder: Path,
        minutes: float,
        model: SymbolicModel,
        options: dict[str, Any],
        teller: Teller | None = None,
    ) -> None:
        self._folder, self._model, self._all = folder, model, model.communicator
        self._seconds, self._teller = 60.0 * minutes, teller or _Library()
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
            # Constants are part of the model, and told where they are why it is another one.
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

    def following(self, progress: Progress | None, states: StateIndex) -> Watch:
        """Return what follows the next solution; see `hybrid.analysis.run.work.Work.following`."""
        self._solutions += 1
        name = f"{self._property}-{self._solutions}"
        record = SolutionRecord(self._folder, name, self._model, states, self)
        return Recorded(progress, record)

    # ------------------------------------------------------------------ schedule

    def is_due(self) -> bool:
        """See `hybrid.analysis.checkpoints.solution_record.Schedule`; the first process has the clock."""
        return self._all.any(self._all.rank == 0 and time.monotonic() >= self._next)

    def written(self) -> None:
        """See `Schedule`."""
        self._next = time.monotonic() + self._seconds

    def note(self, text: str) -> None:
        """See `Teller`; the first process tells it."""
        if self._all.rank == 0:
            self._teller.note(text)

    def warn(self, text: str) -> None:
        """See `Teller`; the first process tells it."""
        if self._all.rank == 0:
            self._teller.warn(text)


def _other_constants(kept: object, now: dict[str, str]) -> str:
    """Return which constants a folder's check has with other values; nothing where that is not the reason."""
    if not isinstance(kept, dict):
        return ""
    names = [name for name in (*now, *kept) if kept.get(name) != now.get(name)]
    told = [f"{n} is {kept.get(n, 'none')}, not {now.get(n, 'none')}" for n in dict.fromkeys(names)]
    return f"its constant {', '.join(told[:20])}" if told else ""


class _Library:
    """See `Teller`."""

    def note(self, text: str) -> None:
        """Log what was found."""
        _log.info("%s", text)

    def warn(self, text: str) -> None:
        """Warn of what failed."""
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class Recorded(Watch):
    """Follows one solution that has a record, and hands on what it hears.

    Parameters
    ----------
    progress : callable, optional
        Who hears it.
    record : SolutionRecord
    """

    def __init__(self, progress: Progress | None, record: SolutionRecord) -> None:
        self._heard, self.record = progress, record
        self._watch = progress if isinstance(progress, Watch) else None

    @property
    def stopped(self) -> BaseException | None:  # type: ignore[override]
        """See `Watch`."""
        return None if self._watch is None else self._watch.stopped

    @property
    def is_pressing(self) -> bool:  # type: ignore[override]
        """See `Watch`."""
        return self._watch is not None and self._watch.is_pressing

    @property
    def unrecorded(self) -> Progress | None:
        """See `Watch.unrecorded`."""
        return self._heard

    def __call__(self, iteration: int, difference: float) -> None:
        """See `Watch`."""
        if self._heard is not None:
            self._heard(iteration, difference)

    def look(self, iteration: int, difference: float) -> None:
        """See `Watch.look`."""
        if self._watch is not None:
            self._watch.look(iteration, difference)

    def begin(self, target: float | None, steps: int | None) -> None:
        """See `Watch.begin`."""
        if self._watch is not None:
            self._watch.begin(target, steps)

    def gently(self) -> AbstractContextManager[None]:
        """See `Watch.gently`."""
        return super().gently() if self._watch is None else self._watch.gently()

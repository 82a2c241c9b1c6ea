"""What `hybrid check` tells of its answers: each when it is found, and all of them if it is stopped."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.analysis.run.state_files import write_state_values
from hybrid.analysis.run.work import Work
from hybrid.app.cli.certify import Certifier
from hybrid.app.cli.console import Console
from hybrid.app.cli.device_hint import DeviceHint
from hybrid.app.cli.journal import json_line
from hybrid.app.cli.model_record import model_record, model_text
from hybrid.app.cli.output_file import OutputFile
from hybrid.app.cli.shared_output import SharedOutput, first_does
from hybrid.app.cli.table import Table
from hybrid.base.errors import HybridError, OptionError
from hybrid.checking.answer import Answer, json_listing
from hybrid.checking.listing import Listing
from hybrid.properties import Property
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import LanguageError

if TYPE_CHECKING:
    from hybrid.app.cli.run_table import RunTable


class _Failure(NamedTuple):
    """Why a run has no answers."""

    given: str
    reason: str
    run: dict[str, Any]


class Report:
    """Answers as text or as JSON on standard output, as rows of a table, and a scheduler as a file.

    The files are opened when it is made. Leaving it closes them; if a signal is the reason, the JSON object
    is printed all the same, with "interrupted" and, for properties not answered, the reason as their error.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command: `json`, `csv`, `scheduler`, `engine`.
    console : Console
    text : callable
        Returns an answer as lines of text.
    names : sequence of str
        Of the constants.
    several : bool
        Whether there are several runs, of different constants.
    certifier : Certifier, optional
        What makes the one answer, with a certificate.
    lists : bool
        Whether filters list states, which the table has then in columns and rows of their own.
    rows : RunTable, optional
        Draws answers on a terminal, in the place of `text`.
    points : bool
        Whether there are several objectives, whose points the table has in rows of their own.
    communicator : Communicator
        Of the processes that write the values of all states together.

    Raises
    ------
    OptionError
        A file cannot be written.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        console: Console,
        text: Callable[[Answer], str],
        names: Sequence[str],
        several: bool,
        certifier: Certifier | None = None,
        lists: bool = False,
        rows: RunTable | None = None,
        points: bool = False,
        communicator: Communicator = ALONE,
    ) -> None:
        self._options, self._console, self._text, self._several = options, console, text, several
        self._certifier, self._rows, self._hint = certifier, rows, DeviceHint()
        self._runs: list[dict[str, Any]] = []
        self._model: SymbolicModel | None = None
        self._asked: Sequence[Property] = ()
        self._given = ""
        self._failures: list[_Failure] | None = []
        self._told = ""
        self._is_whole, self._is_headed, self._is_misused = True, False, False
        self._table: Table | None = None

        def open_table() -> None:
            self._table = None if options.csv is None else Table(options.csv, names, lists, points)

        first_does(communicator, open_table)
        self._values = _file_of_values(options.values, communicator)
        self._scheduler = None if options.scheduler is None else OutputFile(options.scheduler, "--scheduler")

    def __enter__(self) -> Report:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        received = self._console.signals.received
        if isinstance(error, KeyboardInterrupt) or (error is not None and received is not None):
            self._stopped(received.word if received is not None else "interrupted")
        if self._table is not None:
            self._end_table(complete=False)
        for file in (self._scheduler, self._values):
            if file is not None:
                file.discard()
        if self._certifier is not None:
            self._certifier.close()
        self._hint.tell(self._console)

    @property
    def runs(self) -> Sequence[dict[str, Any]]:
        """Constants, model and results of every run that was begun."""
        return self._runs

    def begin(self, constants: Mapping[str, Any], given: str, asked: Sequence[Property]) -> None:
        """Begin a run; `given` is what its constants were given as."""
        self._model, self._given, self._asked = None, given, asked
        self._runs.append({"constants": constants, "model": None, "results": []})

    def fail(self, reason: str) -> None:
        """Tell why a run has no answers at all, at once or when the first run has some."""
        run = self._runs[-1]
        run["results"] += [unanswered(p, reason, self._options.engine).record() for p in self._asked]
        failure = _Failure(self._given, reason, run)
        if self._failures is None:
            self._tell(failure)
        else:
            self._failures.append(failure)

    def built(self, model: SymbolicModel) -> None:
        """Tell the run's model."""
        for failure in self._failures or ():
            self._tell(failure)
        self._model, self._failures = model, None
        if self._options.json_lines and not self._asked:
            constants = self._runs[-1]["constants"]
            self._console.print(json_line(constants, model_record(model), {}))
        if self._is_text and self._rows is not None:
            if not self._is_headed:
                self._console.print(self._rows.head(model_record(model)))
            self._is_headed = True
        elif self._is_text:
            lines = [model_text(model_record(model))]
            if self._several:
                lines = [*([""] if len(self._runs) > 1 else []), f"# {self._given}", *lines]
            self._console.print("\n".join(lines))

    def answer(self, answer: Answer) -> None:
        """Tell an answer of the run; a signal waits until it is told everywhere, and is not raised here."""
        with self._console.signals.hold(check=False):
            self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        """Tell an answer of the run."""
        self._hint.add(answer.statistics)
        for warning in answer.warnings:
            self._console.warn(f"{answer.name or answer.property}: {warning}")
        record, text = answer.record(listing=False), self._text(answer)
        if isinstance(answer.listing, Listing):
            record["listing"] = answer.listing  # written out when the record is printed
        if self._certifier is not None:
            record["certificate"] = self._certifier.record()
            text = f"{text}\n{self._certifier.text()}"
        self._is_misused |= isinstance(answer.fault, LanguageError) and answer.fault.is_usage
        self._keep([record])
        if self._is_text:
            if self._rows is not None and self._model is not None:
                states = self._model.statistics.states
                self._console.print(self._rows.row(self._runs[-1]["constants"], states, answer))
            else:
                self._console.print(f"\n{text}")
        made = answer.scheduler if answer.several is None else answer.several.schedulers
        if self._scheduler is not None and made is not None:
            self._publish(self._scheduler, made.write)
        if self._values is not None and answer.error is None:
            self._publish(self._values, partial(_write_values, answer))

    def end(self) -> None:
        """End the run."""
        self._runs[-1]["model"] = None if self._model is None else model_record(self._model)

    def finish(self) -> int:
        """End the report, and return the exit status."""
        if self._table is not None:
            try:
                self._end_table(complete=True)
            except OptionError as error:
                self._spoilt(error)
        self._print_json()
        if not self._is_whole or self._is_misused:
            return 2
        if self._certifier is not None and self._certifier.failed:
            return 1
        return int(any(result["error"] is not None for run in self._runs for result in run["results"]))

    def _end_table(self, complete: bool) -> None:
        """End the table, which may be ended already, and tell of it if it has rows."""
        if self._table is not None and self._table.close(complete):
            self._console.wrote(self._options.csv)

    def _publish(self, file: OutputFile | SharedOutput, write: Callable[[Path], None]) -> None:
        """Write a file and let it take its place; what fails is told, and hides no answer."""
        try:
            with file.told():
                write(file.temporary)
            file.publish(self._console)
        except HybridError as error:
            self._spoilt(error)

    def _tell(self, failure: _Failure) -> None:
        """Tell a run's failure, unless the run before failed for the same reason."""
        if failure.reason != self._told:
            for line in failure.reason.splitlines():
                self._console.error(f"{failure.given}: {line}")
        self._told = failure.reason
        self._write(failure.run["constants"], failure.run["results"])
        self._print_lines(failure.run, failure.run["results"])

    @property
    def _is_text(self) -> bool:
        return not (self._options.json or self._options.json_lines)

    def _keep(self, results: list[dict[str, Any]]) -> None:
        """Add results to the run's record, to the table, and to the lines on standard output."""
        self._runs[-1]["results"] += results
        self._write(self._runs[-1]["constants"], results)
        self._print_lines(self._runs[-1], results)

    def _write(self, constants: Mapping[str, Any], results: list[dict[str, Any]]) -> None:
        """Write rows of the table, as long as that succeeds."""
        if self._table is None or not results:
            return
        if self._model is not None:
            self._table.variables = [v.name for v in self._model.encoding.shown]
        try:
            self._table.add(constants, results)
        except OptionError as error:
            self._spoilt(error)
            self._table.close(complete=False)
            self._table = None

    def _print_lines(self, run: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
        """Print results of a run, a line each, if that is asked for."""
        if self._options.json_lines:
            model = None if self._model is None else model_record(self._model)
            for result in results:
                self._console.print(json_line(run["constants"], model, result))

    def _stopped(self, word: str) -> None:
        """Tell what was left, as JSON: one object of all that was found, or the lines that are missing."""
        if not self._runs:
            self.begin({}, "", ())
        run = self._runs[-1]
        if run["model"] is None:
            rest = self._asked[len(run["results"]) :]
            left = [unanswered(p, word, self._options.engine, interrupted=True).record() for p in rest]
            run["results"] += left
            self._print_lines(run, left)
            self.end()
        run["interrupted"] = True
        self._print_json()

    def _print_json(self) -> None:
        if not self._options.json:
            return
        if self._several:
            self._console.print(_json(self._runs))
        else:
            single = {key: value for key, value in self._runs[0].items() if key != "constants"}
            self._console.print(_json(single))

    def _spoilt(self, error: HybridError) -> None:
        """Tell that a file could not be written; the other answers are worth having."""
        self._console.error(str(error))
        self._is_whole = False


def _json(found: Any) -> str:
    """Return records as JSON, listings written out one at a time."""
    return "".join(json.JSONEncoder(default=json_listing).iterencode(found))


def _file_of_values(path: str | None, communicator: Communicator) -> OutputFile | SharedOutput | None:
    """Return the file that values of all states are written to, if one was asked for."""
    if path is None:
        return None
    return (
        OutputFile(path, "--values")
        if communicator.size == 1
        else SharedOutput(path, "--values", communicator)
    )


def _write_values(answer: Answer, path: Path) -> None:
    """Write the values of all states to a file."""
    states = answer.every_state
    write_state_values(path, states.model, states.found)


def unanswered(prop: Property, error: str, engine: str, interrupted: bool = False) -> Answer:
    """Return what there is of a property that was not looked at to the end."""
    return Answer(
        name=prop.name,
        property=prop.text,
        value=None,
        lower=None,
        upper=None,
        error=error,
        statistics=Work(),
        seconds=0.0,
        engine=engine,
        interrupted=interrupted,
    )

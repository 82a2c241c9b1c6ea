"""Reports of `hybrid check`: each answer when it is found, and all of them if the command is stopped."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.app.cli.building import DeviceHint, model_record, model_text
from hybrid.app.cli.console import Console
from hybrid.app.cli.limited_run import json_line
from hybrid.app.cli.output_file import OutputFile, told_of
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import HybridError, OptionError
from hybrid.checking.answer import Answer, json_listing
from hybrid.checking.filters import Listing
from hybrid.properties import Property
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import LanguageError

if TYPE_CHECKING:
    from hybrid.app.cli.run_table import RunTable
    from hybrid.app.cli.verify import Certifier

# A CSV file of constants and answers that grows as answers are found.

_POINTS = ("point", "objective")
_PAIR = ("first bound", "second bound")
_ASKED, _FOUND = ("name", "property"), ("value", "lower", "upper", "error")
_PART = 1 << 14  # listed states written together


class Table:
    """Rows of constants, name, property, value, bounds and error.

    The first rows take the place of an older file, which stays until then. Rows are written whole or not at
    all.

    `names`: of the constants. `lists`: whether there is a column a variable, too, and after an answer a row
    for every state that its filter lists: constants, name and property again, the variables, value and
    bounds. `points`: whether there are columns `point` and `objective`, too, and after an answer about
    several objectives a row for every point and objective; of a curve one more for each objective with its
    distance, its `point` being "distance". Each least pair of bounds is such a point. `variables`: of the
    model, to be set before the first rows are added where states are listed. Raises OptionError: the file
    cannot be written.
    """

    def __init__(self, path: str, names: Sequence[str], lists: bool = False, points: bool = False) -> None:
        self._names, self._lists = names, lists
        self._places: Sequence[str] = _POINTS if points else ()
        self.variables: Sequence[str] = ()
        self._file = OutputFile(path, "--csv")
        self._rows: io.FileIO | None = None
        self._is_closed = False

    def add(self, constants: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
        """Write a row for every result, a record of an answer; a failure leaves the older file."""
        given = [constants.get(name, "") for name in self._names]
        blank = [""] * (len(self._variables) + len(self._places))
        rows = [[*given, *(r[c] for c in _ASKED), *blank, *(r[c] for c in _FOUND)] for r in results]
        with self._file.told():
            for result, row in zip(results, rows, strict=True):
                self._append([row])
                for part in self._listed(result, given):
                    self._append(part)
                if "multi" in result:
                    self._append(self._pointed(result, given))
                if "pairs" in result:
                    self._append(self._paired(result, given))
            if not rows:
                self._append([])

    def close(self, complete: bool) -> bool:
        """End the table, once; a complete one without answers has the names of the columns.

        Returns whether a file was written now, which is no device and no pipe.
        """
        if self._is_closed:
            return False
        self._is_closed = True
        try:
            if self._rows is None and complete:
                self.add({}, [])
        finally:
            if self._rows is not None:
                self._rows.close()
            self._file.discard()
        return self._rows is not None and self._file.temporary != self._file.target

    @property
    def _variables(self) -> Sequence[str]:
        return self.variables if self._lists else ()

    def _append(self, rows: list[list[Any]]) -> None:
        """Write rows, after the names of the columns if they are the first."""
        if self._rows is None:
            self._begin(rows)
        else:
            _write_whole(self._rows, rows)

    def _listed(self, result: Mapping[str, Any], given: Sequence[Any]) -> Iterator[list[list[Any]]]:
        """Yield the rows of the states that an answer lists, some at a time."""
        listing = result.get("listing")
        if not isinstance(listing, Listing):
            return
        asked = [result[column] for column in _ASKED]
        for begin in range(0, len(listing), _PART):
            yield [
                [
                    *given, *asked, *(str(r["state"][v]).lower() for v in self.variables),
                    *("" for _ in self._places), *(r[column] for column in ("value", "lower", "upper")), None,
                ]
                for r in json_listing(listing[begin : begin + _PART])
            ]  # fmt: skip

    def _pointed(self, result: Mapping[str, Any], given: Sequence[Any]) -> list[list[Any]]:
        """Return the rows of the points behind an answer about several objectives."""
        found = result["multi"]
        head = [*given, *(result[column] for column in _ASKED), *("" for _ in self._variables)]
        rows = []
        for number, point in enumerate(found["points"], start=1):
            for name, low, high in zip(found["objectives"], point["lower"], point["upper"], strict=True):
                rows.append([*head, number, name, 0.5 * (low + high), low, high, None])
        for name, distance in zip(found["objectives"], found.get("distances", ()), strict=False):
            rows.append([*head, "distance", name, None, 0.0, distance, None])
        return rows

    def _paired(self, result: Mapping[str, Any], given: Sequence[Any]) -> list[list[Any]]:
        """Return the rows of the least pairs of bounds, two a pair."""
        head = [*given, *(result[column] for column in _ASKED), *("" for _ in self._variables)]
        rows = []
        for number, pair in enumerate(result["pairs"], start=1):
            for name, bound in zip(_PAIR, map(Fraction, pair), strict=True):
                low, high = rounded_down(bound), rounded_up(bound)  # lemma: arithmetic
                rows.append([*head, number, name, float(bound), low, high, None])
        return rows

    def _begin(self, rows: list[list[Any]]) -> None:
        """Write the names of the columns and the first rows."""
        file = self._file.temporary.open("ab", buffering=0)
        try:
            _write_whole(file, [[*self._names, *_ASKED, *self._variables, *self._places, *_FOUND], *rows])
            self._file.publish()
        except BaseException:
            file.close()
            raise
        if self._file.temporary != self._file.target:
            file.close()
            file = self._file.target.open("ab", buffering=0)
        self._rows = file


def _write_whole(file: io.FileIO, rows: Sequence[Sequence[Any]]) -> None:
    """Append rows, or leave the file as it was."""
    lines = io.StringIO()
    import csv

    csv.writer(lines).writerows(rows)
    rest = memoryview(lines.getvalue().encode("utf-8", "backslashreplace"))
    end = os.fstat(file.fileno()).st_size
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except BaseException:
        # Devices and pipes cannot be cut.
        with contextlib.suppress(OSError):
            file.truncate(end)
        raise


# A file that processes of one command write together: tried by the first one, with the outcome for all.


def on_first_rank(communicator: Communicator, run: Callable[[], None]) -> None:
    """Run a function in the process of rank 0; the call is collective, and all processes raise its error."""
    failure: OptionError | None = None
    if communicator.rank == 0:
        try:
            run()
        except OptionError as error:
            failure = error
    text = communicator.first_text(None if failure is None else str(failure))
    if text is not None:
        raise OptionError(text) from failure


class SharedOutput:
    """An `OutputFile` that the first process has, written to by all; all of them make it at once.

    An `OptionError`, in all processes alike, refuses devices and pipes, which take no pieces.
    """

    def __init__(self, path: str, option: str, communicator: Communicator) -> None:
        self._path, self._option, self._communicator = path, option, communicator
        self._file: OutputFile | None = None
        on_first_rank(communicator, self._open)
        chosen = None if self._file is None else str(self._file.temporary.absolute())
        self.temporary = Path(communicator.first_text(chosen) or "")

    def told(self) -> AbstractContextManager[None]:
        """Turn errors of the operating system, which all have alike, into errors of the option."""
        return told_of(self._path, self._option)

    def publish(self, console: Console | None = None) -> None:
        """Let the temporary file take the place of what is there; see `OutputFile.publish`."""

        def replaced() -> None:
            if self._file is not None:
                self._file.publish(console)

        on_first_rank(self._communicator, replaced)

    def discard(self) -> None:
        """Remove the temporary file if it was not published."""
        if self._file is not None:
            self._file.discard()

    def _open(self) -> None:
        self._file = OutputFile(self._path, self._option)
        if self._file.temporary == self._file.target:
            raise OptionError(
                f"{self._option}: expected a file that several processes can write to, got {self._path}"
            )


class _Failure(NamedTuple):
    """The reason why a run has no answers."""

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
    lists, points : bool
        Whether the table has rows of listed states, or of the points of several objectives; see `Table`.
    rows : RunTable, optional
        Draws answers on a terminal, in the place of `text`.
    communicator : Communicator
        Of the processes that write the values of all states together.
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

        on_first_rank(communicator, open_table)
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
        """Report why a run has no answers at all, at once or when the first run has some."""
        run = self._runs[-1]
        run["results"] += [unanswered(p, reason, self._options.engine).record() for p in self._asked]
        failure = _Failure(self._given, reason, run)
        if self._failures is None:
            self._tell(failure)
        else:
            self._failures.append(failure)

    def built(self, model: SymbolicModel) -> None:
        """Report the run's model."""
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
        """Report an answer of the run; a signal waits until all outputs have it, and is not raised here."""
        with self._console.signals.hold(check=False):
            self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        """Report an answer of the run."""
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
        """End the table, unless it is ended, and announce its file if it has rows."""
        if self._table is not None and self._table.close(complete):
            self._console.wrote(self._options.csv)

    def _publish(self, file: OutputFile | SharedOutput, write: Callable[[Path], None]) -> None:
        """Write a file and let it take its place; failures are reported, and hide no answer."""
        try:
            with file.told():
                write(file.temporary)
            file.publish(self._console)
        except HybridError as error:
            self._spoilt(error)

    def _tell(self, failure: _Failure) -> None:
        """Report a run's failure, unless the run before failed for the same reason."""
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
        """Print results of a run, a line each, if that is requested."""
        if self._options.json_lines:
            model = None if self._model is None else model_record(self._model)
            for result in results:
                self._console.print(json_line(run["constants"], model, result))

    def _stopped(self, word: str) -> None:
        """Print the rest as JSON: one object of all that was found, or the lines that are missing."""
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
        """Report that a file could not be written; the other answers remain."""
        self._console.error(str(error))
        self._is_whole = False


def _json(found: Any) -> str:
    """Return records as JSON, listings written out one at a time."""
    import json

    return "".join(json.JSONEncoder(default=json_listing).iterencode(found))


def _file_of_values(path: str | None, communicator: Communicator) -> OutputFile | SharedOutput | None:
    """Return the file that values of all states are written to, if one was requested."""
    if path is None:
        return None
    return (
        OutputFile(path, "--values")
        if communicator.size == 1
        else SharedOutput(path, "--values", communicator)
    )


def _write_values(answer: Answer, path: Path) -> None:
    """Write the values of all states to a file."""
    from hybrid.analysis.run.state_files import write_state_values

    states = answer.every_state
    write_state_values(path, states.model, states.found)


def unanswered(prop: Property, error: str, engine: str, interrupted: bool = False) -> Answer:
    """Return the answer, without a value, to a property whose check was ended."""
    return Answer(
        name=prop.name,
        property=prop.text,
        value=None,
        lower=None,
        upper=None,
        error=error,
        statistics=SolveStatistics(),
        seconds=0.0,
        engine=engine,
        interrupted=interrupted,
    )

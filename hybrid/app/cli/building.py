"""The model and the properties that a command line asks for."""

from __future__ import annotations

import argparse
import errno
import re
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_kernels import device_problem
from hybrid.app.cli.console import Console
from hybrid.base.errors import OptionError
from hybrid.base.units import seconds_text
from hybrid.models.loading import load
from hybrid.models.model import Model
from hybrid.properties import Properties, load_properties, parse_properties, resolve_properties
from hybrid.properties.resolve import with_repeated_names
from mtbdd.build.model import SymbolicModel
from mtbdd.language import parse_constants
from mtbdd.language.constants import Ignored
from mtbdd.language.errors import Fault, LanguageError, listed, suggestion
from mtbdd.language.syntax import Expression, ResolvedModel
from mtbdd.language.tokens import StandardInput, near_file

if TYPE_CHECKING:
    from hybrid.analysis.run.statistics import SolveStatistics


# The properties: a file or a text, all of it or some.

PROPERTY_SUFFIXES = (".props", ".pctl", ".csl", ".prop")
"""Suffixes of files of properties."""

_FILE_LIKE = re.compile(r"[\w.~-]*[A-Za-z_~-][\w.~-]*\.[A-Za-z]\w*")
"""A name with a suffix: no property, for names in properties have no dots, and numbers no letters but e."""

_BARE = re.compile(r"[\w.~/-]+")
"""Texts that may be names of files as well as properties."""


def read_properties(options: argparse.Namespace) -> Properties | None:
    """Parse the property argument: a file if there is one or it looks like one, a text otherwise.

    A property with a syntax fault has it as its `error`, as long as another one has none. An `OptionError`
    says that some are chosen and none given, a `LanguageError` that no file can be read or no property
    parses.
    """
    text = options.property
    if text is None:
        if options.chosen or options.list:
            option = "--list lists" if options.list else "--property and --prop choose from"
            swapped = f"; the model comes first: hybrid {options.command} MODEL {options.model}"
            hint = swapped if str(options.model).endswith(PROPERTY_SUFFIXES) else ""
            raise OptionError(f"{option} the properties of a file, but none is given behind the model{hint}")
        return None
    if str(options.model).endswith(PROPERTY_SUFFIXES) and not text.endswith(PROPERTY_SUFFIXES):
        if options.property_text is None and _is_file(text):
            raise OptionError(f"the model comes first: hybrid {options.command} {text} {options.model}")
    if options.property_text is None and _is_file(text):
        found = load_properties(text, keep_faults=True)
    else:
        found = parse_properties(text, "<property>", keep_faults=True)
    if found.properties and all(p.error is not None for p in found.properties):
        raise LanguageError([f for p in found.properties if p.error is not None for f in p.error.faults])
    return found


def selected_properties(properties: Properties, options: argparse.Namespace) -> Properties:
    """Return the properties that `--property` and `--prop` choose, all without them."""
    keys: Sequence[str | int] = options.chosen
    if not keys:
        return properties
    count = len(properties.properties)
    names = [p.name for p in properties.properties if p.name is not None]
    for key in keys:
        # `--prop` keeps places as ints, so that a text of digits comes from `--property`.
        from_zero = isinstance(key, str) and key.isascii() and key.isdigit()
        if key in names or ((from_zero or isinstance(key, int)) and int(key) < count):
            continue
        if not count:
            raise OptionError(f"--prop: expected a property, but {properties.file} has none")
        if from_zero:
            known = f"--property: expected {_span(0, count)} (--prop counts from 1)"
        else:
            known = f"--prop: expected {_span(1, count)}"
        named = f", or a name of {listed(list(dict.fromkeys(names)))}" if names else ""
        got, near = (key + 1, "") if isinstance(key, int) else (f"'{key}'", suggestion(key, names))
        raise OptionError(f"{known}{named}, got {got}{near}")
    return properties.select(keys)


def _span(first: int, count: int) -> str:
    return f"a place from {first} to {first + count - 1}" if count > 1 else f"the place {first}"


def resolved_asked(
    properties: Properties, model: ResolvedModel, constants: Mapping[str, Any], options: argparse.Namespace
) -> Properties:
    """Return the properties requested, resolved in a model; one with a fault has it as its `error`."""
    resolved = resolve_properties(properties, model, constants, keep_faults=True)
    text = options.property
    if resolved.file == "<property>" and options.property_text is None and _BARE.fullmatch(text):
        # A misspelt name of a file without a suffix, perhaps.
        hint = _named_beside(text, options) or f"; there is no file {text} either{near_file(text)}"
        told = (
            p if p.error is None else replace(p, error=with_hint(p.error, hint)) for p in resolved.properties
        )
        resolved = replace(resolved, properties=tuple(told))
    return selected_properties(resolved, options)


def _named_beside(name: str, options: argparse.Namespace) -> str:
    """Return a hint where a file of properties of the model's name has a property of this name."""
    if isinstance(options.model, StandardInput):
        return ""
    for suffix in PROPERTY_SUFFIXES:
        path = Path(options.model).with_suffix(suffix)
        try:
            found = load_properties(path, keep_faults=True) if path.is_file() else None
        except (LanguageError, OSError):
            continue
        if found is not None and name in (p.name for p in found.properties):
            call = f"hybrid {options.command} {options.model} {path} --prop {name}"
            return f"; {path} has a property of this name: {call}"
    return ""


def with_hint(error: LanguageError, hint: str) -> LanguageError:
    """Return an error whose first fault says what else may be meant."""
    first, *others = error.faults
    return LanguageError([Fault(first.position, first.message + hint), *others])


def list_properties(options: argparse.Namespace, console: Console) -> int:
    """Print name, place and text of the properties that are requested; return the exit status."""
    import json

    from hybrid.app.cli.excerpts import Excerpts

    found = read_properties(options)
    assert found is not None  # `--list` needs properties, which `read_properties` has checked
    everything = with_repeated_names(found)
    places = {id(p): number for number, p in enumerate(everything.properties, start=1)}
    chosen = selected_properties(everything, options).properties
    faulty = any(p.error is not None for p in chosen)
    records = [
        {"number": places[id(p)], "name": p.name, "property": p.text, "error": _error(p.error)}
        for p in chosen
    ]
    if options.json:
        console.print(json.dumps({"file": everything.file, "properties": records}))
        return int(faulty)
    if getattr(options, "json_lines", False):
        for record in records:
            console.print(json.dumps({"file": everything.file, **record}))
        return int(faulty)
    width, excerpts = len(str(len(places))), Excerpts(options)
    for p in chosen:
        name = f'"{p.name}": ' if p.name else ""
        fault = "" if p.error is None else "  (fault)"
        console.print(f"{places[id(p)]:>{width}}  {name}{p.text}{fault}")
        if p.error is not None:
            for line in str(p.error).splitlines():
                console.error(excerpts.added(line))
    return int(faulty)


def _error(error: LanguageError | None) -> str | None:
    return None if error is None else str(error)


def _is_file(text: str) -> bool:
    """Return whether a text is the name of a file, which need not exist."""
    if isinstance(text, StandardInput) or text.endswith(PROPERTY_SUFFIXES):
        return True
    if "\n" in text or not text.strip():
        return False
    path = Path(text)
    if _exists(path):
        return True
    # A misspelt name is reported as such, and not parsed as a property.
    folder = path.parent
    return bool(_FILE_LIKE.fullmatch(path.name)) and (
        bool(_BARE.fullmatch(str(folder))) or _is_folder(folder)
    )


def _exists(path: Path) -> bool:
    """Return whether there is a file, or one that may not be examined; names have an end."""
    try:
        return path.exists()
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


# A model's part of the output: the JSON object and the text.


def model_record(model: SymbolicModel) -> dict[str, Any]:
    """Return the model's part of the JSON output."""
    found = model.statistics
    return {
        "file": model.source.file,
        "type": model.type.value,
        "constants": dict(model.source.constants),
        "states": found.states,
        "transitions": found.transitions,
        "choices": found.choices,
        "build": _build(model),
        "built": "whole" if model.source.settled is None else "for the question",
        "build_seconds": found.seconds,
        "mtbdd_nodes": found.mtbdd_nodes,
        "terminals": found.terminals,
        "peak_rss_mb": peak_rss_mb(),
    }


def _build(model: SymbolicModel) -> str | None:
    """Return the way in which a text was built; None for files of other formats."""
    if model.given is None:
        return "symbolic"
    return "explicit" if model.given.is_listed else None


def peak_rss_mb() -> float:
    """Return the greatest resident memory of this process so far, in MB (10^6 bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def model_text(record: dict[str, Any]) -> str:
    """Return the model's part of the plain output."""
    constants = ", ".join(f"{k}={_plain(v)}" for k, v in record["constants"].items())
    lines = [
        f"model        {record['file']} ({record['type']})",
        f"constants    {constants}" if constants else "",
        f"states       {record['states']:,}",
        f"choices      {record['choices']:,}" if record["choices"] is not None else "",
        f"transitions  {record['transitions']:,}",
        f"MTBDD        {record['mtbdd_nodes']:,} nodes, {record['terminals']:,} terminals",
        f"built in     {record['build_seconds']:.3f} s, peak memory {record['peak_rss_mb']:.0f} MB",
    ]
    return "\n".join(line for line in lines if line)


def _plain(value: bool | int | float) -> str:
    """Return a constant as the language writes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


# The hint how to make a device usable, shown once, where iterations took long without one.

_LONG = 10.0  # seconds of iterations from which a device may be worth having
_WANTING = "no GPU: "  # what reasons say where none can be used
_SLOW = 1e-3  # seconds an iteration, below which launches eat up what a device gains


class DeviceHint:
    """Adds up iterations on the host that a device might have made faster."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def add(self, work: SolveStatistics) -> None:
        """Add the iterations of an answer."""
        if _WANTING in (work.backend_reason or "") and work.seconds >= _SLOW * max(work.iterations, 1):
            self._seconds += work.seconds

    def tell(self, console: Console) -> None:
        """Show the hint, if iterations took long."""
        problem = device_problem() if self._seconds >= _LONG else None
        if problem is not None:
            console.note(
                f"iterations took {seconds_text(self._seconds)} on the CPU, a GPU may be faster: {problem}"
            )


def shortened_reason(work: SolveStatistics) -> str:
    """Return the reason for the backend of some work, without its advice."""
    reason = work.backend_reason or ""
    problem = device_problem() if _WANTING in reason else None
    return reason if problem is None else reason.replace(problem, problem.split("; ")[0])


def built_model(
    options: argparse.Namespace,
    console: Console,
    constants: Mapping[str, Any] | None = None,
    spare: Ignored = False,
    settle: Callable[[ResolvedModel], Expression | None] | None = None,
) -> Model:
    """Build the model and show its warnings.

    `constants` take the place of those that the options give; `spare` are those that the model need not
    declare; `settle` returns the states that settle the questions.
    """
    console.enter("parse")

    def told(text: str) -> None:
        console.enter("build")
        console.progress(text)

    try:
        model = _loaded(options, constants, spare, told, settle)
    except LanguageError as error:
        if not str(options.model).endswith(PROPERTY_SUFFIXES):
            raise
        command = options.command if hasattr(options, "property") else "check"
        hint = f"files of properties stand behind the model: hybrid {command} MODEL {options.model}"
        raise with_hint(error, f"; {hint}") from None
    if model.source.settled is not None and options.verbose:
        console.note("built for the question: states that settle it have no successors (--build-full: all)")
    for warning in model.warnings:
        console.warn(warning)
    return model


def _is_symbolic(options: argparse.Namespace) -> bool:
    """Return whether a model is built as diagrams because its vectors shall be some."""
    return options.build == "auto" and getattr(options, "engine", None) == "symbolic"


def _loaded(
    options: argparse.Namespace,
    constants: Mapping[str, Any] | None,
    spare: Ignored,
    told: Callable[[str], None],
    settle: Callable[[ResolvedModel], Expression | None] | None,
) -> Model:
    """Read and build the model."""
    return load(
        options.model,
        parse_constants(options.const) if constants is None else constants,
        fix_deadlocks=not options.no_fix_deadlocks,
        package=options.package,
        order=options.order,
        build="symbolic" if _is_symbolic(options) else options.build,
        ignore_unknown=spare,
        progress=told,
        type=options.type,
        states=options.states,
        labels=options.labels,
        state_rewards=options.state_rewards,
        transition_rewards=options.transition_rewards,
        settle=settle,
    )

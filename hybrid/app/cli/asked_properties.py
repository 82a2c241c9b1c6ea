"""The properties that a command line asks for: a file or a text, all of it or some."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.app.cli.console import Console
from hybrid.base.errors import OptionError
from hybrid.properties import Properties, load_properties, parse_properties, resolve_properties
from hybrid.properties.resolve import with_repeated_names
from mtbdd.language.errors import Fault, LanguageError, listed, suggestion
from mtbdd.language.syntax import ResolvedModel
from mtbdd.language.tokens import StandardInput, near_file

# `--threads N` and HYBRID_NUM_THREADS: how many threads a command works with.

_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that libraries read when they are imported."""

_TOO_FEW = re.compile(r"\s*(-\d+|\+?0+)\s*")


@contextmanager
def limited_threads(count: int | None, alone: bool = False) -> Iterator[None]:
    """Let a command work with so many threads; None leaves what the environment says.

    The pools of the libraries below are bounded, too, unless they are loaded already, or bounded by variables
    of their own. In a process that is the command's alone NumPy's linear algebra has one thread by default:
    to start a thread a core takes longer than the small systems that it solves here. An `OptionError` says
    that the environment gives no number of threads.
    """
    given, compiled = os.environ.get("HYBRID_NUM_THREADS"), os.environ.get("NUMBA_NUM_THREADS", "")
    # Numba warns of what is no number; numbers below 1 end its import with a traceback.
    if _TOO_FEW.fullmatch(compiled):
        raise OptionError(f"NUMBA_NUM_THREADS: expected a whole number from 1 on, got {compiled!r}")
    if count is None and not given:
        if alone:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        yield
        return
    from hybrid.matrix.cpu.threads import read_thread_count, set_thread_count

    wanted = read_thread_count(given or "") if count is None else count
    if "numpy" not in sys.modules:
        for name in _POOLS:
            os.environ.setdefault(name, str(wanted))
    before = set_thread_count(wanted)
    try:
        yield
    finally:
        set_thread_count(before)


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

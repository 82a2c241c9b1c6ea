"""`hybrid simulate`: paths of a model as CSV."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any

from hybrid.app.cli.building import (
    list_properties,
    read_properties,
    resolved_asked,
    selected_properties,
)
from hybrid.app.cli.console import Console
from hybrid.app.cli.excerpts import Excerpts
from hybrid.app.cli.output_file import OutputFile, refuse_overwriting
from hybrid.base.errors import OptionError, UnknownError, UnsupportedError
from hybrid.checking.simulation.estimates import Estimate, estimate_property
from hybrid.checking.simulation.paths import Sampler, csv_texts
from hybrid.checking.simulation.rules import Rules
from hybrid.properties import Property
from mtbdd.base.budget import BudgetError
from mtbdd.language import load_model, parse_constants, resolve
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import ModelType, ResolvedModel

# `hybrid simulate` with properties: estimates from paths.

_PATHS, _STEPS = 10_000, 100_000


def run_estimates(options: argparse.Namespace, console: Console) -> int:
    """Estimate the properties that are requested, print what is found; return the exit status.

    One property's record is one JSON object; those of several stand in its list `results`.
    """
    if options.list:
        return list_properties(options, console)
    for name, value in (("to", options.to), ("until", options.until), ("rewards", options.rewards or None)):
        if value is not None:
            raise OptionError(f"--{name} is for paths; leave it out, or leave the property out")
    properties = read_properties(options)
    assert properties is not None  # `read_properties` has refused an empty text
    selected_properties(properties, options)  # before work begins
    constants = parse_constants(options.const)
    declared = {constant.name for constant in properties.constants}
    model = resolve(
        load_model(options.model),
        {name: v for name, v in constants.items() if name not in declared},
        ignore_unknown=properties.undeclared(),
    )
    asked = resolved_asked(properties, model, constants, options).properties
    if not asked:
        raise OptionError("expected a property to estimate, got declarations alone")
    excerpts = Excerpts(options)
    records: list[dict[str, Any]] = []
    try:
        for prop in asked:
            if records and not options.json:
                console.print("")
            records.append(_estimated(model, prop, options, console, excerpts))
    except KeyboardInterrupt:
        _print_interrupted(records, asked, "interrupted", options, console)
        raise
    except BudgetError as error:
        console.error(str(error))
        _print_interrupted(records, asked, str(error), options, console)
        return 1
    if options.json:
        console.print(json.dumps(records[0] if len(asked) == 1 else {"results": records}))
    return int(any(record["error"] is not None for record in records))


def _print_interrupted(
    records: list[dict[str, Any]],
    asked: Sequence[Property],
    reason: str,
    options: argparse.Namespace,
    console: Console,
) -> None:
    """Print the one object of `--json`, with the reason as the error of what is left."""
    if not options.json:
        return
    whole = [
        *records,
        *({**_unanswered(prop, reason), "interrupted": True} for prop in asked[len(records) :]),
    ]
    console.print(json.dumps(whole[0] if len(asked) == 1 else {"results": whole, "interrupted": True}))


def _unanswered(prop: Property, error: str) -> dict[str, Any]:
    """Return the record of a property without an estimate."""
    none = dict.fromkeys(("kind", "value", "lower", "upper"))
    return {"name": prop.name, "property": prop.text, **none, "error": error}


def _estimated(
    model: ResolvedModel, prop: Property, options: argparse.Namespace, console: Console, excerpts: Excerpts
) -> dict[str, Any]:
    """Estimate a property and print it, or why there is no estimate; return its record."""
    try:
        found = estimate_property(
            model,
            prop,
            _PATHS if options.paths is None else options.paths,
            0.99 if options.confidence is None else options.confidence,
            options.seed,
            _STEPS if options.steps is None else options.steps,
            start=parse_constants(options.start),  # type: ignore[arg-type]
            progress=console.progress,
        )
    except (UnknownError, UnsupportedError, LanguageError) as error:
        told = str(error) if isinstance(error, LanguageError) else f"{prop.text}: {error}"
        for line in told.splitlines():
            console.error(excerpts.added(line))
        return _unanswered(prop, str(error))
    for warning in found.warnings:
        console.warn(f"{prop.name or prop.text}: {warning}")
    if not options.json:
        console.print((f"{prop.name}: " if prop.name else "") + _text(found))
    return {"name": prop.name, **found.record(), "error": None}


def _text(found: Estimate) -> str:
    """Return an estimate as text."""
    lines = [
        found.property,
        f"estimate     {found.value:.6g}",
        f"interval     [{found.lower:.6g}, {found.upper:.6g}], confidence {found.confidence:g} "
        f"({found.interval})",
        f"paths        {found.paths:,} of {found.steps:,} steps in {found.seconds:.2f} s, seed {found.seed}",
    ]
    if found.unknown:
        lines.append(f"unknown      {found.unknown:,} paths were not decided; --steps N gives them more")
    if found.interval == "Student":
        lines.append(
            "             the interval supposes that means of so many paths are distributed normally"
        )
    return "\n".join(lines)


_DRAWN_PATHS, _DRAWN_STEPS = 1, 100


def run(options: argparse.Namespace, console: Console) -> int:
    """Draw paths, write or watch them; return the exit status."""
    refuse_overwriting(options)
    if options.property is not None or options.chosen or options.list:
        return run_estimates(options, console)
    if options.confidence is not None:
        raise OptionError("--confidence is for an estimate; give a property")
    if options.json and options.to is None:
        raise OptionError("--json prints a summary of the paths; give their file with --to")
    model = resolve(load_model(options.model), parse_constants(options.const))
    sampler = Sampler(
        Rules(model),
        _DRAWN_STEPS if options.steps is None else options.steps,
        _DRAWN_PATHS if options.paths is None else options.paths,
        options.seed,
        options.until,
        parse_constants(options.start),  # type: ignore[arg-type]
        options.rewards,
    )
    if model.type is ModelType.MDP:
        console.warn("the choices of the MDP are drawn, each as likely as any other of its state")
    texts = csv_texts(sampler, console.progress)
    if options.to is None:
        for text in texts:
            console.print(text[:-1])
        return 0
    with OutputFile(options.to, "--to") as file:
        lines = _write(file, texts, console)
    record = _record(options, model, sampler, lines)
    if options.json:
        console.print(json.dumps(record))
    else:
        console.print(f"{record['paths']:,} paths, {record['states']:,} states written to {options.to}")
    return 0


def _write(file: OutputFile, texts: Iterator[str], console: Console) -> int:
    """Write texts, each whole, and return how many lines they have.

    What is written stays where a signal or the limit of time or memory ends the command.
    """
    lines = 0
    try:
        with file.told(), file.temporary.open("w", encoding="utf-8", newline="") as stream:
            for text in texts:
                with console.signals.hold():
                    stream.write(text)
                    lines += text.count("\n")
    except (KeyboardInterrupt, BudgetError):
        if lines:
            file.publish()
            console.warn(f"{lines - 1:,} states are written, of paths that are not all whole")
        raise
    file.publish()
    return lines


def _record(
    options: argparse.Namespace, model: ResolvedModel, sampler: Sampler, lines: int
) -> dict[str, Any]:
    """Return the summary as plain JSON values."""
    return {
        "model": {"file": model.file, "type": model.type.value, "constants": model.constants},
        "paths": sampler.paths,
        "steps": sampler.steps,
        "seed": sampler.seed,
        "states": lines - 1,
        "file": options.to,
    }

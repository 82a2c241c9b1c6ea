"""`hybrid simulate`: paths of a model as CSV."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile
from hybrid.app.cli.outputs import refuse_overwriting
from hybrid.base.errors import OptionError
from hybrid.checking.simulation.rows import csv_texts
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.sampler import Sampler
from mtbdd.base.budget import BudgetError
from mtbdd.language import load_model, parse_constants, resolve
from mtbdd.language.model_syntax import ResolvedModel
from mtbdd.language.syntax import ModelType

_PATHS, _STEPS = 1, 100


def run(options: argparse.Namespace, console: Console) -> int:
    """Draw paths, write or watch them; return the exit status."""
    refuse_overwriting(options)
    if options.property is not None or options.chosen or options.list:
        from hybrid.app.cli.estimating import run_estimates

        return run_estimates(options, console)
    if options.confidence is not None:
        raise OptionError("--confidence is for an estimate; give a property")
    if options.json and options.to is None:
        raise OptionError("--json prints a summary of the paths; give their file with --to")
    model = resolve(load_model(options.model), parse_constants(options.const))
    sampler = Sampler(
        Rules(model),
        _STEPS if options.steps is None else options.steps,
        _PATHS if options.paths is None else options.paths,
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

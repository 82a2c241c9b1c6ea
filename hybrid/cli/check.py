"""`hybrid check`: properties of a model."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.options import CheckOptions
from hybrid.cli.console import Console
from hybrid.cli.model_record import model_record, model_text
from hybrid.cli.sizes import bytes_text, seconds_text
from hybrid.loading import load
from hybrid.options import OptionError
from hybrid.properties import Properties, load_properties, parse_properties, resolve_properties
from mtbdd.language import parse_constants

__all__ = ["run"]

_FILE_SUFFIXES = (".props", ".pctl", ".csl", ".prop")


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, check, print; return the exit status."""
    chosen = CheckOptions.of(
        options.engine,
        options.backend,
        options.level,
        options.method,
        options.omega,
        options.epsilon,
        options.absolute,
        options.max_iters,
    )
    constants = parse_constants(options.const)
    properties = _read(options)
    known = {c.name for c in properties.constants} if properties else set()
    model = load(
        options.model,
        {k: v for k, v in constants.items() if k not in known},
        fix_deadlocks=not options.no_fix_deadlocks,
        order=options.order,
        progress=console.progress,
    )
    for warning in model.warnings:
        console.warn(warning)
    answers = []
    if properties is not None:
        own = {k: v for k, v in constants.items() if k in known}
        resolved = resolve_properties(properties, model.source, own, keep_faults=True)
        if options.chosen:
            resolved = resolved.select(options.chosen)
        checker = Checker(model, chosen, console.iteration)
        answers = [checker.answer(prop) for prop in resolved.properties]
    if options.json:
        record = {"model": model_record(model), "results": [a.record() for a in answers]}
        print(json.dumps(record))
    else:
        print(model_text(model_record(model)))
        for answer in answers:
            print()
            print(_text(answer))
    return 1 if any(a.error is not None for a in answers) else 0


def _read(options: argparse.Namespace) -> Properties | None:
    """Parse the property argument: a file if there is one or it looks like one, a text otherwise."""
    if options.property is None:
        if options.chosen:
            raise OptionError("--property chooses from a properties file, but none is given")
        return None
    path = Path(options.property)
    text = options.property
    is_file = text.endswith(_FILE_SUFFIXES) or ("\n" not in text and len(text) < 4096 and path.exists())
    return load_properties(path) if is_file else parse_properties(text, "<property>")


def _text(answer: Answer) -> str:
    """Return an answer as lines of text."""
    title = f"{answer.name}: {answer.property}" if answer.name else answer.property
    work = answer.statistics
    if answer.error is not None:
        result = f"not answered: {answer.error}"
    else:
        result = _value(answer.value)
        if answer.lower is not None:
            result += "  (exact: decided on the graph alone)"
        elif work.method is not None:
            result += f"  ({work.method}: converged, no error bound; residual {work.residual:.2g})"
    lines = [title, f"  result       {result}"]
    if work.method is not None:
        per = seconds_text(work.seconds / work.iterations if work.iterations else None)
        lines.append(f"  iterations   {work.iterations} in {seconds_text(work.seconds)}, {per} each")
        lines.append(
            f"  memory       vectors {bytes_text(work.base_bytes)}, "
            f"matrix {bytes_text(work.representation_bytes)} at level {work.level} (backend {work.backend})"
        )
    return "\n".join(lines)


def _value(value: float | int | bool | None) -> str:
    """Return a value as text, all digits kept."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)

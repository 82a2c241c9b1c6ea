"""`hybrid explore`: the page of the level-selection explorer, for one model or several sizes of it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile, refuse_overwriting
from hybrid.app.experiments import expand_ranges
from hybrid.app.explorer.page import write_page
from hybrid.app.explorer.sheet import measure_representations, model_sheet
from hybrid.base.errors import OptionError
from hybrid.matrix.backends import choose_backend
from mtbdd.language import LanguageError, parse_constants

MOST_MODELS = 50
"""Models of a page; more would make neither buttons nor a page that opens at once."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Build every model, compute its levels and write the page; return the exit status."""
    if not options.to.lower().endswith((".html", ".htm")):
        raise OptionError(f"--to: the explorer's page is written as .html, got {options.to!r}")
    refuse_overwriting(options)
    combinations = expand_ranges(options.const)
    if len(combinations) > MOST_MODELS:
        raise OptionError(
            f"--const: {len(combinations)} models for one page, expected at most {MOST_MODELS}; "
            "choose larger steps"
        )
    with OutputFile(options.to, "--to") as file:
        sheets, records = _sheets(options, console, combinations)
        with file.told():
            write_page(sheets, file.temporary, options.title)
        file.publish()
    if options.json:
        found = [{"model": record, **sheet} for record, sheet in zip(records, sheets, strict=True)]
        console.print(json.dumps({"page": options.to, "models": found}))
    else:
        for record, sheet in zip(records, sheets, strict=True):
            console.print(f"{model_text(record)}\n{_chosen(sheet)}\n")
        console.print(f"page         {options.to}")
    return int(len(sheets) < len(combinations))


def _sheets(
    options: argparse.Namespace, console: Console, combinations: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the page knows of every model that can be built, and their records.

    Where none can be built, the reason of the first is raised.
    """
    backend = choose_backend(options.backend)
    sheets: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    failures: list[LanguageError | MemoryError] = []
    for number, text in enumerate(combinations, start=1):
        if len(combinations) > 1:
            console.progress(f"model {number} of {len(combinations)}: {text}")
        try:
            model = built_model(options, console, parse_constants(text))
            seconds = (
                measure_representations(model, backend.name, console.progress) if options.measure else None
            )
            sheets.append(model_sheet(model, backend, text, seconds, console.progress))
            records.append(model_record(model))
        except (LanguageError, MemoryError) as error:
            # A size that cannot be built does not hide the others.
            failures.append(error)
            if len(combinations) > 1:
                console.warn(f"{text}: {str(error) or 'out of memory'}")
    if not sheets:
        raise failures[0]
    return sheets, records


def _chosen(sheet: dict[str, Any]) -> str:
    """Return the two levels of both representations as lines of text."""
    lines = []
    for one in sheet["representations"]:
        for name in ("min_memory", "min_time"):
            reason = "no level can be used" if one[name] is None else one[name]["reason"]
            lines.append(f"{name.replace('_', '-'):<12} {one['title']}: {reason}")
    return "\n".join(lines)

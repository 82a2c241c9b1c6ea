"""The model that a command works on, from the options that every command takes."""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gpu_kernels import device_problem
from hybrid.app.cli.asked_properties import PROPERTY_SUFFIXES, with_hint
from hybrid.app.cli.console import Console
from hybrid.base.units import seconds_text
from hybrid.models.loading import load
from hybrid.models.model import Model
from mtbdd.build.model import SymbolicModel
from mtbdd.language import LanguageError, parse_constants
from mtbdd.language.constants import Ignored
from mtbdd.language.syntax import Expression, ResolvedModel

if TYPE_CHECKING:
    # Needed by checks alone; sizes of a model are reported sooner without.
    from hybrid.analysis.run.statistics import SolveStatistics

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

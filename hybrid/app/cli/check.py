"""`hybrid check`: properties of a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpu_kernels import begin_warm_up
from hybrid.analysis.choice_table import SUFFIXES as SCHEDULER_SUFFIXES
from hybrid.analysis.run.options import SOLUTION_KEYWORDS, CheckOptions
from hybrid.analysis.run.state_files import check_suffix
from hybrid.app.cli.answer_text import answer_text
from hybrid.app.cli.asked_properties import (
    list_properties,
    read_properties,
    resolved_asked,
    selected_properties,
)
from hybrid.app.cli.building import built_model
from hybrid.app.cli.certify import Certifier
from hybrid.app.cli.check_pictures import CheckPictures
from hybrid.app.cli.console import Console
from hybrid.app.cli.distributed import distributed
from hybrid.app.cli.excerpts import Excerpts
from hybrid.app.cli.experiments import expand_ranges
from hybrid.app.cli.following import Following
from hybrid.app.cli.model_record import model_record
from hybrid.app.cli.on_disk import arrays_spilt
from hybrid.app.cli.outputs import refuse_overwriting
from hybrid.app.cli.reduction import checker_class, refuse_with_bisimulation
from hybrid.app.cli.report import Report, unanswered
from hybrid.app.experiments import of_model
from hybrid.base.check_options import MINUTES, OPTIONS
from hybrid.base.errors import OptionError
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.checkpoints import checkpoint_of
from hybrid.checking.filters import LISTING
from hybrid.checking.in_parts import options_of_parts, part_of
from hybrid.checking.on_disk import options_on_disk
from hybrid.checking.refusing import reason
from hybrid.matrix.cpu.compile_ahead import compile_ahead
from hybrid.properties import Properties, Property
from hybrid.properties.tree import Filter, MultiObjective
from mtbdd.base.budget import check_budget
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.language import LanguageError, parse_constants

if TYPE_CHECKING:
    from hybrid.models.lumping import LumpingChecker

_JOURNALLED = 100_000  # listed states up to which a check that is stopped later still tells them


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, check, print; return the exit status."""
    if options.list:
        return list_properties(options, console)
    with distributed(options) as communicator, arrays_spilt(options):
        return _checked(options, console, communicator)


def _checked(options: argparse.Namespace, console: Console, communicator: Communicator | None) -> int:
    """Check, alone or together with other processes."""
    flags = vars(options)
    chosen = CheckOptions(**{name: flags[OPTIONS[name].dest] for name in SOLUTION_KEYWORDS})
    if communicator is not None:
        chosen = options_of_parts(chosen)
    if options.spill is not None:
        chosen = options_on_disk(chosen)
    if options.json and options.json_lines:
        raise OptionError("--json prints one object and --json-lines one a property; give one of them")
    if options.exact and options.certificate is not None:
        raise OptionError("--exact needs no certificate: the answer is verified in integers; leave one out")
    refuse_with_bisimulation(options, chosen, communicator is not None)
    refuse_overwriting(options)
    combinations = expand_ranges(options.const)
    several = len(combinations) > 1
    if options.scheduler is not None:
        check_suffix(options.scheduler, "--scheduler", SCHEDULER_SUFFIXES)
        if several:
            raise OptionError("--scheduler writes the scheduler of one run; give constants without ranges")
    if options.every is not None and options.checkpoint is None:
        raise OptionError("--every says how often a folder of --checkpoint is written; give one as well")
    if options.checkpoint is not None:
        refused = [name for name in ("certificate", "bisimulation", "exact") if getattr(options, name)]
        if several or refused:
            what = "ranges of constants" if several else " and ".join(f"--{name}" for name in refused)
            raise OptionError(f"--checkpoint keeps the iterations of one run; leave {what} out")
    if options.values is not None:
        check_suffix(options.values, "--values")
        if several:
            raise OptionError("--values writes the values of one run; give constants without ranges")
        if options.certificate is not None:
            raise OptionError("--values and --certificate are asked for one after the other")
    if options.backend == "gpu":
        begin_warm_up("solutions")
    elif options.backend in ("auto", "cpu") and options.engine != "explicit" and communicator is None:
        compile_ahead()  # many processes would all do so
    properties = read_properties(options)
    asked = () if properties is None else _chosen(properties, options)
    names = list(parse_constants(combinations[0]))
    certifier = Certifier.of(options, properties, combinations, chosen, console)
    lists = any(isinstance(p.formula, Filter) and p.formula.operator in LISTING for p in asked)
    points = any(isinstance(p.formula, MultiObjective) for p in asked)
    excerpts, table = Excerpts(options), None
    is_plain = not (lists or points or options.witness or options.verbose)
    if several and asked and console.screen is not None and is_plain:
        from hybrid.app.cli.run_table import RunTable  # most runs need none

        table = RunTable(console.screen, combinations, asked)

    def told(answer: Answer) -> str:
        return excerpts.added(answer_text(answer))

    with (
        CheckPictures(options, console, combinations, asked) as pictures,
        Report(
            options, console, told, names, several, certifier, lists, table, points, communicator or ALONE
        ) as report,
    ):
        options.pictures = pictures
        model: SymbolicModel | None = None
        built: dict[str, Any] = {}
        failures: list[LanguageError | MemoryError] = []
        for number, text in enumerate(combinations, start=1):
            if several:
                console.run(number, len(combinations), text)
            constants = parse_constants(text)
            known = {c.name for c in properties.constants} if properties else set()
            spare = properties.undeclared() if properties else frozenset()
            own = {k: v for k, v in constants.items() if k in known}
            rest = {k: v for k, v in constants.items() if k not in known}
            if model is not None:
                rest = of_model(rest, spare, model)
            report.begin(constants, text, asked)
            try:
                if model is None or rest != built:
                    model = None
                    model = _built(options, console, rest, own, spare)
                    built = of_model(rest, spare, model)
                given = {k: v for k, v in constants.items() if k not in built}
                resolved = _resolve(model, properties, given, options)
            except (LanguageError, MemoryError) as error:
                # A point of an experiment that cannot be built does not hide the others.
                failures.append(error)
                report.fail(reason(error))
                continue
            report.built(model)
            expected = [unanswered(prop, "", options.engine).record() for prop in resolved]
            options.journal.begin(constants, model_record(model), expected, not several)
            if certifier is not None:
                _tell(certifier.answer(model, resolved[0]), options, console, report)
                certifier.check()
            else:
                part = model if communicator is None else part_of(model, communicator)
                _answer(part, resolved, chosen, options, console, report)
            report.end()
        if len(failures) == len(combinations):
            raise failures[0]
        return pictures.draw(report.runs, report.finish())


def _built(
    options: argparse.Namespace,
    console: Console,
    rest: dict[str, Any],
    own: dict[str, Any],
    spare: frozenset[str],
) -> SymbolicModel:
    """Build the model with the constants that the properties do not declare.

    Where it misses one that they do, it is built with theirs as well, so that resolving them tells that the
    constant is declared twice.
    """
    try:
        return built_model(options, console, rest, spare)
    except LanguageError:
        if not own:
            raise
        try:
            return built_model(options, console, rest | own, spare)
        except LanguageError:
            pass
        raise


def _resolve(
    model: SymbolicModel,
    properties: Properties | None,
    constants: Mapping[str, Any],
    options: argparse.Namespace,
) -> Sequence[Property]:
    """Return the properties that were asked for, in terms of the model."""
    if properties is None:
        return ()
    return resolved_asked(properties, model.source, constants, options).properties


def _chosen(properties: Properties, options: argparse.Namespace) -> Sequence[Property]:
    """Return the properties that were asked for."""
    chosen = selected_properties(properties, options)
    if options.scheduler is not None and len(chosen.properties) != 1:
        raise OptionError(
            f"--scheduler writes the scheduler of one property, and {len(chosen.properties)} are to be "
            "checked; choose one with --prop"
        )
    if options.values is not None and len(chosen.properties) != 1:
        raise OptionError(
            f"--values writes the values of one property, and {len(chosen.properties)} are to be checked; "
            "choose one with --prop"
        )
    return chosen.properties


def _answer(
    model: SymbolicModel,
    properties: Sequence[Property],
    chosen: CheckOptions,
    options: argparse.Namespace,
    console: Console,
    report: Report,
) -> None:
    """Check properties one after the other."""
    following = Following(console, options.pictures.trace)
    progress: Callable[[int, float], None] | None = following
    if model.communicator.size > 1:
        # What would end an iteration in one process alone is left out: all are ended.
        progress = None if model.communicator.rank else console.iteration
    checker: Checker | LumpingChecker | None = None
    made = checker_class(options)
    minutes = MINUTES if options.every is None else options.every
    checkpoint = checkpoint_of(model, chosen, options.checkpoint, minutes, console)
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    for prop in properties:
        check_budget()
        if checker is None:
            with_scheduler, with_values = options.scheduler is not None, options.values is not None
            checker = made(model, chosen, progress, with_scheduler, with_values, options.witness, **kept)
        try:
            answer = checker.answer(prop)
        except MemoryError as error:
            if model.communicator.size > 1:
                raise
            # The next property may do with less; what was kept for this one is let go.
            checker = None
            answer = unanswered(prop, reason(error), options.engine)
        _tell(answer, options, console, report)
        following.check()


def _tell(answer: Answer, options: argparse.Namespace, console: Console, report: Report) -> None:
    """Tell an answer, and what stops the command from outside that it is told."""
    with console.signals.hold(check=False):
        report.answer(answer)
        options.journal.answer(answer.record(len(answer.listing) <= _JOURNALLED))

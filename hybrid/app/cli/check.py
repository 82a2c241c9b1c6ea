"""`hybrid check`: properties of a model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hybrid.analysis.run.options import SOLUTION_KEYWORDS, CheckOptions
from hybrid.analysis.run.statistics import Reduction
from hybrid.app.cli.building import (
    built_model,
    list_properties,
    model_record,
    read_properties,
    resolved_asked,
    selected_properties,
    shortened_reason,
)
from hybrid.app.cli.check_pictures import CheckPictures
from hybrid.app.cli.console import Console, value_text
from hybrid.app.cli.excerpts import Excerpts
from hybrid.app.cli.limited_run import limited_threads
from hybrid.app.cli.output_file import refuse_overwriting
from hybrid.app.cli.progress_monitor import CommandMonitor
from hybrid.app.cli.report import Report, unanswered
from hybrid.app.experiments import expand_ranges, of_model
from hybrid.base.check_options import MINUTES, OPTIONS
from hybrid.base.errors import HybridError, OptionError
from hybrid.base.units import bytes_text, seconds_text
from hybrid.checking.answer import Answer, fraction_text, pairs_text
from hybrid.checking.checker import Checker
from hybrid.checking.filters import LISTING, Range
from hybrid.checking.in_parts import (
    arrays_on_disk,
    checkpoint_of,
    options_of_parts,
    options_on_disk,
    part_of,
    reason,
)
from hybrid.matrix.cpu.threads import VARIABLE, available_cores, compile_ahead, is_bound_to_cores
from hybrid.models.settled_states import is_settled_in, settled_states
from hybrid.properties import Properties, Property
from hybrid.properties.tree import Filter, MultiObjective, Quantile
from mtbdd.base.budget import check_budget
from mtbdd.base.communicator import ALONE, AgreedMemoryError, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.language import LanguageError, parse_constants
from mtbdd.language.errors import format_state
from mtbdd.language.syntax import Expression, ResolvedModel

if TYPE_CHECKING:
    from hybrid.analysis.ctl import Witness
    from hybrid.app.cli.verify import Certifier
    from hybrid.base.communicators import MpiCommunicator
    from hybrid.models.lumping import LumpingChecker

# A path that shows an answer, as lines of text.

MOST = 1000
"""States of a path that are printed."""


def witness_lines(witness: Witness) -> list[str]:
    """Return a path as lines, a state each; of very long ones the beginning and the end."""
    shown = "why it holds" if witness.holds else "why it does not hold"
    states = [f"    {number}  {format_state(state)}" for number, state in enumerate(witness.states)]
    if len(states) > MOST:
        left = len(states) - MOST
        states[MOST // 2 : -MOST // 2] = [f"    ... {left:,} more states: --json has them all"]
    if witness.loop is not None:
        states.append(f"    and from there to state {witness.loop} again")
    return [f"  path         {shown}", *states]


# `--bisimulation`: the checker, excluded options, and the reduction as text.


def refuse_with_bisimulation(options: argparse.Namespace, chosen: CheckOptions, parts: bool) -> None:
    """Refuse options about the model's own states where its blocks are checked; `parts` share them."""
    if not options.bisimulation:
        return
    from hybrid.models.lumping.checker import refuse_with_quotient

    refuse_with_quotient(
        chosen,
        scheduler=options.scheduler is not None,
        witness=options.witness,
        certificate=options.certificate is not None,
        parts=parts,
    )


def checker_class(options: argparse.Namespace) -> type[Checker] | type[LumpingChecker]:
    """Return the class of checkers: of the model, or of its quotients."""
    if not options.bisimulation:
        return Checker
    from hybrid.models.lumping import LumpingChecker  # most checks need none

    return LumpingChecker


def reduction_text(found: Reduction) -> str:
    """Return states and blocks, rounds and seconds, as text shows them behind an answer."""
    rounds = "1 round" if found.rounds == 1 else f"{found.rounds:,} rounds"
    is_on_diagrams, is_checked = found.made_from == "diagrams", found.block_transitions is not None
    blocks = f"{found.blocks:,} blocks" + (" or more" if is_on_diagrams and not is_checked else "")
    where = " on diagrams" if is_on_diagrams else ""
    text = f"{found.states:,} states in {blocks}, {rounds}{where} in {seconds_text(found.seconds)}"
    return text if is_checked else f"{text}; the model itself is checked"


# `hybrid check --spill`: long arrays in files.

_REFUSED = ("distributed", "certificate", "bisimulation")
"""Options whose work lies elsewhere than in arrays, or in several processes."""


@contextmanager
def arrays_spilt(options: argparse.Namespace) -> Iterator[None]:
    """Hold long arrays of the command in the folder of `--spill`, if it is given."""
    refused = [name for name in _REFUSED if options.spill is not None and getattr(options, name)]
    if refused:
        raise OptionError(f"--spill: {' and '.join(f'--{name}' for name in refused)} is not offered with it")
    with arrays_on_disk(options.spill):
        yield


# Answers about several objectives, as lines of text.

MOST_POINTS = 100
"""Points of a curve that are printed."""


def curve_text(record: Mapping[str, Any]) -> str:
    """Return the properties of a curve in words."""
    count = len(record["points"])
    points = f"{count} point{'' if count == 1 else 's'}"
    told = ", ".join(f"{d:.2g}" for d in record["distances"])
    kind = "" if record["distances_kind"] == "certified" else " (an estimate)"
    reached, asked = record["pareto_distance"], record["pareto_epsilon"]
    # Linear programs in doubles say when to stop.
    short = f"; precision {reached:.2g}, not {asked:g} as asked" if reached > asked * (1 + 1e-6) else ""
    return f"a curve: {points}; nothing lies further beyond their mixtures than {told}{kind}{short}"


def point_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the points that an answer rests on: a mixture's with their shares, a curve's all."""
    points = list(enumerate(record["points"], start=1))
    if "corners" not in record:
        points = [(number, point) for number, point in points if point["share"]]
    if not points:
        return
    yield "  points       " + "; ".join(record["objectives"])
    for number, point in points[:MOST_POINTS]:
        values = ", ".join(
            f"{0.5 * (low + high):.10g}" for low, high in zip(point["lower"], point["upper"], strict=True)
        )
        share = "" if point["share"] is None else f"  with probability {point['share']:.10g}"
        yield f"    {number}  ({values}){share}"
    if len(points) > MOST_POINTS:
        yield f"    ... and {len(points) - MOST_POINTS:,} more: --json and --csv have them all"


# `hybrid check --distributed`: one of several processes, of which the first prints the answers.

_ALONE = (
    *("scheduler", "certificate", "plot", "plot_convergence", "diagram"),
    *("timeout", "memory", "witness"),
)
"""Options that ask for what is not brought together, or for limits that processes would reach apart."""


@contextmanager
def distributed(options: argparse.Namespace) -> Iterator[MpiCommunicator | None]:
    """Return who the other processes are; None where the command is alone.

    All processes but the first write nothing, and those of one machine share its cores unless the job binds
    them to some, or a number of threads is given. If one of them fails alone all are ended.
    """
    if not options.distributed:
        yield None
        return
    refused = [name for name in _ALONE if getattr(options, name, None)]
    if refused:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in refused)
        raise OptionError(
            f"--distributed: {named} is not offered with several processes; leave one of them out"
        )
    from hybrid.base.communicators import mpi_communicator

    communicator = mpi_communicator()
    if communicator.rank:
        options.csv = None
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    threads = options.threads
    number, beside = communicator.local_rank()
    if options.backend == "gpu":
        from gpu_kernels import take_card

        take_card(number)  # before anything is compiled for one
    if threads is None and not os.environ.get(VARIABLE):
        # Each process is offered all cores unless the job binds it to some.
        threads = None if is_bound_to_cores() else max(available_cores() // beside, 1)
    try:
        with limited_threads(threads):
            yield communicator
    except (HybridError, AgreedMemoryError):
        raise  # in all processes alike
    except BaseException as failure:
        communicator.abort(f"{type(failure).__name__}: {failure}")
        raise


# Answers as lines of text.

MAX_LISTED = 1000
"""States that a filter's listing has as text."""

_SHORT = 60
"""Characters of a rational number that text shows; longer ones stand in records."""


def answer_text(answer: Answer) -> str:
    """Return an answer as lines of text."""
    title = f"{answer.name}: {answer.property}" if answer.name else answer.property
    work = answer.statistics
    if answer.error is not None and answer.lower is not None:
        result = f"{answer.error}; between {value_text(answer.lower)} and {value_text(answer.upper)} so far"
    elif answer.error is not None:
        result = "not answered: " + answer.error.replace("\n", "\n  ")
    else:
        result = _result(answer)
    lines = [title, f"  result       {result}"]
    if answer.reduction is not None:
        lines.append(f"  bisimulation {reduction_text(answer.reduction)}")
    if work.method is not None and (work.iterations or work.method != "exact"):
        per = seconds_text(work.seconds / work.iterations if work.iterations else None)
        lines.append(f"  iterations   {work.iterations} in {seconds_text(work.seconds)}, {per} each")
    if work.backend is not None:
        form = "" if work.level is None else f" at level {work.level}"
        if work.storage is not None:
            form = f" written out as {work.storage}" if work.level is None else f"{form} in {work.storage}"
        lines.append(
            f"  memory       vectors {bytes_text(work.base_bytes)}, "
            f"matrix {bytes_text(work.representation_bytes)}{form}"
        )
        if work.disk_bytes is not None:
            lines.append(f"  disk         arrays {bytes_text(work.disk_bytes)} at most, of all that was done")
        lines.append(f"  backend      {work.backend}: {shortened_reason(work)}")
    if work.engine_reason is not None:
        lines.append(f"  engine       {answer.engine}: {work.engine_reason}")
    lines += [f"    {state} = {value_text(value)}" for state, value in answer.listing[:MAX_LISTED]]
    if len(answer.listing) > MAX_LISTED:
        more = len(answer.listing) - MAX_LISTED
        lines.append(f"    ... and {more:,} more: --json and --csv have them all")
    if answer.several is not None:
        lines += point_lines(answer.several.record())
    if answer.witness is not None:
        lines += witness_lines(answer.witness)
    return "\n".join(lines)


def _result(answer: Answer) -> str:
    """Return a value with what is known about its error."""
    work = answer.statistics
    if answer.several is not None and answer.several.is_curve:
        return curve_text(answer.several.record())
    if answer.pairs is not None:
        return f"{pairs_text(answer.pairs)}  (exact)"
    value = value_text(answer.value) if answer.range is None else str(answer.range)
    if answer.kind == "estimate":
        change = work.component_residual
        left = "" if change is None else f"; one more step changes values by up to {100 * change:.2g} %"
        return f"{value}  (estimate, without bounds: {work.method or 'from values without'}{left})"
    if answer.range is not None:
        return f"{value}  {_ends(answer.range)}"
    if isinstance(answer.value, bool):
        return value
    if answer.exact is not None and work.method is not None:
        return f"{value}  (exactly {_fraction(answer.exact)})"
    if answer.lower == answer.upper:
        return f"{value}  (exact: decided on the graph alone)" if work.method is None else f"{value}  (exact)"
    return f"{value}  (between {value_text(answer.lower)} and {value_text(answer.upper)})"


def _ends(found: Range) -> str:
    """Return what is known about the error of a range's ends."""
    if all(end.lower == end.upper for end in (found.least, found.greatest)):
        return "(exact)"
    return f"(all between {value_text(found.least.lower)} and {value_text(found.greatest.upper)})"


def _fraction(value: Fraction) -> str:
    """Return a rational number, or how long it is if it is long."""
    text = fraction_text(value)
    if len(text) <= _SHORT:
        return text
    digits = len(text.partition("/")[2])
    return f"a fraction whose denominator has {digits:,} digits: --json has it"


_JOURNALLED = 100_000  # listed states up to which a check that is stopped later still has them


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
        from hybrid.analysis.run.state_files import check_suffix
        from hybrid.analysis.scheduler import SUFFIXES as SCHEDULER_SUFFIXES

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
        from hybrid.analysis.run.state_files import check_suffix

        check_suffix(options.values, "--values")
        if several:
            raise OptionError("--values writes the values of one run; give constants without ranges")
        if options.certificate is not None:
            raise OptionError("--values and --certificate are asked for one after the other")
    if options.backend == "gpu":
        from gpu_kernels import begin_warm_up

        begin_warm_up("solutions")
    elif options.backend in ("auto", "cpu") and options.engine in _COMPILED and communicator is None:
        compile_ahead()  # many processes would all do so
    properties = read_properties(options)
    asked = () if properties is None else _chosen(properties, options)
    names = list(parse_constants(combinations[0]))
    certifier: Certifier | None = None
    if options.certificate is not None:
        from hybrid.app.cli.verify import Certifier

        certifier = Certifier.of(options, properties, combinations, chosen, console)
    lists = any(isinstance(p.formula, Filter) and p.formula.operator in LISTING for p in asked)
    points = any(
        isinstance(p.formula, MultiObjective)
        or (isinstance(p.formula, Quantile) and len(p.formula.names) > 1)
        for p in asked
    )
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
            settle = _settling(options, properties, constants, spare)
            try:
                if model is None or rest != built or not is_settled_in(model.source, settle(model.source)):
                    model = None
                    model = _built(options, console, rest, own, spare, settle)
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
    settle: Callable[[ResolvedModel], Expression | None],
) -> SymbolicModel:
    """Build the model with the constants that the properties do not declare.

    Where it misses one that they do, it is built with theirs as well, so that resolving them shows that the
    constant is declared twice.
    """
    try:
        return built_model(options, console, rest, spare, settle)
    except LanguageError:
        if not own:
            raise
        try:
            return built_model(options, console, rest | own, spare)
        except LanguageError:
            pass
        raise


_COMPILED = ("auto", "hybrid")
"""Engines whose functions are compiled ahead."""

_OF_ALL_STATES = (
    "build_full", "no_fix_deadlocks", "values", "scheduler", "certificate", "witness", "checkpoint",
)  # fmt: skip
"""Options that ask for more than answers at initial states, or for a state to go on from elsewhere."""


def _settling(
    options: argparse.Namespace,
    properties: Properties | None,
    constants: Mapping[str, Any],
    spare: frozenset[str],
) -> Callable[[ResolvedModel], Expression | None]:
    """Return a function for the states of a text that settle all questions; None where more is needed."""
    if properties is None or any(getattr(options, name) for name in _OF_ALL_STATES):
        return lambda source: None
    declared = {constant.name for constant in properties.constants}

    def settle(source: ResolvedModel) -> Expression | None:
        given = {
            name: value
            for name, value in constants.items()
            if name in declared or (name in spare and name not in source.constants)
        }
        try:
            resolved = resolved_asked(properties, source, given, options).properties
        except LanguageError:
            return None  # reported once the model is built
        return settled_states(source, [p.formula for p in resolved if p.error is None])

    return settle


def _resolve(
    model: SymbolicModel,
    properties: Properties | None,
    constants: Mapping[str, Any],
    options: argparse.Namespace,
) -> Sequence[Property]:
    """Return the properties that were requested, in terms of the model."""
    if properties is None:
        return ()
    return resolved_asked(properties, model.source, constants, options).properties


def _chosen(properties: Properties, options: argparse.Namespace) -> Sequence[Property]:
    """Return the properties that were requested."""
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
    following = CommandMonitor(console, options.pictures.trace)
    progress: Callable[[int, float], None] | None = following
    if model.communicator.size > 1:
        # Nothing ends an iteration in one process alone: all processes are ended.
        progress = None if model.communicator.rank else console.iteration
    checker: Checker | LumpingChecker | None = None
    made = checker_class(options)
    minutes = MINUTES if options.every is None else options.every
    checkpoint = checkpoint_of(model, chosen, options.checkpoint, minutes, console.tell)
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    for prop in properties:
        check_budget()
        if checker is None:
            with_scheduler, with_values = options.scheduler is not None, options.values is not None
            checker = made(model, chosen, progress, with_scheduler, with_values, options.witness, **kept)
        try:
            answer = checker.answer(prop)
        except MemoryError as error:
            if model.communicator.size > 1 and not isinstance(error, AgreedMemoryError):
                raise
            # The next property may do with less; data kept for this one is freed.
            checker = None
            answer = unanswered(prop, reason(error), options.engine)
        _tell(answer, options, console, report)
        following.check()


def _tell(answer: Answer, options: argparse.Namespace, console: Console, report: Report) -> None:
    """Print an answer, and note for a process that may stop the command that it is printed."""
    with console.signals.hold(check=False):
        report.answer(answer)
        options.journal.answer(answer.record(len(answer.listing) <= _JOURNALLED))

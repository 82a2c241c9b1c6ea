"""Questions of the field's benchmark set: whole processes of `hybrid check` beside Storm and PRISM, in turn.

The folder has the layout of the Quantitative Verification Benchmark Set (`benchmarks/library/field_set.py`);
`benchmarks/library/long_run` has it for the examples about averages of decision processes, and
`benchmarks/library/engines` for questions of all kinds, to ask with each of --engines.
Ours are the command's own methods, between bounds; Storm's are its sound ones, in a Python that has stormpy;
PRISM's are its defaults unless --prism-options says otherwise. Of a question all tools take a turn, then
again in the opposite order until each has --repeat runs; medians count. A tool that took longer than
--repeat-seconds is asked once. A process is ended after --limit seconds. A run of ours that compiled kernels
is made again. Values are held against those that the set has, in rational numbers.

--elsewhere takes over runs that were made on another machine: {"where": TEXT, "rows": [{"name", "tool", and
"wall_seconds" with "value", or "over_seconds", or "refused"}, ...]}.
"""

from __future__ import annotations

import fnmatch
import json
import math
import re
import shlex
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.library.arguments import existing, parser
from benchmarks.library.field_set import FieldQuestion, Reference, field_questions
from benchmarks.library.processes import WholeProcess, check_whole, compile_bytecode, run_whole
from benchmarks.library.records import Records, Row

STORM = Path(__file__).parents[1] / "library" / "storm_command.py"

MOST_COMPILING = 3
"""Runs of ours, in vain, in which kernels are compiled."""

SEVERAL = {"all_wall_seconds": "wall_seconds", "all_cpu_seconds": "cpu_seconds", "loads": "load"}
"""What is kept of every run of a tool, by its name in one run."""

Tool = Callable[[FieldQuestion, float], Row]
"""Answers a question within seconds of wall time.

The row has ``wall_seconds``, ``cpu_seconds``, ``peak_rss_bytes`` and ``load``, and where there is an answer
``value``, ``lower`` and ``upper``; where there is none ``refused``, or ``over_seconds`` alone.
"""


def ours(engine: str, backend: str, epsilon: float, question: FieldQuestion, limit: float) -> Row:
    """Answer with an engine and a backend of `hybrid check`, with kernels that are compiled."""
    arguments = ["check", str(question.source), str(question.properties), "--property", question.prop]
    arguments += ["--const", question.constants] if question.constants else []
    arguments += ["--engine", engine, "--backend", backend, "--epsilon", f"{epsilon:g}", "--json"]
    for _ in range(MOST_COMPILING + 1):
        try:
            run = check_whole(arguments, limit)
        except RuntimeError as error:
            return {"refused": _last_line(str(error))}
        if not run.pop("compiled_kernels"):
            break
    if "printed" not in run:
        return {"over_seconds": limit}
    printed = run.pop("printed")
    (result,) = printed["results"]
    if result["error"] is not None:
        return run | {"refused": result["error"]}
    names = ("value", "lower", "upper", "kind", "engine", "method", "iterations")
    built = {"states": printed["model"]["states"], "built": printed["model"]["built"]}
    return run | built | {name: result[name] for name in names}


def storm(python: str, question: FieldQuestion, limit: float) -> Row:
    """Answer with Storm's sound methods."""
    words = (str(question.source), str(question.properties), question.prop, question.constants)
    done = run_whole([python, str(STORM), *words], limit)
    if done.status is None:
        return {"over_seconds": limit}
    if done.status != 0:
        return _taken(done) | {"refused": _last_line(done.errors or done.printed)}
    found: Row = json.loads(done.printed.splitlines()[-1])
    return _taken(done) | found


def prism(path: Path, options: str, question: FieldQuestion, limit: float) -> Row:
    """Answer with PRISM."""
    command = [str(path), str(question.source), str(question.properties), "-prop", question.prop]
    command += ["-const", question.constants] if question.constants else []
    done = run_whole([*command, *shlex.split(options)], limit)
    if done.status is None:
        return {"over_seconds": limit}
    answer = re.search(r"^Result(?: \([^)]*\))?: \[?([^\s,\]]+)", done.printed, re.MULTILINE)
    if answer is None:
        error = re.search(r"^Error: (.*)", done.printed, re.MULTILINE)
        return _taken(done) | {"refused": error[1] if error else _last_line(done.errors or done.printed)}
    words = {"true": 1.0, "false": 0.0, "Infinity": math.inf, "NaN": math.nan}
    value = words[answer[1]] if answer[1] in words else float(Fraction(answer[1]))
    version = re.search(r"^Version: (\S+)", done.printed, re.MULTILINE)
    known = {"version": version[1]} if version else {}
    return _taken(done) | known | {"value": value, "lower": None, "upper": None}


def _taken(done: WholeProcess) -> Row:
    """Return what a process took."""
    return {
        "wall_seconds": done.wall_seconds,
        "cpu_seconds": done.cpu_seconds,
        "peak_rss_bytes": done.known_peak,
        "load": done.load,
    }


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def measure(row: Row, question: FieldQuestion, tools: dict[str, Tool], options: Namespace) -> None:
    """Ask the tools in turn, and fill a row."""
    reference = question.reference
    row.update(
        model=question.model,
        property=question.prop,
        type=question.type,
        states=question.states,
        command=f"hybrid check {question.shown}",
        reference=None if reference is None else float(reference.value),
        reference_exact=None if reference is None else reference.exact,
        answers={},
    )
    answers = row["answers"]
    for turn in range(options.repeat):
        for name in list(tools)[:: -1 if turn % 2 else 1]:
            answer = answers.setdefault(name, {several: [] for several in SEVERAL})
            ended = "refused" in answer or "over_seconds" in answer
            if ended or max(answer["all_wall_seconds"], default=0.0) > options.repeat_seconds:
                continue
            _count(answer, tools[name](question, options.limit))
            if reference is not None and "value" in answer:
                answer.update(_judged(answer, reference))
    row["bounds_meet"] = _meet(list(answers.values()))


def _count(answer: Row, run: Row) -> None:
    """Add a run to those of its tool."""
    for several, one in SEVERAL.items():
        answer[several] += [run[one]] if one in run else []
    peaks = [answer.get("peak_rss_bytes"), run.get("peak_rss_bytes")]
    answer.update({key: value for key, value in run.items() if key != "load"})
    answer["peak_rss_bytes"] = max((peak for peak in peaks if peak is not None), default=None)
    for several in ("all_wall_seconds", "all_cpu_seconds"):
        if answer[several]:
            answer[SEVERAL[several]] = statistics.median(answer[several])


def _judged(answer: Row, reference: Reference) -> Row:
    """Return whether the reference is between the bounds, and the value's relative distance from it."""
    inside = None
    if answer["lower"] is not None and answer["upper"] is not None:
        inside = _exact(answer["lower"]) <= reference.value <= _exact(answer["upper"])
    if not math.isfinite(answer["value"]):
        return {"inside": inside, "off": math.inf}
    off = abs(Fraction(answer["value"]) - reference.value)
    return {"inside": inside, "off": float(off / abs(reference.value) if reference.value else off)}


def _exact(bound: float) -> Fraction | float:
    """Return a bound as a rational number; an infinite one as it is."""
    return Fraction(bound) if math.isfinite(bound) else bound


def _meet(answers: list[Row]) -> bool | None:
    """Return whether the bounds of all answers have a number in common; None of less than two with bounds."""
    bounds = [(one["lower"], one["upper"]) for one in answers if one.get("lower") is not None]
    if len(bounds) < 2:
        return None
    return bool(max(lower for lower, _ in bounds) <= min(upper for _, upper in bounds))


def taken_over(path: Path, known: list[str]) -> dict[str, list[Row]]:
    """Return runs made elsewhere by question, each with its machine.

    Raises
    ------
    SystemExit
        If one is of a question that the folder does not have.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, list[Row]] = {}
    for row in table["rows"]:
        if row["name"] not in known:
            raise SystemExit(f"{path}: no question {row['name']!r}; there are {', '.join(known)}")
        run = {key: value for key, value in row.items() if key != "name"}
        found.setdefault(row["name"], []).append({"where": table["where"], **run})
    return found


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    add = arguments.add_argument
    add("--models", type=existing, required=True, metavar="FOLDER", help="models in the set's layout")
    add("--engines", nargs="+", default=["auto"], metavar="NAME", help="of hybrid check (default auto)")
    add("--backends", nargs="+", default=["auto"], metavar="NAME", help="of hybrid check (default auto)")
    add("--epsilons", nargs="+", type=float, default=[1e-6], metavar="E", help="of ours (default 1e-6)")
    add("--storm", nargs="?", const=sys.executable, metavar="PYTHON", help="a Python with stormpy")
    add("--prism", type=existing, metavar="PATH", help="PRISM's command")
    add("--prism-options", default="", metavar="TEXT", help="further options of PRISM")
    add("--elsewhere", type=existing, metavar="FILE.json", help="runs that were made on another machine")
    add("--limit", type=float, default=300.0, metavar="S", help="longest process (default 300)")
    add("--repeat", type=int, default=3, metavar="N", help="runs of each tool (default 3)")
    add("--repeat-seconds", type=float, default=10.0, metavar="S", help="ask longer ones once (default 10)")
    options = arguments.parse_args()
    try:
        questions = field_questions(options.models)
    except ValueError as error:
        raise SystemExit(f"--models: {error}") from None
    names = [question.name for question in questions]
    wanted = options.only or ["*"]
    if unknown := [one for one in wanted if not fnmatch.filter(names, one)]:
        raise SystemExit(f"--only: expected some of {', '.join(names)}, got {', '.join(unknown)}")
    tools: dict[str, Tool] = {}
    for engine, backend, epsilon in product(options.engines, options.backends, options.epsilons):
        words = [engine]
        words += [backend] if backend != options.backends[0] else []
        words += [f"{epsilon:g}"] if epsilon != options.epsilons[0] else []
        tools[" ".join(words)] = partial(ours, engine, backend, epsilon)
    if options.storm is not None:
        tools["storm"] = partial(storm, options.storm)
    if options.prism is not None:
        tools["prism"] = partial(prism, options.prism, options.prism_options)
    elsewhere = {} if options.elsewhere is None else taken_over(options.elsewhere, names)
    compile_bytecode()
    facts = {"epsilon": options.epsilons[0], "limit": options.limit, "repeat_seconds": options.repeat_seconds}
    records = Records("field", options, **facts)
    for question in questions:
        if any(fnmatch.fnmatch(question.name, one) for one in wanted):
            row = records.run({"name": question.name}, measure, question, tools, options)
            if question.name in elsewhere:
                row["elsewhere"] = elsewhere[question.name]
                records.write()
    records.show()


if __name__ == "__main__":
    main()

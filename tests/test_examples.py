"""The files of examples/: complete, documented, in step with their generator, and with the known answers."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest

import hybrid
from hybrid.app.explorer import report_levels
from hybrid.app.explorer.blocks import memory_shares
from hybrid.matrix.injection import cut_tasks, inject_level
from hybrid.properties import load_properties, parse_properties, resolve_properties
from mtbdd.language import load_model, parse_model, resolve
from tests.builders.processes import run_python

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = (
    *(
        "biased_die",
        "brp",
        "cluster",
        "coin",
        "disk",
        "fms",
        "herman",
        "inventory",
        "jobs",
        "kanban",
        "mutex",
    ),
    *("philosophers", "polling", "quick_sort", "relay", "servers", "tandem", "tasks", "teams", "wakeup"),
)


def run_example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(EXAMPLES / name, *arguments)


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_example("generate.py", *arguments)


def test_examples_come_in_pairs() -> None:
    assert tuple(sorted(path.stem for path in EXAMPLES.glob("*.prism"))) == NAMES
    assert tuple(sorted(path.stem for path in EXAMPLES.glob("*.props"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_examples_name_their_source(name: str) -> None:
    text = (EXAMPLES / f"{name}.prism").read_text(encoding="utf-8")
    head = text[: text.index("\n\n")].splitlines()
    assert all(line.startswith("//") for line in head)
    assert any(line.startswith("// Source: ") for line in head)
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("name", NAMES)
def test_examples_readme_lists(name: str) -> None:
    assert f"| `{name}.prism` |" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "size"), [("polling", "5"), ("herman", "5"), ("coin", "2")])
def test_generate_reproduces_the_file(name: str, size: str) -> None:
    result = generate(name, size)
    assert result.returncode == 0, result.stderr
    assert result.stdout == (EXAMPLES / f"{name}.prism").read_text(encoding="utf-8")


def test_generate_sort_reproduces_the_file_and_grows_with_the_size() -> None:
    texts = {}
    for size in ("6", "2", "13", "1"):
        result = run_example("generate_sort.py", size)
        texts[size] = result.stdout
    assert texts["6"] == (EXAMPLES / "quick_sort.prism").read_text(encoding="utf-8")
    assert texts["1"] == ""
    assert "quick sort needs 2 elements or more, not 1" in result.stderr
    # The shorter of two parts has at most 6 elements, and while it is sorted at most one more part waits.
    for size, waiting in (("2", 0), ("13", 2)):
        source = resolve(parse_model(texts[size]), {"limit": 20})
        assert sum(v.name.startswith("wait") for v in source.variables) == waiting


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("polling", "1"), "2 stations or more, not 1"),
        (("herman", "4"), "odd number of processes, 3 or more, not 4"),
        (("herman", "1"), "odd number of processes, 3 or more, not 1"),
        (("coin", "1"), "2 processes or more, not 1"),
        (("kanban", "3"), "invalid choice"),
    ],
)
def test_generate_refuses_a_wrong_size(arguments: tuple[str, ...], message: str) -> None:
    result = generate(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in result.stderr


# name, constants, variables, valuations of them, labels, reward structures
PARSED = [
    ("tandem", {"c": 5}, 3, 72, [], ["customers"]),
    ("polling", {}, 7, 320, [], []),
    ("kanban", {"t": 4}, 16, 152587890625, [], ["throughput"]),
    ("fms", {"n": 2}, 21, 8264970432, [], ["productivity"]),
    ("cluster", {"N": 3}, 11, 8192, ["premium"], []),
    ("brp", {"N": 16, "MAX": 2}, 18, 394813440, [], []),
    ("herman", {}, 5, 32, ["stable"], ["steps"]),
    ("biased_die", {"N": 7, "first": 0}, 3, 448, ["done"], []),
    ("quick_sort", {"limit": 9}, 3, 490, ["sorted"], []),
    ("coin", {"K": 2}, 5, 832, ["decided", "all_heads", "all_tails"], ["steps"]),
    ("jobs", {"N": 3}, 3, 16, ["done"], ["time", "energy"]),
    ("relay", {"H": 3, "M": 2}, 4, 48, ["arrived", "over"], ["power", "attempts"]),
    ("mutex", {"M": 2}, 13, 209952, ["wants", "in", "others_in"], []),
    ("philosophers", {}, 4, 1536, ["hungry", "eats", "waits_left"], []),
    ("tasks", {"delay": 0.125}, 10, 100352, ["done"], ["time", "energy"]),
    ("teams", {}, 9, 4320, ["first", "second"], ["effort"]),
    ("servers", {"N": 20}, 3, 84, [], ["customers", "power", "lost"]),
    ("inventory", {"M": 12}, 2, 26, [], ["cost", "orders", "missed"]),
    ("disk", {"Q": 6}, 3, 56, [], ["power", "waiting", "cost"]),
    ("wakeup", {"K": 2}, 6, 729, ["deaf"], ["power", "delay"]),
]


@pytest.mark.parametrize(
    ("name", "constants", "variables", "valuations", "labels", "rewards"),
    PARSED,
    ids=[row[0] for row in PARSED],
)
def test_examples_parse(
    name: str,
    constants: dict[str, int],
    variables: int,
    valuations: int,
    labels: list[str],
    rewards: list[str],
) -> None:
    model = resolve(load_model(str(EXAMPLES / f"{name}.prism")), constants)
    assert len(model.variables) == variables
    assert math.prod(v.high - v.low + 1 for v in model.variables) == valuations
    assert [label.name for label in model.labels] == labels
    assert [structure.name for structure in model.rewards] == rewards


@pytest.mark.parametrize("name", NAMES)
def test_examples_properties_parse(name: str) -> None:
    path = EXAMPLES / f"{name}.props"
    assert parse_properties(path.read_text(encoding="utf-8"), file=path.name)


# name, constants, states, transitions, property, value (solved exactly or by a direct method elsewhere)
ANSWERS = [
    ("tandem", {"c": 7}, 120, 363, "customers", 7.7465621853360425),
    ("kanban", {"t": 1}, 160, 616, "throughput", 0.0925846346333826),
    ("kanban", {"t": 2}, 4600, 28120, "throughput", 0.1738717061778484),
    ("fms", {"n": 1}, 54, 155, "productivity", 13.853128336222333),
    ("fms", {"n": 2}, 810, 3699, "productivity", 29.154698799658348),
    ("cluster", {"N": 2}, 276, 1120, "premium_steady", 0.9999615335623632),
    ("cluster", {"N": 8}, 2772, 12832, "premium_steady", 0.9998330692674107),
    ("brp", {"N": 16, "MAX": 2}, 677, 867, "p1", 0.00042333344377341756),
    ("brp", {"N": 16, "MAX": 2}, 677, 867, "p2", 2.6453089120221618e-05),
    ("brp", {"N": 16, "MAX": 2}, 677, 867, "p4", 8.000000000000001e-06),
    ("polling", {}, 240, 800, "s1", 0.14492709367583562),
    ("polling", {}, 240, 800, "s1_before_s2", 0.5357405856065433),
    ("herman", {}, 32, 244, "steps", 3.2),
    ("biased_die", {"N": 7, "first": 0}, 39, 58, "one", 0.6**2 * 0.4 * (1 + 0.6**2 + 0.6**4)),
    ("biased_die", {"N": 8, "first": 1}, 25, 37, "one", 0.6 * 0.4 * (1 + 0.6**2 + 0.6**4 + 0.6**6)),
    ("quick_sort", {"limit": 10}, 14, 21, "in_time", 5 / 9),
]


@pytest.mark.parametrize(("name", "constants", "states", "transitions", "prop", "value"), ANSWERS)
def test_examples_answers(
    name: str,
    constants: dict[str, int],
    states: int,
    transitions: int,
    prop: str,
    value: float,
    backend: str,
) -> None:
    model = hybrid.load(EXAMPLES / f"{name}.prism", constants)
    assert (model.n_states, model.n_transitions) == (states, transitions)
    chosen = resolve_properties(load_properties(EXAMPLES / f"{name}.props"), model.source).select([prop])
    level = ("min-memory", "min-time")[(len(prop) + (backend == "cpu")) % 2]
    (answer,) = hybrid.check_all(model, chosen, backend=backend, level=level, epsilon=1e-10)
    assert answer.error is None
    assert answer.value == pytest.approx(value, rel=1e-6)


def test_injection_shows_every_stage() -> None:
    result = run_example("injection.py", str(EXAMPLES / "kanban.prism"), "t=3")
    assert result.returncode == 0, result.stderr
    matrix = hybrid.load(EXAMPLES / "kanban.prism", {"t": 3}).transitions
    injected = inject_level(matrix, 32)
    tasks = cut_tasks(injected)
    assert "2,473 nodes for 446,400 entries of 58,400 rows\n" in result.stdout
    assert "level 32 needs the least memory" in result.stdout
    entries = len(injected.blocks.value)
    assert (
        f"{len(injected.blocks)} submatrices of {entries:,} entries, 2,100 paths to them\n" in result.stdout
    )
    assert f"{len(tasks)} tasks of 256 rows with {len(tasks.instances):,} instances\n" in result.stdout
    assert result.stdout.count("  row ") == 4
    sizes, difference = result.stdout.splitlines()[-1].rsplit(maxsplit=1)
    assert sizes.startswith(f"{tasks.nbytes:,} bytes on the cpu, ") and float(difference) < 1e-13
    assert run_example("injection.py", str(EXAMPLES / "herman.prism")).returncode == 0


@pytest.mark.parametrize("representation", ["row-types", "tasks"])
def test_explorer_shows_the_bytes_of_what_is_held(tmp_path: Path, representation: str) -> None:
    curves, shares = tmp_path / "curves.png", tmp_path / "shares.svg"
    result = run_example(
        *("explore_levels.py", str(EXAMPLES / "kanban.prism"), "t=3,4", "--representation", representation),
        *("--curves", str(curves), "--shares", str(shares)),
    )
    assert result.returncode == 0, result.stderr
    assert "454,475 states       3,979,850 transitions" in result.stdout
    assert curves.read_bytes().startswith(b"\x89PNG")
    matrix = hybrid.load(EXAMPLES / "kanban.prism", {"t": 3}).transitions
    report = report_levels(matrix, representation=representation)
    kind = representation.replace("-", " ")
    # Not the bytes of tasks at the level of row types, nor the other way round.
    assert report.bytes_at(report.min_memory) == {"row-types": 295_680, "tasks": 131_704}[representation]
    for name, level in (("least held", report.min_memory), ("least time", report.min_time)):
        size = report.bytes_at(level)
        assert size is not None
        assert f"{name}: level {level:3}, {size / 1e6:,.3f} MB in {kind}\n" in result.stdout
    assert "least MemR: level  32, 0.151 MB in the worst case\n" in result.stdout
    text = shares.read_text(encoding="utf-8")
    assert all(name in text for name in memory_shares(report))
    # The heights of the bars are written on them.
    assert all(f">{height:.2g}<" in text for height in memory_shares(report).values())

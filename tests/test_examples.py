"""The files of examples/: complete, documented, in step with their generator, and with the known answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.properties import parse_properties
from mtbdd.language import load_model, resolve

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = ("brp", "cluster", "fms", "herman", "kanban", "polling", "tandem")


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


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


@pytest.mark.parametrize("name", ["polling", "herman"])
def test_generate_reproduces_the_file(name: str) -> None:
    result = generate(name, "5")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (EXAMPLES / f"{name}.prism").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("polling", "1"), "2 stations or more, not 1"),
        (("herman", "4"), "odd number of processes, 3 or more, not 4"),
        (("herman", "1"), "odd number of processes, 3 or more, not 1"),
        (("kanban", "3"), "invalid choice"),
    ],
)
def test_generate_refuses_a_wrong_size(arguments: tuple[str, ...], message: str) -> None:
    result = generate(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in result.stderr


# name, constants, variables, labels, reward structures
PARSED = [
    (
        "tandem",
        {"c": 5},
        [("sc", 0, 5, 0), ("ph", 1, 2, 1), ("sm", 0, 5, 0)],
        [],
        ["customers"],
    ),
    (
        "polling",
        {},
        [("s", 1, 5, 1), ("a", 0, 1, 0), *((f"s{i}", 0, 1, 0) for i in range(1, 6))],
        [],
        [],
    ),
    (
        "kanban",
        {"t": 4},
        [(f"{name}{cell}", 0, 4, 0) for cell in (1, 2, 3, 4) for name in "wxyz"],
        [],
        ["throughput"],
    ),
    (
        "fms",
        {"n": 2},
        [
            *[("P1", 0, 2, 2), ("P1wM1", 0, 2, 0), ("P1M1", 0, 3, 0), ("P1d", 0, 2, 0), ("P1s", 0, 2, 0)],
            *[("P1wP2", 0, 2, 0), ("M1", 0, 3, 3)],
            *[("P2", 0, 2, 2), ("P2wM2", 0, 2, 0), ("P2M2", 0, 1, 0), ("P2s", 0, 2, 0)],
            *[("P2wP1", 0, 2, 0), ("M2", 0, 1, 1)],
            *[("P3", 0, 2, 2), ("P3M2", 0, 2, 0), ("P3s", 0, 2, 0)],
            *[("P12", 0, 2, 0), ("P12wM3", 0, 2, 0), ("P12M3", 0, 2, 0), ("P12s", 0, 2, 0), ("M3", 0, 2, 2)],
        ],
        [],
        ["productivity"],
    ),
    (
        "cluster",
        {"N": 3},
        [
            *[("left_n", 0, 3, 3), ("left", 0, 1, 0), ("right_n", 0, 3, 3), ("right", 0, 1, 0)],
            *[("busy", 0, 1, 0), ("backbone", 0, 1, 0), ("backbone_n", 0, 1, 1)],
            *[("left_switch", 0, 1, 0), ("left_switch_n", 0, 1, 1)],
            *[("right_switch", 0, 1, 0), ("right_switch_n", 0, 1, 1)],
        ],
        ["premium"],
        [],
    ),
    (
        "brp",
        {"N": 16, "MAX": 2},
        [
            *[("s", 0, 6, 0), ("srep", 0, 3, 0), ("nrtr", 0, 2, 0), ("i", 0, 16, 0)],
            *[("bs", 0, 1, 0), ("s_ab", 0, 1, 0), ("fs", 0, 1, 0), ("ls", 0, 1, 0)],
            *[("r", 0, 5, 0), ("rrep", 0, 4, 0), ("fr", 0, 1, 0), ("lr", 0, 1, 0), ("br", 0, 1, 0)],
            *[("r_ab", 0, 1, 0), ("recv", 0, 1, 0), ("started", 0, 1, 0), ("k", 0, 2, 0), ("l", 0, 2, 0)],
        ],
        [],
        [],
    ),
    ("herman", {}, [(f"x{i}", 0, 1, 0) for i in range(1, 6)], ["stable"], ["steps"]),
]


@pytest.mark.parametrize(
    ("name", "constants", "variables", "labels", "rewards"), PARSED, ids=[row[0] for row in PARSED]
)
def test_examples_parse(
    name: str,
    constants: dict[str, int],
    variables: list[tuple[str, int, int, int]],
    labels: list[str],
    rewards: list[str],
) -> None:
    model = resolve(load_model(str(EXAMPLES / f"{name}.prism")), constants)
    assert [(v.name, v.low, v.high, v.initial) for v in model.variables] == variables
    assert [label.name for label in model.labels] == labels
    assert [structure.name for structure in model.rewards] == rewards


@pytest.mark.parametrize("name", NAMES)
def test_examples_properties_parse(name: str) -> None:
    path = EXAMPLES / f"{name}.props"
    assert parse_properties(path.read_text(encoding="utf-8"), file=path.name)

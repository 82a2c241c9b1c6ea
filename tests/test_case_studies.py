"""Case studies with LTL and several objectives, and of decisions in the long run.

Answers are held against what is proved of the protocols, published values, and values of the models written
out, by other ways than ours ([LR81], [Rabin82], [Saias92], [BFLM11]). Averages in the long run ([LK84],
[Scarf60], [BBPM99], [PHC04]) are those of linear programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.checking.answer import Answer
from hybrid.properties import load_properties, resolve_properties
from tests.oracles.fairness import State, WrittenOut
from tests.oracles.long_run import LongRunProgram
from tests.oracles.several import occupation_program
from tests.source_tree import ROOT

ALL_MOVE = [lambda state, i=i: state["last"] == i for i in (1, 2, 3)]


def answers(folder: Path, name: str, constants: dict[str, float], *only: str) -> dict[str, Answer]:
    """Return the answers to all properties of an example, or some, by name; no bounds are wider than 1e-6."""
    model = hybrid.load(folder / f"{name}.prism", constants)
    asked = resolve_properties(load_properties(folder / f"{name}.props"), model.source)
    if only:
        asked = replace(asked, properties=tuple(p for p in asked.properties if p.name in only))
    found = {answer.name: answer for answer in hybrid.check_all(model, asked)}
    for answer in found.values():
        assert answer.error is None
        assert answer.kind in ("certified", "exact")
    return found


def assert_encloses(answer: Answer, value: float) -> None:
    """Check bounds against a value of a linear program, which is exact to about 1e-7."""
    slack = 1e-7 * max(1.0, abs(value))
    assert answer.lower - slack <= value <= answer.upper + slack
    assert answer.upper - answer.lower <= 1e-6 * max(1.0, abs(value))


def assert_shown(text: str) -> None:
    """Check that the gallery tells an answer as it is."""
    assert text in (ROOT / "docs/gallery.md").read_text(encoding="utf-8")


def test_philosophers(examples_folder: Path) -> None:
    found = answers(examples_folder, "philosophers", {})
    table = WrittenOut(examples_folder / "philosophers.prism", {})
    seats = ("p1", "p2", "p3")

    def hungry(memory: int, state: State) -> int:
        """Remember 1 while somebody was hungry and nobody ate since."""
        if any(state[p] == 6 for p in seats):
            return 0
        return int(memory or any(0 < state[p] < 6 for p in seats))

    def tossing(memory: int, state: State) -> int:
        """Remember 1 while the first one tossed and did not eat since."""
        return int(state["p1"] != 6 and (memory == 1 or state["p1"] == 1))

    def coins(memory: int, state: State) -> int:
        """Remember 1 once all waited for the left fork, 2 if one ate before."""
        if memory == 0 and any(state[p] == 6 for p in seats):
            return 2
        return 1 if memory == 0 and all(state[p] == 2 for p in seats) else memory

    assert found["apart"].value is True
    # Lehmann and Rabin: with probability 1 somebody eats, if all go on.
    assert found["fed"].lower == found["fed"].upper == 1
    assert table.greatest(hungry, {1}, ALL_MOVE) == 0
    assert found["unfair"].upper == found["starved"].upper == 0
    assert table.greatest(hungry, {1}, []) == pytest.approx(1, abs=1e-8)
    assert table.greatest(tossing, {1}, ALL_MOVE) == pytest.approx(1, abs=1e-8)
    # Three coins, of which the scheduler can have none tossed twice.
    assert table.greatest(coins, {1}, ALL_MOVE) == pytest.approx(1 / 8, abs=1e-8)
    assert_encloses(found["coins"], 1 / 8)
    assert_shown(f"before anybody eats | {found['coins'].value:.3f} |")


@functools.cache
def mutex(folder: Path, lots: int) -> WrittenOut:
    return WrittenOut(folder / "mutex.prism", {"M": lots})


def test_mutual_exclusion(examples_folder: Path) -> None:
    found = answers(examples_folder, "mutex", {"M": 2}, "exclusion", "progress", "lockout")
    processes = mutex(examples_folder, 2)
    places = ("at1", "at2", "at3")

    def wanted(memory: int, state: State) -> int:
        """Remember 1 while somebody wanted to enter and nobody did since."""
        if any(state[at] == 2 for at in places):
            return 0
        return int(memory or any(state[at] == 1 for at in places))

    def kept_out(memory: int, state: State) -> int:
        """Remember 1 once the first one was in."""
        return int(memory or state["at1"] == 2)

    assert found["exclusion"].value is True
    # Rabin: whoever drew the highest lot can enter.
    assert found["progress"].lower == found["progress"].upper == 1
    assert processes.greatest(wanted, {1}, ALL_MOVE) == 0
    # Saias: nothing is certain for a single process.
    assert found["lockout"].lower == 1
    assert processes.greatest(kept_out, {0}, ALL_MOVE) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(("lots", "loses"), [(2, 7 / 8), pytest.param(3, 51 / 64, marks=pytest.mark.nightly)])
def test_who_draws_first_may_lose(examples_folder: Path, lots: int, loses: float) -> None:
    found = answers(examples_folder, "mutex", {"M": lots}, "loses")
    processes = mutex(examples_folder, lots)

    def lost(memory: int, state: State) -> int:
        """Remember 1 when the first one drew, 2 if another entered then, 3 where none of that can follow."""
        if memory in (2, 3) or state["at1"] == 2:
            return memory if memory == 2 else 3
        if state["at2"] == 2 or state["at3"] == 2:
            return 2 if memory == 1 else 3
        return int(memory or state["lot1"] > 0)

    assert processes.greatest(lost, {2}, ALL_MOVE) == pytest.approx(loses, abs=1e-8)
    assert_encloses(found["loses"], loses)
    if lots == 2:
        assert_shown(f"and another enters | {found['loses'].value:.3f} |")


def test_tasks_without_delays(examples_folder: Path) -> None:
    # Bouyer and others: 12 ps at best, 1.32 nJ at best.
    found = answers(examples_folder, "tasks", {"delay": 0})
    assert_encloses(found["fastest"], 12)
    assert_encloses(found["cheapest"], 1320)
    assert found["curve"].several is not None
    points = found["curve"].several.record()["points"]
    assert {tuple(round(x, 5) for x in p["upper"]) for p in points} == {(12, 1390), (14, 1340), (17, 1320)}


def test_tasks_with_delays(examples_folder: Path) -> None:
    delay = {"delay": 0.125}
    found = answers(examples_folder, "tasks", delay)
    program = occupation_program(examples_folder / "tasks.prism", delay, [], 2)
    assert found["surely"].lower == 1
    assert_encloses(found["fastest"], -program.best([-1, 0]))
    assert_encloses(found["cheapest"], -program.best([0, -1]))
    assert_encloses(found["thrifty"], -program.best([-1, 0], [(1, "<=", 1400)]))
    assert_shown(f"energy of at most 1400 | {found['thrifty'].value:.4f} |")
    assert found["curve"].several is not None
    record = found["curve"].several.record()
    for weights in ((1.0, 0.01), (1.0, 0.05), (1.0, 0.2)):
        exact = -program.best([-w for w in weights])
        near = min(sum(w * x for w, x in zip(weights, p["upper"], strict=True)) for p in record["points"])
        slack = sum(w * x for w, x in zip(weights, record["distances"], strict=True))
        assert near - slack - 1e-6 <= exact <= near + 1e-6


# Of every example about the long run: constants, and of each property what is averaged, whether the greatest
# average is asked for, and what has a limit.
Average = tuple[str | Callable[[Any], bool], bool, tuple[tuple[str, float], ...]]
LONG_RUN: dict[str, tuple[dict[str, float], dict[str, Average]]] = {
    "servers": ({"N": 20}, {
        "fewest": ("customers", False, ()),
        "most": ("power", True, ()),
        "full": (lambda v: v["waiting"] == 20, False, ()),
        "thrifty": ("customers", False, (("power", 2.8),)),
        "modest": ("customers", False, (("customers", 3.0), ("power", 2.8))),
    }),
    "inventory": ({"M": 12}, {
        "cheapest": ("cost", False, ()),
        "empty": (lambda v: v["stock"] == 0, False, ()),
        "busiest": ("orders", True, ()),
        "seldom": ("missed", False, (("orders", 1 / 5),)),
    }),
    "disk": ({"Q": 6}, {
        "cheapest": ("cost", False, ()),
        "worst": ("power", True, ()),
        "waits": (lambda v: v["waiting"] > 0, False, ()),
        "patient": ("power", False, (("waiting", 1.0),)),
        "still": (lambda v: v["mode"] == 0, True, (("waiting", 1.0),)),
    }),
    "wakeup": ({"K": 1}, {
        "power": ("power", False, ()),
        "delay": ("delay", True, ()),
        "deaf": (lambda v: min(v["sleep1"], v["sleep2"], v["sleep3"]) > 0
                 and min(v["sleep4"], v["sleep5"], v["sleep6"]) > 0, True, ()),
        "prompt": ("power", False, (("delay", 0.05),)),
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_RUN)
def test_averages_in_the_long_run(name: str, examples_folder: Path) -> None:
    constants, asked = LONG_RUN[name]
    found = answers(examples_folder, name, constants)
    program = LongRunProgram(examples_folder / f"{name}.prism", constants)
    assert found.keys() == asked.keys()
    for prop, (what, maximise, limits) in asked.items():
        earned = program.reward(what) if isinstance(what, str) else program.share(what)
        limited = [(program.reward(reward), limit) for reward, limit in limits]
        value = program.best(earned, maximise=maximise, limits=limited)
        if prop == "modest":
            assert value is None and found[prop].value is False
        else:
            assert value is not None
            assert_encloses(found[prop], value)
            assert_shown(f"| {found[prop].value:.4g} |")

"""Schedulers of the points of several objectives, applied: the chains that they leave reach the points."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest

import hybrid
from hybrid.checking.answer import Answer
from hybrid.models.model import Model
from tests.builders.labelled import LABELS, random_labelled
from tests.exploring import rounds
from tests.oracles.several import random_small_mdp, small_mdp_text

CLOSE = 1e-6
PATHS = (
    "G F {0}",
    "F (G {0})",
    "(G F {0}) & (G F {1}) & (G F {2})",
    "(G F {0}) & (F (G {1}))",
    "(F {0}) & (G F {1})",
    "(G F {0}) => (G F {1})",
    "G ({0} => (F {1}))",
    "F ({0} & (X {1}))",
)


def assert_reached(model: Model, answer: Answer, alone: list[str], maximise: list[bool]) -> None:
    """Check each scheduler's chain: no objective is worse than its point says."""
    assert answer.several is not None and answer.several.schedulers is not None
    points = answer.several.record()["points"]
    for scheduler, point in zip(answer.several.schedulers.schedulers, points, strict=True):
        chain = model.with_scheduler(scheduler)
        for i, (text, more) in enumerate(zip(alone, maximise, strict=True)):
            found = hybrid.check(chain, text)
            if more:
                assert found.upper >= point["lower"][i] - CLOSE
            else:
                assert found.lower <= point["upper"][i] + CLOSE


def test_what_happens_again_and_again(rng: np.random.Generator) -> None:
    checked = 0
    for number in range(rounds(24)):
        model = hybrid.parse(random_labelled(rng, "mdp").text().replace("init true endinit", ""))
        paths = [str(rng.choice(PATHS)).format(*rng.permutation(LABELS)) for _ in range(2)]
        paths[0] = PATHS[number % len(PATHS)].format(*rng.permutation(LABELS))
        maximise = [bool(rng.integers(0, 2)) for _ in paths]
        asked = [f"P{'max' if m else 'min'}=? [ {p} ]" for p, m in zip(paths, maximise, strict=True)]
        answer = hybrid.check(model, f"multi({', '.join(asked)})", scheduler=True)
        assert_reached(model, answer, [f"P=? [ {path} ]" for path in paths], maximise)
        checked += len(answer.several.record()["points"])
    assert checked >= len(PATHS)


def test_probabilities_and_rewards(rng: np.random.Generator) -> None:
    checked = 0
    for number in range(rounds(24)):
        model = hybrid.parse(small_mdp_text(random_small_mdp(rng, 2, 1, False)))
        path = ('F "t0"', 'G F "t0"', '(G F "t0") & (G F "t1")', '"t0" U "t1"')[number % 4]
        text = f'multi(Pmax=? [ {path} ], R{{"r0"}}min=? [ C ])'
        answer = hybrid.check(model, text, scheduler=True, throw=False)
        if answer.error is not None:
            assert "infinite" in answer.error
            continue
        assert_reached(model, answer, [f"P=? [ {path} ]", 'R{"r0"}=? [ C ]'], [True, False])
        checked += 1
    assert checked > 3


def test_the_chain_meets_all_again_and_again_by_definition() -> None:
    model = hybrid.parse("""mdp module m s : [0..4];
      [] s=0 -> 1/2 : (s'=1) + 1/2 : (s'=4);
      [a] s=1 -> (s'=2); [b] s=1 -> (s'=3); [c] s=1 -> true;
      [] s=2 | s=3 -> 2/3 : (s'=1) + 1/3 : true;
      [] s=4 -> true;
    endmodule""")
    text = "multi(Pmax=? [ (G F s=2) & (G F s=3) ], Pmax=? [ F (G s=4) ])"
    answer = hybrid.check(model, text, scheduler=True)
    assert answer.several is not None and answer.several.schedulers is not None
    for scheduler in answer.several.schedulers.schedulers:
        chain = model.with_scheduler(scheduler)
        table = chain.state_table()
        rows, columns = scheduler.chain().to_scipy().nonzero()
        graph = networkx.DiGraph(zip(rows.tolist(), columns.tolist(), strict=True))
        start = int(np.flatnonzero(chain.labels["init"])[0])
        reached = networkx.descendants(graph, start) | {start}
        bottoms = [
            {int(table["s"][k]) for k in part}
            for part in networkx.strongly_connected_components(graph.subgraph(reached))
            if not any(t not in part for k in part for t in graph[k])
        ]
        assert sorted(map(sorted, bottoms)) == [[1, 2, 3], [4]]


def test_philosophers_take_turns(examples_folder: Path) -> None:
    model = hybrid.load(examples_folder / "philosophers.prism")
    fair = "(G F last=1) & (G F last=2) & (G F last=3)"
    first, second = f"{fair} & (G F p1=6) & (F (G p2!=6))", f"{fair} & (G F p2=6) & (F (G p1!=6))"
    answer = hybrid.check(model, f"multi(Pmax=? [ {first} ], P>=0.25 [ {second} ])", scheduler=True)
    assert answer.lower <= 0.75 <= answer.upper
    found = answer.several
    assert found is not None and found.schedulers is not None
    mixed = np.zeros(2)
    for scheduler, share in zip(found.schedulers.schedulers, found.schedulers.shares, strict=True):
        chain = model.with_scheduler(scheduler)
        values = [hybrid.check(chain, f"P=? [ {path} ]").value for path in (first, second)]
        mixed += float(share or 0) * np.array(values)
    assert mixed == pytest.approx([0.75, 0.25], abs=1e-6)

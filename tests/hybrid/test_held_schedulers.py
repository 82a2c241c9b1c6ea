"""Schedulers applied to their model, written out, and graphs of MDPs: the same in every variable order."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.analysis.scheduler import Scheduler
from mtbdd.graph.prob01 import bottom_components
from tests.builders.mdp_texts import SLOW_WAY

ORDERS = ("model", "reversed", "force")
JOBS = (Path(__file__).resolve().parents[2] / "examples" / "jobs.prism").read_text(encoding="utf-8")


@pytest.mark.parametrize("order", ORDERS)
def test_the_chain_of_a_scheduler_has_the_values_that_it_attains(order: str) -> None:
    model = hybrid.parse(JOBS, constants={"N": 3}, order=order)
    for prop, of_chain in (
        ('R{"time"}min=? [ F "done" ]', 'R{"time"}=? [ F "done" ]'),
        ('R{"energy"}max=? [ F "done" ]', 'R{"energy"}=? [ F "done" ]'),
    ):
        answer = hybrid.check(model, prop, scheduler=True)
        chain = model.with_scheduler(answer.scheduler)
        assert chain.type.value == "dtmc"
        assert np.array_equal(chain.state_table(), model.state_table())
        found = hybrid.check(chain, of_chain)
        np.testing.assert_allclose(found.values, answer.values, rtol=1e-6)
        difference = chain.transitions.to_scipy() - answer.scheduler.chain().to_scipy()
        assert abs(difference).sum() == 0
        assert chain.steady_state()[model.labels["done"]].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["drn", "umb"])
def test_the_chain_of_a_model_without_a_text_keeps_its_rewards(kind: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.prism").write_text(JOBS, encoding="utf-8")
    file = tmp_path / f"jobs.{kind}"
    assert main(["export", str(tmp_path / "jobs.prism"), "--const", "N=3", "--to", str(file), "--quiet"]) == 0
    model = hybrid.load(file)
    for name in ("time", "energy"):
        answer = hybrid.check(model, f'R{{"{name}"}}min=? [ F "done" ]', scheduler=True)
        chain = model.with_scheduler(answer.scheduler)
        found = hybrid.check(chain, f'R{{"{name}"}}=? [ F "done" ]')
        assert found.value == pytest.approx(answer.value) and answer.value > 0
        np.testing.assert_allclose(found.values, answer.values, rtol=1e-6)


def test_the_chain_of_a_scheduler_is_solved_exactly_too() -> None:
    model = hybrid.parse(SLOW_WAY)
    scheduler = hybrid.check(model, "Pmax=? [ F x=2 ]", scheduler=True).scheduler
    chain = model.with_scheduler(scheduler)
    found = hybrid.check(chain, "P>=0.6 [ F x=2 ]")  # exactly 3/5: bounds alone do not decide it
    assert found.value is True
    assert hybrid.check(chain, 'R{"places"}=? [ C<=4 ]').value > 0


def test_states_that_a_scheduler_does_not_reach_have_no_part_in_bottom_components() -> None:
    model = hybrid.parse(
        """mdp module m x:[0..3];
        [] x=0 -> (x'=1); [] x=0 -> (x'=2); [] x=1 -> (x'=0);
        [] x=2 -> 0.5:(x'=0)+0.5:(x'=3); [] x=3 -> (x'=2); endmodule"""
    )
    scheduler = hybrid.check(model, "Pmin=? [ F x=2 ]", scheduler=True).scheduler
    chain = model.with_scheduler(scheduler)
    components = [chain.indicator(states).nonzero()[0].tolist() for states in bottom_components(chain)]
    assert components == [[0, 1]]
    assert hybrid.check(chain, "S=? [ x=0 ]", exact=True).exact == Fraction(1, 2)
    assert hybrid.check(chain, "S=? [ x<2 ]").values.tolist() == [1.0] * 4
    # The same of arrays, whose states need not be reached.
    same = hybrid.from_scipy(chain.transitions.to_scipy(), type="dtmc", initial=0)
    assert len(bottom_components(same)) == 1
    np.testing.assert_allclose(same.steady_state(), [0.5, 0.5, 0.0, 0.0])


def test_schedulers_that_do_not_fit() -> None:
    model, other = hybrid.parse(SLOW_WAY), hybrid.parse(SLOW_WAY)
    scheduler = hybrid.check(model, "Pmax=? [ F x=2 ]", scheduler=True).scheduler
    with pytest.raises(ValueError, match="one of another"):
        other.with_scheduler(scheduler)
    layers = scheduler.layers.copy()
    with pytest.raises(ValueError, match="4 integers"):
        model.with_scheduler(Scheduler(model, layers[:3]))
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.with_scheduler(Scheduler(model, layers + 7))
    enabled = model.indicator(model.layers[1].enabled)
    layers[~enabled] = 1
    with pytest.raises(ValueError, match="a choice in layer"):
        model.with_scheduler(Scheduler(model, layers))


def test_schedulers_are_written_alike_in_every_order(tmp_path: Path) -> None:
    files = []
    for order in ORDERS:
        model = hybrid.parse(JOBS, constants={"N": 2}, order=order)
        scheduler = hybrid.check(model, 'R{"time"}min=? [ F "done" ]', scheduler=True).scheduler
        for suffix in ("csv", "json"):
            scheduler.write(tmp_path / f"{order}.{suffix}")
        files.append((tmp_path / f"{order}.csv").read_text().splitlines())
        records = json.loads((tmp_path / f"{order}.json").read_text())
        names, numbers = scheduler.actions()
        assert [r["layer"] for r in records] == scheduler.layers.tolist()
        assert [r["action"] for r in records] == [names[i] for i in numbers.tolist()]
        assert [tuple(r["state"].values()) for r in records] == model.state_table().tolist()
    assert all(
        [line.rpartition(",")[0] for line in f] == [line.rpartition(",")[0] for line in files[0]]
        for f in files
    )


@pytest.mark.parametrize("order", ["reversed", "force"])
def test_graphs_go_by_the_numbers_too(order: str) -> None:
    from hybrid.analysis.graphs import choice_actions, model_graph

    graphs = []
    for chosen in ("model", order):
        model = hybrid.parse(JOBS, constants={"N": 3}, order=chosen)
        graph = model_graph(model, probabilities=True)
        names, actions = choice_actions(model, graph)
        edges = []
        for state in range(graph.n_states):
            for choice in range(graph.choice_ptr[state], graph.choice_ptr[state + 1]):
                part = slice(graph.choice_offsets[choice], graph.choice_offsets[choice + 1])
                targets = tuple(graph.targets[part].tolist())
                edges.append(
                    (state, names[actions[choice]], targets, tuple(graph.probabilities[part].tolist()))
                )
        graphs.append(sorted(edges))
    assert graphs[0] == graphs[1]

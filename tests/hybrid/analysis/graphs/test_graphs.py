"""Graphs of models: arrays, memory, networkx, decompositions on one thread of the host."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings

from hybrid.analysis.graphs import (
    ModelGraph,
    choice_actions,
    decompose,
    decompose_bottom,
    graph_bytes,
    mec_decomposition,
    model_graph,
    to_networkx,
)
from mtbdd.build.build import build_model
from mtbdd.graph.components import model_components, model_end_components
from mtbdd.language import parse_model, resolve
from tests.builders.mdp_texts import GRAPHS
from tests.builders.models import build, build_both, members
from tests.oracles import graphs as oracles
from tests.oracles.graphs import Mdp
from tests.oracles.mdps import explore_mdp

SETTINGS = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


CHAIN = """ctmc module m x : [0..3]; y : [0..3]; [] x<3 -> 1:(x'=x+1); [a] x>0 -> 2:(x'=x-1); endmodule
    module n z : [0..3]; [a] z<3 -> 2:(z'=z+1); [] z>0 & z<3 -> 1:(z'=z-1); endmodule"""


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_of_an_mdp_equals_the_explicit_one(name: str) -> None:
    source = resolve(parse_model(GRAPHS[name]), {})
    model, mdp = build_model(source), explore_mdp(source)
    graph = model_graph(model, probabilities=True)
    assert (graph.n_states, graph.n_choices, graph.n_transitions) == (
        len(mdp.choices), mdp.n_choices, mdp.n_transitions,
    )  # fmt: skip
    assert (graph.n_choices, graph.n_transitions) == (model.n_choices, model.n_transitions)
    names, numbers = choice_actions(model, graph)
    assert graph.probabilities is not None
    for state, own in enumerate(mdp.choices):
        found = []
        for c in range(graph.choice_ptr[state], graph.choice_ptr[state + 1]):
            here = slice(graph.choice_offsets[c], graph.choice_offsets[c + 1])
            targets = graph.targets[here].tolist()
            assert targets == sorted(set(targets))
            row = zip(targets, graph.probabilities[here].tolist(), strict=True)
            found.append((names[numbers[c]] or "", tuple(row)))
        layers = graph.choice_layers[graph.choice_ptr[state] : graph.choice_ptr[state + 1]].tolist()
        assert layers == sorted(set(layers))
        expected = [
            (action or "", tuple((t, float(p)) for t, p in sorted(row.items()))) for action, row in own
        ]
        assert [(a, [t for t, _ in row]) for a, row in sorted(found)] == [
            (a, [t for t, _ in row]) for a, row in sorted(expected)
        ]
        np.testing.assert_allclose(
            [p for _, row in sorted(found) for _, p in row],
            [p for _, row in sorted(expected) for _, p in row],
            rtol=1e-12,
        )
    degrees = [sum(len(row) for _, row in own) for own in mdp.choices]
    assert graph.maximum_out_degree == max(degrees)
    assert graph.average_out_degree == pytest.approx(sum(degrees) / len(degrees))
    assert graph.offsets.tolist() == np.cumsum([0, *degrees]).tolist()


def test_graph_of_a_chain_has_one_choice_a_state() -> None:
    model, explicit = build_both(CHAIN)
    graph = model_graph(model, probabilities=True)
    assert graph.choice_ptr.tolist() == list(range(explicit.n_states + 1))
    dense = np.zeros((explicit.n_states,) * 2)
    dense[np.repeat(np.arange(explicit.n_states), np.diff(graph.offsets)), graph.targets] = (
        graph.probabilities
    )
    np.testing.assert_allclose(dense, explicit.dense(), rtol=1e-12)
    assert model_graph(model).probabilities is None
    with pytest.raises(ValueError, match="expected an mdp, got a ctmc"):
        choice_actions(model, graph)


def test_graph_without_room_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(GRAPHS["dice"])
    required = graph_bytes(model)
    assert required > model_graph(model).nbytes
    assert graph_bytes(model, probabilities=True) > required
    monkeypatch.setattr("hybrid.analysis.graphs.components.explicit_matrix", None)
    with pytest.raises(MemoryError, match=f"needs {required} bytes.* {required - 1} are available"):
        model_graph(model, memory_budget=required - 1)


def test_networkx_graph_of_an_mdp_has_choices_actions_and_probabilities() -> None:
    model = build(GRAPHS["ends"])
    exported = to_networkx(model)
    assert isinstance(exported, networkx.MultiDiGraph)
    assert exported.number_of_nodes() == model.n_states
    assert exported.number_of_edges() == model.n_transitions
    sums: dict[tuple[int, int], float] = {}
    for s, _, data in exported.edges(data=True):
        sums[s, data["choice"]] = sums.get((s, data["choice"]), 0.0) + data["probability"]
        assert data["action"] in (None, "go", "stay")
    assert len(sums) == model.n_choices
    assert set(sums.values()) == {1.0}
    components = networkx.number_strongly_connected_components(exported)
    assert components == decompose(model_graph(model)).count


def test_networkx_graph_of_a_chain_and_limit() -> None:
    model = build(CHAIN)
    exported = to_networkx(model)
    assert type(exported) is networkx.DiGraph
    assert {d["rate"] for _, _, d in exported.edges(data=True)} == {1.0, 4.0}
    assert all(not d for _, _, d in to_networkx(model, model_graph(model)).edges(data=True))
    with pytest.raises(ValueError, match=f"at most 3 transitions, the model has {model.n_transitions}"):
        to_networkx(model, limit=3)


# ------------------------------------------------------------------ decompositions


def check(mdp: Mdp) -> None:
    """Compare all decompositions of an MDP with networkx."""
    graph, n = oracles.model_graph_of(mdp), len(mdp)
    strong = oracles.strong_components_by_networkx(mdp)
    for variant in ("auto", "tarjan", "scipy"):
        found = decompose(graph, variant)
        assert found.labels.tolist() == oracles.labels_of(strong, n)
        assert found.count == len(strong)
        assert found.n_trivial == sum(len(c) == 1 for c in strong)
        assert found.largest == max((len(c) for c in strong), default=0)
    bottom = {c for c in strong if all(to <= c for s in c for to in mdp[s])}
    assert decompose_bottom(graph).labels.tolist() == oracles.labels_of(bottom, n)
    ends = oracles.end_components_by_networkx(mdp)
    result = mec_decomposition(graph)
    assert result.labels.tolist() == oracles.labels_of({states for states, _ in ends}, n)
    kept = {c for _, choices in ends for c in choices}
    first = np.cumsum([0, *(len(own) for own in mdp)])
    assert result.choice_kept.tolist() == [
        (s, c) in kept for s in range(n) for c in range(first[s + 1] - first[s])
    ]
    assert result.count == len(ends)


@SETTINGS
@given(mdp=oracles.random_mdps(most_states=12, most_choices=4))
@example(mdp=[])
@example(mdp=[[]])
@example(mdp=[[frozenset({0})]])
def test_decompositions_of_random_mdps_equal_networkx(mdp: Mdp) -> None:
    check(mdp)


@SETTINGS
@given(mdp=oracles.cyclic_mdps())
def test_decompositions_of_rings_equal_networkx(mdp: Mdp) -> None:
    check(mdp)
    event(f"end components: {mec_decomposition(oracles.model_graph_of(mdp)).count}")


def test_decompositions_of_long_paths_and_rings_do_not_recurse() -> None:
    n = 50_000
    path = np.minimum(np.arange(1, n + 1), n - 1).astype(np.int32)
    index = np.arange(n + 1, dtype=np.int32)
    graph = ModelGraph(path, index, index, np.zeros(n, np.uint8))
    assert decompose(graph).n_trivial == n
    assert mec_decomposition(graph).labels.tolist() == [-1] * (n - 1) + [n - 1]
    ring = ModelGraph((np.arange(1, n + 1) % n).astype(np.int32), index, index, graph.choice_layers)
    assert decompose(ring).sizes.tolist() == [n]
    assert mec_decomposition(ring).choice_kept.all()


def test_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of auto, scipy, tarjan, got 'fbt'"):
        decompose(oracles.model_graph_of([[]]), "fbt")


@pytest.mark.parametrize("text", [*GRAPHS.values(), CHAIN])
def test_explicit_and_symbolic_components_of_models_are_the_same(text: str) -> None:
    model = build(text)
    graph = model_graph(model)
    found, symbolic = decompose(graph), model_components(model)
    assert sorted(found.sizes[found.sizes > 1].tolist()) == sorted(symbolic.sizes)
    assert found.n_trivial == symbolic.n_trivial
    ends, sets = mec_decomposition(graph), model_end_components(model)
    state_of = np.repeat(np.arange(graph.n_states), np.diff(graph.choice_ptr))
    assert members(model, sets.states) == set(np.flatnonzero(ends.labels >= 0).tolist())
    for component in sets.components:
        states = members(model, component.states)
        assert set(np.flatnonzero(ends.labels == min(states)).tolist()) == states
        for layer, own in enumerate(component.choices):
            kept = ends.choice_kept & (graph.choice_layers == layer) & (ends.labels[state_of] == min(states))
            assert members(model, own) == set(state_of[kept].tolist())
    for layer, own in enumerate(sets.single.choices):
        alone = (
            np.bincount(ends.labels[ends.labels >= 0], minlength=graph.n_states)[ends.labels[state_of]] == 1
        )
        kept = ends.choice_kept & (graph.choice_layers == layer) & alone
        assert members(model, own) == set(state_of[kept].tolist())

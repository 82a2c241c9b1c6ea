"""MDPs in the symbolic layer: choices in layers, counts, deadlocks, rewards, refusals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mtbdd.build.rewards import action_rewards, reward_rates
from mtbdd.language.errors import BuildError
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.matrices import to_dense
from tests.builders.models import build, build_mdp, members, state_set
from tests.oracles.comparing import assert_same_mdp

OVERLAPPING = """
    mdp module m x : [0..3];
    [] x=0 -> (x'=1); [] x<2 -> 0.5:(x'=2) + 0.5:(x'=3); [] x=0 -> (x'=1);
    [] x>=2 -> 0.25:(x'=0) + 0.75:(x'=0); endmodule"""

# In x=1, y=0 the modules offer two commands each for a: four choices.
COMBINED = """
    mdp module m x : [0..2];
    [a] x<2 -> (x'=x+1); [a] x=1 -> 0.5:(x'=0) + 0.5:true; [] x=2 -> (x'=0); [b] x=0 -> true; endmodule
    module n y : [0..1];
    [a] y=0 -> (y'=1); [a] true -> 0.25:(y'=0) + 0.75:(y'=1); [b] y=1 -> (y'=0); endmodule"""

ENDING = """
    mdp module m x : [0..4]; b : bool;
    [go] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=4); [go] x=1 & !b -> (b'=true); [] x=2 -> (x'=3);
    [never] x<0 -> true; endmodule
    module n z : [0..2]; [go] z<2 -> (z'=z+1); [go] z=1 -> (z'=0); endmodule
    rewards "states" x>1 : x; endrewards
    rewards "moves" [go] x<2 : 3; [] true : 5; [never] true : 7; [go] z=1 : z+0.5; endrewards
    rewards "both" true : 1; [go] true : x*z; [] x=2 : 4; b : -2; endrewards"""

SEVERAL_INITIAL = """
    mdp global g : [-1..1]; module m x : [0..2];
    [] g<1 -> 1/3:(g'=g+1) + 2/3:(x'=mod(x+1, 3)); [] g>-1 -> (g'=g-1);
    [s] x=1 -> 0.5:(x'=0) + 0.5:true; endmodule module n = m [x=y] endmodule init g=0 endinit"""

TEXTS = {
    "overlapping": OVERLAPPING,
    "combined": COMBINED,
    "ending": ENDING,
    "several initial states": SEVERAL_INITIAL,
}

# states, choices, transitions, layers, counted by hand
COUNTS = {
    "overlapping": (4, 6, 8, 3),
    "combined": (6, 12, 23, 4),
}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", TEXTS)
def test_mdp_equals_explicit(name: str, package: str) -> None:
    assert_same_mdp(*build_mdp(TEXTS[name], package))


@pytest.mark.parametrize("name", COUNTS)
def test_mdp_counts(name: str) -> None:
    model = build(TEXTS[name])
    states, choices, transitions, layers = COUNTS[name]
    assert (model.n_states, model.n_choices, model.n_transitions) == (states, choices, transitions)
    assert len(model.layers) == layers


def test_mdp_without_variables_has_one_choice() -> None:
    model, mdp = build_mdp("mdp module m [] true -> true; endmodule")
    assert_same_mdp(model, mdp)
    assert (model.n_states, model.n_choices, model.n_transitions) == (1, 1, 1)
    empty, mdp = build_mdp("mdp module m endmodule")
    assert_same_mdp(empty, mdp)
    assert empty.warnings


def test_mdp_events_share_layers_where_no_state_has_both() -> None:
    """Ten commands with disjoint guards are one layer, and two more that meet all of them are two."""
    commands = "".join(f"[] x={i} -> (x'={(i + 1) % 10});" for i in range(10))
    model = build(f"mdp module m x : [0..9]; {commands} [a] true -> (x'=0); [] x>=0 -> true; endmodule")
    assert len(model.layers) == 3
    assert sorted(len(layer.parts) for layer in model.layers) == [1, 1, 10]


def test_mdp_layers_look_at_reachable_states_only() -> None:
    """Guards that meet in states which are never reached do not keep commands apart."""
    model = build("""mdp module m x : [0..3]; y : [0..3];
        [] x<2 -> (x'=x+1) & (y'=y+1); [] x>1 | y<2 & x!=y -> (x'=0) & (y'=0); endmodule""")
    assert len(model.layers) == 1
    assert (model.n_states, model.n_choices, model.n_transitions) == (3, 3, 3)


def test_chains_have_one_layer() -> None:
    model = build("dtmc module m x : [0..2]; [a] x<2 -> 0.5:(x'=x+1) + 0.5:true; [b] x<1 -> true; endmodule")
    (layer,) = model.layers
    assert layer.matrix is model.matrix
    assert layer.enabled == model.reachable
    assert [(part.action, members(model, part.states)) for part in layer.parts] == [
        ("a", {0, 1}),
        ("b", {0}),
        (None, {2}),
    ]
    assert model.n_choices is None and model.statistics.choices is None
    assert model.layer_transitions(0) is model.transitions
    assert model.layer_relation(0) == model.matrix.support()


def test_mdp_has_no_single_matrix() -> None:
    model = build(OVERLAPPING)
    for use in (
        lambda: model.transitions,
        lambda: model.matrix,
        lambda: model.exit_rates(model.index),
        lambda: model.submatrix(model.index, model.index),
        lambda: model.self_loops(model.index),
    ):
        with pytest.raises(ValueError, match="3 layers of choices: name one"):
            use()
    for number in (-1, 3):
        with pytest.raises(ValueError, match=f"expected a number from 0 to 2, got {number}"):
            model.layer_transitions(number)
    assert model.layer_transitions(2) is model.layer_transitions(2)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_layer_submatrices_and_self_loops(package: str, rng: np.random.Generator) -> None:
    model, mdp = build_mdp(COMBINED, package)
    for number in range(len(model.layers)):
        dense = to_dense(model.layer_transitions(number))
        assert np.array_equal(model.self_loops(model.index, number), dense.diagonal())
        some, others = (np.flatnonzero(rng.random(model.n_states) < 0.6).tolist() for _ in range(2))
        rows, columns = (index_states(model.manager, state_set(model, mdp.graph, s)) for s in (some, others))
        found = to_dense(model.submatrix(rows, columns, layer=number))
        assert np.array_equal(found, dense[np.ix_(some, others)])


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", TEXTS)
def test_choice_relations_are_the_layers(name: str, package: str, rng: np.random.Generator) -> None:
    """Together the relations lead where the choices lead, each from every state at most once."""
    model, mdp = build_mdp(TEXTS[name], package)
    n = model.n_states
    for _ in range(5):
        target = set(np.flatnonzero(rng.random(n) < 0.4).tolist())
        node = state_set(model, mdp.graph, target)
        hits: Counter[int] = Counter()
        enabled: Counter[int] = Counter()
        for relation in model.choice_relations:
            hits.update(members(model, relation.preimage(node)))
            enabled.update(members(model, relation.sources))
        expected = Counter(i for i, own in enumerate(mdp.choices) for _, row in own if target & set(row))
        assert hits == expected
        assert enabled == Counter({i: len(own) for i, own in enumerate(mdp.choices)})


def test_mdp_statistics_sum_over_layers() -> None:
    model = build(COMBINED)
    sizes = [layer.matrix.mtbdd_nodes() for layer in model.layers]
    assert model.statistics.mtbdd_nodes == sum(nodes for nodes, _ in sizes)
    values = {0.0}.union(*(to_dense(model.layer_transitions(i)).ravel() for i in range(len(sizes))))
    assert model.statistics.terminals == len(values)


FAULTS = [
    ("[] x=0 -> 0.5:(x'=1) + 0.4:(x'=0);", "add up to 0.9, expected 1"),
    ("[] x=0 -> 1.5:(x'=1) + -0.5:(x'=0);", "weight of an update is -0.5"),
    ("[a] x=0 -> (x'=1); [a] x<2 -> (x'=x+3);", "sets x to 3, outside its range"),
    ("[] x=0 -> 1/x:(x'=1) + 1/2:(x'=0);", "weight of an update is inf"),
]


@pytest.mark.parametrize(("commands", "message"), FAULTS)
def test_mdp_refuses_faults(commands: str, message: str) -> None:
    with pytest.raises(BuildError, match="in reachable state") as caught:
        build(f"mdp module m x : [0..2]; {commands} endmodule")
    assert any(message in fault.message for fault in caught.value.faults)


def test_mdp_deadlocks_are_refused_on_request() -> None:
    with pytest.raises(BuildError, match="no outgoing transition"):
        build("mdp module m x : [0..2]; [] x=0 -> (x'=1); endmodule", fix_deadlocks=False)


def test_reward_rates_of_an_mdp_want_a_layer() -> None:
    model = build(ENDING)
    for function in (reward_rates, action_rewards):
        with pytest.raises(ValueError, match="layers of choices: name one"):
            function(model, 0, model.index)


def test_rewards_count_only_choices_that_exist() -> None:
    """A reward that is not finite is refused where a choice earns it, and nowhere else."""
    text = """mdp module m x : [0..2]; [a] x>0 -> (x'=x-1); [b] true -> (x'=2); endmodule
        rewards [{}] true : 1/x; endrewards"""
    model = build(text.format("a"))
    (with_a,) = (i for i, layer in enumerate(model.layers) if "a" in [p.action for p in layer.parts])
    assert action_rewards(model, 0, model.index, with_a).tolist() == [0, 1, 0.5]
    model = build(text.format("b"))
    with pytest.raises(BuildError, match=r"the reward is inf in state \(x=0\)"):
        for number in range(len(model.layers)):
            action_rewards(model, 0, model.index, number)


def test_transition_rewards_of_rounded_probabilities_are_whole() -> None:
    model = build("""mdp module m x : [0..2]; [a] true -> 0.333333:(x'=0) + 0.333333:(x'=1) + 0.333333:(x'=2);
        endmodule rewards [a] true : 3; endrewards""")
    assert action_rewards(model, 0, model.index, 0).tolist() == [3, 3, 3]

"""Random small MDPs: the symbolic build equals the explicit one, Prob0 and Prob1 those of all schedulers."""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mtbdd.build.build import build_model
from mtbdd.graph.prob01 import prob0a, prob0e, prob1a, prob1e
from mtbdd.language import parse_model, resolve
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import members, state_set
from tests.builders.random_mdps import SPLITS, flat
from tests.oracles import mdps as mdp_oracles
from tests.oracles.comparing import assert_same_mdp

Draw = st.DrawFn

SETTINGS = settings(
    deadline=None, print_blob=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def composed(draw: Draw) -> str:
    """Draw two modules that share actions, with guards that overlap and updates that meet."""

    def module(name: str, variable: str, other: str) -> str:
        lines = []
        for _ in range(draw(st.integers(1, 4))):
            guard = draw(
                st.sampled_from(
                    (
                        f"{variable}>0",
                        f"{variable}<2",
                        f"{variable}=1",
                        "true",
                        f"{other}!={variable}",
                        f"{other}>1",
                    )
                )
            )
            split = draw(st.sampled_from(SPLITS))
            targets = ("0", "1", "2", variable, other, f"2-{variable}")
            updates = " + ".join(f"{p}:({variable}'={draw(st.sampled_from(targets))})" for p in split)
            lines.append(f"[{draw(st.sampled_from(('', 'a', 'b')))}] {guard} -> {updates};")
        return f"module {name} {variable} : [0..2]; {' '.join(lines)} endmodule"

    return f"mdp {module('m', 'x', 'y')} {module('n', 'y', 'x')}"


@SETTINGS
@given(text=st.one_of(flat(), composed()), package=st.sampled_from(DIAGRAM_PACKAGES))
def test_random_mdps_equal_explicit(text: str, package: str) -> None:
    source = resolve(parse_model(text))
    model = build_model(source, package=package)
    mdp = mdp_oracles.explore_mdp(source)
    event(f"most choices of a state: {max(len(own) for own in mdp.choices)}")
    event(f"layers: {len(model.layers)}")
    assert_same_mdp(model, mdp)


@SETTINGS
@given(text=flat(), data=st.data())
def test_prob0_and_prob1_sets_equal_all_schedulers(text: str, data: st.DataObject) -> None:
    source = resolve(parse_model(text))
    model = build_model(source)
    mdp = mdp_oracles.explore_mdp(source)
    states = st.frozensets(st.sampled_from(range(model.n_states)))
    for _ in range(4):
        target = set(data.draw(states))
        safe = set(data.draw(st.one_of(st.just(frozenset(range(model.n_states))), states)))
        nodes = [state_set(model, mdp.graph, chosen) for chosen in (safe, target)]
        assert members(model, prob0a(model, *nodes)) == mdp_oracles.prob0a(mdp, safe, target)
        zero = prob0e(model, *nodes)
        assert members(model, zero) == mdp_oracles.prob0e(mdp, safe, target)
        sure = prob1e(model, *nodes)
        assert members(model, sure) == mdp_oracles.prob1e(mdp, safe, target)
        always = prob1a(model, *nodes)
        assert members(model, always) == mdp_oracles.prob1a(mdp, safe, target)
        assert prob1a(model, *nodes, zero) == always
        event(f"sure for some scheduler only: {sure != always}")

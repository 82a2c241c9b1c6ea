"""Small models built symbolically, against the explicit-state interpreter; models that must be refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mtbdd.build.build import build_model
from mtbdd.language import LanguageError
from mtbdd.language.errors import BuildError
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.matrices import to_dense
from tests.builders.models import build, build_both, members, state_set
from tests.oracles.comparing import assert_same_model
from tests.oracles.expressions import OracleFaultError
from tests.oracles.models import explore

MODELS = {
    "no variables": "dtmc module m [] true -> 1:true; endmodule",
    "no variables, no commands": "ctmc module m endmodule",
    "single values": "ctmc module m x : [3..3]; y : [-1..-1]; [] true -> 2:(x'=3); endmodule",
    "single value among others": """
        dtmc module m x : [3..3]; y : bool; z : [7..7];
        [] true -> 0.5:(y'=!y) + 0.5:(x'=3)&(z'=x+4); endmodule""",
    "no commands": "dtmc module m x : bool; endmodule",
    "guards never true": "ctmc module m x : [0..2]; [] false -> 1:(x'=1); [] x>2 -> 1:(x'=0); endmodule",
    "globals": """
        ctmc global b : bool init true; global g : [1..3];
        module m x : [0..3]; [] b & x<3 -> 1:(x'=x+1)&(b'=false); [] g<3 & x=2 -> 0.5:(g'=g+1); endmodule
        module n [] !b -> 2:(b'=true); [] g=3 -> 0.25:(g'=1); endmodule
        label "odd" = mod(g, 2) = 1;""",
    "synchronised": """
        ctmc module m x : [0..2]; [a] x<2 -> 2:(x'=x+1); [a] x=2 -> 3:(x'=0) + 0.5:(x'=1); endmodule
        module n y : [0..1]; [a] true -> 0.5:(y'=1-y); [] y=1 -> 4:(y'=0); endmodule
        module o z : bool; [a] !z -> 1:(z'=true); [a] z -> 0.1:(z'=false) + 0.2:true; endmodule""",
    "synchronised, blocked": """
        ctmc module m x : [0..2]; [a] x<2 -> 2:(x'=x+1); [b] x=2 -> 1:(x'=0); endmodule
        module n y : bool; [a] false -> 1:(y'=!y); [b] true -> 1:(y'=!y); endmodule""",
    "synchronised, blocked in some states": """
        ctmc module m x : [0..3]; [a] x<3 -> 2:(x'=x+1); [] x=3 -> 1:(x'=0); endmodule
        module n y : [0..3]; [a] y<x+1 & y<3 -> 1:(y'=y+1); [] y>0 -> 1:(y'=y-1); endmodule""",
    "zero rates": """
        ctmc module m x : [0..3]; [] x<3 -> x:(x'=x+1) + (1-min(1, x)):(x'=2); [a] true -> 0:(x'=0); endmodule
        module n y : bool; [a] true -> 1:(y'=!y); endmodule""",
    "overlapping commands add up": """
        ctmc module m x : [0..3];
        [] x<3 -> 1:(x'=x+1); [] x=1 -> 2:(x'=2) + 4:(x'=2); [] x>0 -> 0.5:(x'=x); [a] x<2 -> 8:(x'=x+1);
        [] x=3 -> 1:(x'=0); endmodule
        rewards "all" x>0 : x; [] true : 1; [a] x=1 : 10; endrewards""",
    "dtmc with choices": """
        dtmc module m x : [0..3]; [] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0); [] x=1 -> 1:(x'=3);
        [a] x>=1 -> 1:(x'=0);
        [a] x=2 -> 0.25:(x'=3) + 0.75:(x'=1); endmodule
        module n y : bool; [a] true -> 1:(y'=!y); [a] y -> 1:(y'=false); endmodule
        rewards [] true : 3; [a] x=2 : y ? 1 : 2; true : 0.125; endrewards""",
    "several initial states": """
        dtmc module m x : [0..5]; y : bool; [] x>0 -> 0.5:(x'=x-1) + 0.5:(y'=!y); [] x=0 -> 1:true; endmodule
        init x > 2 & (x < 5 | y) endinit label "start" = x=3;""",
    "state-dependent": """
        ctmc const double lambda = 0.3;
        module m x : [0..6]; y : [0..4];
        [] x<6 -> lambda*(6-x):(x'=x+1); [] x>0 -> 1.7*min(x, 2)/(y+1):(x'=x-1)&(y'=min(4, y+1));
        [] y>0 -> pow(y, 2):(y'=floor(y/2)); endmodule
        rewards "load" true : x*y; x>3 : 0.5; endrewards""",
    "deadlocks": """
        dtmc module m x : [0..3]; [] x=0 -> 0.3:(x'=1) + 0.3:(x'=2) + 0.4:(x'=3);
        [] x=2 -> (x'=2); endmodule""",
    "tiny products": """
        ctmc module m x : bool; [a] !x -> 1e-150:(x'=true); [] true -> 1:(x'=x); endmodule
        module n y : bool; [a] true -> 1e-150:(y'=!y); endmodule""",
    "undefined outside the reachable states": """
        ctmc module m x : [0..4] init 1; [] x<4 -> 1/x:(x'=x+1) + log(x, 2):(x'=1); endmodule
        rewards true : 1/x; endrewards""",
    "equivalence": """
        ctmc module m x : [0..3]; b : bool; [] b <=> x>1 -> 1:(b'=!b);
        [] !(b <=> x>1) -> 2:(x'=mod(x+1, 4)); endmodule""",
}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", MODELS)
def test_model_equals_explicit(name: str, package: str) -> None:
    model, explicit = build_both(MODELS[name], package)
    if name.startswith("undefined"):
        assert (model.n_states, model.n_transitions) == (4, 6)
    assert_same_model(model, explicit)


@pytest.mark.parametrize("name", MODELS)
def test_model_is_the_same_when_expressions_are_split(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build(MODELS[name])
    monkeypatch.setattr("mtbdd.build.expressions._GRID_BITS", 0)
    split = build(MODELS[name])
    assert whole.n_states == split.n_states
    one, other = to_dense(whole.transitions), to_dense(split.transitions)
    assert np.array_equal(one != 0, other != 0)
    units = whole.entry_units + split.entry_units
    assert (np.abs(one - other) <= units * 2.0**-53 * one).all()


@pytest.mark.parametrize("rate", ["1e-200", "1e-155", "3e-320"])
def test_model_whose_rates_leave_the_doubles_is_refused(rate: str) -> None:
    """The product is positive: the transition must neither vanish nor be a number without correct digits."""
    text = f"""
        ctmc module m x : bool; [a] !x -> {rate}:(x'=true); [] true -> 1:(x'=x); endmodule
        module n y : bool; [a] true -> {rate}:(y'=!y); endmodule"""
    with pytest.raises(BuildError, match="multiply to at least 2.23e-308 or to zero"):
        build(text)


@pytest.mark.parametrize("name", ["state-dependent", "synchronised", "dtmc with choices", "globals"])
def test_model_is_the_same_when_events_are_grouped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtbdd.build.reach._PATIENCE", 1)
    assert_same_model(*build_both(MODELS[name]))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", ["state-dependent", "several initial states", "synchronised"])
def test_model_submatrices_equal_dense(name: str, package: str, rng: np.random.Generator) -> None:
    model, explicit = build_both(MODELS[name], package)
    n, dense = explicit.n_states, explicit.dense()
    for _ in range(4):
        rows, columns = (np.flatnonzero(rng.random(n) < 0.5).tolist() for _ in range(2))
        row_index, column_index = (
            index_states(model.manager, state_set(model, explicit, chosen)) for chosen in (rows, columns)
        )
        for diagonal in (True, False):
            expected = dense[np.ix_(rows, columns)]
            if not diagonal:
                expected = np.where(np.equal.outer(rows, columns), 0.0, expected)
            cut = model.submatrix(row_index, column_index, diagonal)
            cut.validate()
            np.testing.assert_allclose(to_dense(cut), expected, rtol=1e-12)
        np.testing.assert_allclose(model.exit_rates(row_index), dense.sum(axis=1)[rows], rtol=1e-12)
        np.testing.assert_allclose(model.self_loops(row_index), dense.diagonal()[rows], rtol=1e-12)
        for inside in (set(rows) & set(columns), set(rows), set(range(n)), set(range(n)) - set(rows)):
            found = model.indicator(state_set(model, explicit, sorted(inside)), row_index)
            assert found.dtype == bool
            assert found.tolist() == [row in inside for row in rows]
        assert model.describe(np.arange(len(rows)), row_index) == [explicit.valuation(i) for i in rows]


def test_model_first_is_a_member() -> None:
    model, explicit = build_both(MODELS["state-dependent"])
    chosen = [3, 7, 20]
    assert model.first(state_set(model, explicit, chosen)) in [explicit.valuation(i) for i in chosen]


def test_model_labels_know_init_and_deadlock() -> None:
    text = MODELS["deadlocks"] + ' label "end" = "deadlock" | "init"; label "go" = !"deadlock" & !"init";'
    model = build(text)
    end, go = (members(model, model.states(label.expression)) for label in model.source.labels)
    assert (end, go) == ({0, 1, 3}, {2})


def test_model_says_what_it_does() -> None:
    from mtbdd.language import parse_model, resolve

    lines: list[str] = []
    build_model(resolve(parse_model(MODELS["synchronised"])), progress=lines.append)
    assert lines[0] == "translating commands" and lines[-1] == "offset labels"
    assert any(line.startswith("reachable states, round ") for line in lines)


# ------------------------------------------------------------------ refusals


def test_model_deadlock_is_warned_of_by_name() -> None:
    model = build(MODELS["deadlocks"])
    assert len(model.warnings) == 1
    assert "2 states have no outgoing transition and got a self-loop, for example (x=1)" in model.warnings[0]
    assert build(MODELS["no commands"]).warnings[0].startswith("1 state has no outgoing transition")
    assert build(MODELS["state-dependent"]).warnings == ()


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_model_deadlock_is_refused_when_asked(package: str) -> None:
    with pytest.raises(BuildError, match=r"2 states have no outgoing transition, for example \(x=1\)"):
        build(MODELS["deadlocks"], package, fix_deadlocks=False)
    assert build(MODELS["state-dependent"], package, fix_deadlocks=False).n_states == 35


COUNTER = "module m x : [0..3] init 1; b : bool; {} endmodule"

# Line and column of the fault within the commands; they start in column 36 of line 1 after "ctmc ".
REFUSED = {
    "above the range": (
        "ctmc",
        "[] true -> 1:(x'=x+1);",
        "the update sets x to 4, outside its range [0..3], in reachable state (x=3, b=false)",
    ),
    "below the range": ("ctmc", "[] true -> 1:(x'=x-1);", "sets x to -1, outside its range [0..3]"),
    "far outside": ("ctmc", "[] true -> 1:(x'=1000000000000);", "sets x to 1000000000000, outside"),
    "undefined value": (
        "ctmc",
        "[] true -> 1:(x'=mod(1, x)) + 1:(x'=0);",
        "the value assigned to x does not exist",
    ),
    "negative rate": (
        "ctmc",
        "[] x>0 -> 0.5:(x'=x-1); [] x<2 -> (x-1):(b'=true);",
        "the weight of an update is -1, in reachable state (x=0, b=false)",
    ),
    "infinite rate": (
        "ctmc",
        "[] true -> 1/x:(x'=0);",
        "the weight of an update is inf, in reachable state (x=0,",
    ),
    "rate without a value": (
        "ctmc",
        "[] true -> x/x:(x'=0);",
        "the weight of an update is nan, in reachable state (x=0, b=false)",
    ),
    "negative probability": (
        "dtmc",
        "[] true -> -0.5:(x'=0) + 1.5:(x'=1);",
        "the weight of an update is -0.5",
    ),
    "probabilities below 1": (
        "dtmc",
        "[] true -> 0.5:(x'=0) + 0.4:(x'=1);",
        "the probabilities of a command add up to 0.9, expected 1, in reachable state",
    ),
    "probabilities above 1": ("dtmc", "[] x<1 -> 2:(x'=0); [] x>0 -> (x'=0);", "add up to 2, expected 1"),
    "probabilities in some states": (
        "dtmc",
        "[] true -> x/2:(x'=min(3, x+1)) + 0.5:(x'=x);",
        "add up to 1.5, expected 1 (if these are rates, let the text begin with ctmc), in reachable state "
        "(x=2, b=false)",
    ),
    "infinite sum": ("ctmc", "[] true -> 1e308:(b'=!b); [] true -> 1e308:(b'=!b);", "less than 1.79e308"),
}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", REFUSED)
def test_model_refuses(name: str, package: str) -> None:
    kind, commands, message = REFUSED[name]
    text = f"{kind}\n{COUNTER.format(commands)}"
    with pytest.raises(BuildError) as caught:
        build(text, package)
    assert message in str(caught.value)
    assert all(fault.position.line in (1, 2) for fault in caught.value.faults)
    if "reachable" in message and "sum" not in name:
        column = caught.value.faults[0].position.column
        assert commands.startswith(("[", "x", "1", "-", "(", "b", "mod")) and column > 35


@pytest.mark.parametrize("name", [n for n in REFUSED if n not in ("infinite sum",)])
def test_model_refuses_what_the_oracle_refuses(name: str) -> None:
    from mtbdd.language import parse_model, resolve

    kind, commands, _ = REFUSED[name]
    with pytest.raises(OracleFaultError):
        explore(resolve(parse_model(f"{kind}\n{COUNTER.format(commands)}")))


def test_model_points_at_the_assignment() -> None:
    with pytest.raises(BuildError) as caught:
        build("ctmc\nmodule m\n x : [0..3];\n b : bool;\n [] true ->\n  1 : (b'=!b) & (x'=x+1);\nendmodule")
    assert [(f.position.line, f.position.column) for f in caught.value.faults] == [(6, 18)]


def test_model_reports_all_faults_at_once() -> None:
    commands = "[] true -> 1:(x'=x+1); [] true -> 1:(x'=x-1); [] b -> -1:(b'=b); [] !b -> -2:(b'=b);"
    with pytest.raises(BuildError) as caught:
        build(f"ctmc {COUNTER.format(commands)}")
    messages = [fault.message for fault in caught.value.faults]
    assert len(messages) == 3 and "-2" in messages[2]  # b is never true
    columns = [fault.position.column for fault in caught.value.faults]
    assert columns == sorted(columns)


HARMLESS = {
    "out of range, never reached": "[] x>3 -> 1:(x'=x+1); [] true -> 1:(x'=2);",
    "out of range with rate zero": "[] true -> (3-x):(x'=x+1) + 1:(x'=0);",
    "negative, never reached": "[] x<0 -> -1:(x'=0); [] b -> -1:(x'=1); [] true -> 1:(x'=0);",
    "infinite, never reached": "[] x>0 -> 1/x:(x'=max(1, x-1));",
    "out of range, blocked": "[a] true -> 1:(x'=x+5); [] true -> 1:(x'=0);",
}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("name", HARMLESS)
def test_model_accepts_faults_that_cannot_happen(name: str, package: str) -> None:
    other = "module n c : bool; [a] c -> 1:(c'=false); endmodule"
    assert_same_model(*build_both(f"ctmc {COUNTER.format(HARMLESS[name])} {other}", package))


def test_model_takes_rounded_probabilities() -> None:
    model = build(
        "dtmc module m x : [0..2]; [] true -> 0.333333:(x'=0) + 0.333333:(x'=1) + 0.333333:(x'=2); endmodule"
    )
    assert model.n_transitions == 9


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_model_refuses_no_initial_state(package: str) -> None:
    with pytest.raises(BuildError, match="no state satisfies init") as caught:
        build("ctmc module m x : [0..4]; [] true -> 1:(x'=0); endmodule\ninit x > 3 & x < 2 endinit", package)
    assert caught.value.faults[0].position.line == 2
    # Five values take three bits: the other three assignments are no states.
    with pytest.raises(BuildError, match="no state satisfies init"):
        build("ctmc module m x : [0..4]; [] true -> 1:(x'=0); endmodule init !(x <= 4) endinit", package)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_model_refuses_infinite_products(package: str) -> None:
    text = """ctmc module m x : bool; [a] {} -> 1e200:(x'=!x); [] !x -> 1:true; endmodule
        module n y : bool; [a] true -> 1e200:(y'=!y); endmodule"""
    with pytest.raises(BuildError, match="multiply and add up to less than 1.79e308"):
        build(text.format("true"), package)
    assert build(text.format("x"), package).n_states == 1


def test_model_counts_more_states_than_can_be_numbered() -> None:
    names = [f"v{i}" for i in range(70)]
    declared = " ".join(f"{n} : bool;" for n in names)
    commands = " ".join(f"[] true -> 1:({n}'=!{n});" for n in names)
    model = build(f"ctmc module m {declared} {commands} endmodule")
    assert (model.n_states, model.is_numbered) == (2**70, False)
    # The same with one state alone is no problem.
    model = build(f"ctmc module m {declared} [] true -> 1:(v0'=!v0); endmodule")
    assert (model.n_states, model.n_transitions) == (2, 2)


def test_model_counts_large_state_spaces() -> None:
    names = [f"v{i}" for i in range(40)]
    declared = " ".join(f"{n} : [0..2];" for n in names)
    commands = " ".join(f"[] {n}<2 -> 1:({n}'={n}+1); [] {n}=2 -> 1:({n}'=0);" for n in names)
    model = build(f"ctmc module m {declared} {commands} endmodule")
    assert (model.n_states, model.n_transitions) == (3**40, 40 * 3**40)
    names = names[:30]
    declared = " ".join(f"{n} : [0..2];" for n in names)
    commands = " ".join(f"[] {n}<2 -> 1:({n}'={n}+1); [] {n}=2 -> 1:({n}'=0);" for n in names)
    model = build(f"ctmc module m {declared} {commands} endmodule")
    assert (model.n_states, model.n_transitions) == (3**30, 30 * 3**30)


def test_model_takes_thousands_of_updates_and_disjuncts() -> None:
    n = 2000
    updates = " + ".join(f"1/{n}:(x'={i})" for i in range(n))
    even = " | ".join(f"x={i}" for i in range(0, n, 2))
    model = build(f'dtmc module m x : [0..{n - 1}]; [] true -> {updates}; endmodule label "even" = {even};')
    assert (model.n_states, model.n_transitions) == (n, n * n)
    assert members(model, model.states(model.source.labels[0].expression)) == set(range(0, n, 2))
    assert math.isclose(model.exit_rates(model.index).min(), 1.0, rel_tol=1e-12)


def test_model_refuses_sums_beyond_reason() -> None:
    """An arithmetic chain is tabulated operator by operator, as far as the limits go."""
    names = [f"v{i}" for i in range(20)]
    declared = " ".join(f"{n} : bool;" for n in names)
    total = " + ".join(f"(v{i % 20} ? 1 : 0)" for i in range(4000))
    with pytest.raises(LanguageError, match="fewer steps, .* raise the limit with .*table_steps="):
        build(f"ctmc module m {declared} [] {total} < 3 -> 1:(v0'=true); endmodule")


def test_update_that_another_modules_zero_rate_takes_away_is_no_fault() -> None:
    text = """ctmc
module m0
  v0 : [0..0];
  [b] true -> (v0'=v0+1);
endmodule
module m1
  v1 : [0..1];
  [b] true -> v1 : true;
  [] true -> (v1'=0);
endmodule
"""
    assert build(text).n_states == 1


def test_negative_weight_is_a_fault_even_where_another_modules_rate_is_zero() -> None:
    text = """ctmc
module m0
  v0 : bool init true;
  [a] v0 -> 0.5 * max(0, v1) : true;
  [] v0 -> 1 : true;
endmodule
module m1
  v1 : [-1..-1];
  [a] v0 -> (v1) : true;
endmodule
"""
    with pytest.raises(LanguageError, match="the weight of an update is -1"):
        build(text)

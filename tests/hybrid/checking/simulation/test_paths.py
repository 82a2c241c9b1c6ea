"""Paths: what they are distributed as, what they depend on, and what is told of models at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import hybrid
from hybrid.base.errors import OptionError
from hybrid.checking.simulation import SamplePaths, simulate
from hybrid.checking.simulation.paths import Sampler, csv_texts
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.walk import WIDTH
from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.language.syntax import ResolvedModel
from tests.builders.models import build
from tests.hybrid.checking.simulation.helpers import columns_of, engine_matrix

TINY = 1e-7  # of a p-value: seeds are fixed, so that a test passes always or never

RACE = """ctmc
module a
  x : [0..3];
  [] x=0 -> 2 : (x'=1) + 3 : (x'=2);
  [go] x=0 -> 5 : (x'=3);
  [back] x>0 -> x : (x'=0);
endmodule
rewards "time" x=0 : 2; x>0 : 1; endrewards
rewards [go] true : 10; [] x=0 : 1; endrewards
"""


def resolved(text: str, **constants: Any) -> ResolvedModel:
    return resolve(parse_model(text), constants)


def visited(paths: SamplePaths, steps: slice) -> np.ndarray:
    return np.stack([states[:, steps] for states in paths.states.values()])


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("kanban", {"t": 1}),
        ("herman", {}),
        ("coin", {"K": 1}),
        ("cluster", {"N": 1}),
        ("brp", {"N": 2, "MAX": 1}),
    ],
)
def test_steps_are_distributed_as_the_rows_of_the_matrix(
    examples_folder: Path, name: str, constants: dict[str, int]
) -> None:
    model = hybrid.load(examples_folder / f"{name}.prism", constants)
    matrix = engine_matrix(model)
    matrix /= matrix.sum(axis=1, keepdims=True)
    number = {tuple(column): i for i, column in enumerate(columns_of(model).T.tolist())}
    paths = simulate(model.source, steps=40, paths=2000, seed=7)
    seen = np.stack(list(paths.states.values()), axis=-1).astype(np.int64)
    numbers = np.array([number[tuple(state)] for state in seen.reshape(-1, seen.shape[-1]).tolist()])
    numbers = numbers.reshape(seen.shape[:2])
    counts = np.zeros_like(matrix)
    np.add.at(counts, (numbers[:, :-1].ravel(), numbers[:, 1:].ravel()), 1)
    assert not counts[matrix == 0].any()
    tested = 0
    for row, expected in zip(counts, matrix, strict=True):
        possible = expected > 0
        if possible.sum() > 1 and row.sum() * expected[possible].min() > 10:
            tested += 1
            assert chisquare(row[possible], row.sum() * expected[possible]).pvalue > TINY
    assert tested


def test_races_take_the_time_that_their_rates_say() -> None:
    paths = simulate(resolved(RACE), steps=2, paths=20_000, seed=3)
    assert paths.times is not None
    assert kstest(paths.times[:, 1], "expon", args=(0, 1 / 10)).pvalue > TINY
    for state in (1, 2, 3):
        stay = np.diff(paths.times, axis=1)[paths.states["x"][:, 1] == state, 1]
        assert kstest(stay, "expon", args=(0, 1 / state)).pvalue > TINY
    count = np.bincount(paths.states["x"][:, 1])[1:]
    assert chisquare(count, 20_000 * np.array([0.2, 0.3, 0.5])).pvalue > TINY


def test_paths_are_recorded_with_actions_and_rewards() -> None:
    paths = simulate(resolved(RACE), steps=6, paths=500, seed=1, rewards=True)
    assert paths.times is not None
    x, times = paths.states["x"], paths.times
    assert x.dtype == np.uint8
    assert paths.action_names == ("", "go", "back")
    taken = np.where(x[:, :-1] > 0, 2, np.where(x[:, 1:] == 3, 1, 0))
    np.testing.assert_array_equal(paths.actions, taken)
    stays = np.diff(times, axis=1)
    rate = np.where(x[:, :-1] == 0, 2, 1)
    np.testing.assert_allclose(np.diff(paths.rewards["time"], axis=1), stays * rate, rtol=1e-9, atol=1e-12)
    earned = np.where(taken == 1, 10, np.where(taken == 0, 1, 0))
    np.testing.assert_allclose(np.diff(paths.rewards["2"], axis=1), earned)
    assert not paths.rewards["2"][:, 0].any()


def test_paths_end_at_a_time() -> None:
    model = resolved(RACE)
    whole = simulate(model, steps=400, paths=30, seed=5)
    ended = simulate(model, steps=400, paths=30, seed=5, until=4.0, rewards=True)
    assert whole.times is not None and ended.times is not None
    np.testing.assert_array_equal(ended.lengths, (whole.times <= 4.0).sum(axis=1) - 1)
    assert ended.lengths.min() < ended.lengths.max() < 400
    for k, length in enumerate(ended.lengths):
        np.testing.assert_array_equal(ended.states["x"][k, : length + 1], whole.states["x"][k, : length + 1])
        np.testing.assert_array_equal(ended.times[k, : length + 1], whole.times[k, : length + 1])
        assert (ended.states["x"][k, length:] == ended.states["x"][k, length]).all()
        assert np.isinf(ended.times[k, length + 1 :]).all()
        assert (ended.actions[k, length:] == -2).all()


def test_a_path_depends_on_the_seed_and_its_number_alone() -> None:
    model = resolved(RACE)
    many = simulate(model, steps=5, paths=2 * WIDTH + 10, seed=11)
    few = simulate(model, steps=5, paths=3, seed=11)
    longer = simulate(model, steps=9, paths=3, seed=11)
    other = simulate(model, steps=5, paths=3, seed=12)
    np.testing.assert_array_equal(visited(many, slice(None))[:, :3], visited(few, slice(None)))
    np.testing.assert_array_equal(visited(longer, slice(6)), visited(few, slice(None)))
    assert (visited(other, slice(None)) != visited(few, slice(None))).any()
    sampler = Sampler(Rules(model), 5, 2 * WIDTH + 10, 11)
    ((_, part),) = sampler.pieces(WIDTH - 2, 7)
    np.testing.assert_array_equal(part.states["x"], many.states["x"][WIDTH - 2 : WIDTH + 5])
    assert many.times is not None and part.times is not None
    np.testing.assert_array_equal(part.times, many.times[WIDTH - 2 : WIDTH + 5])


def test_paths_of_a_model_are_those_of_its_text() -> None:
    text = "dtmc module m s:[0..9]; [] s<9 -> 1/2:(s'=s+1) + 1/2:(s'=0); [] s=9 -> true; endmodule"
    expected = simulate(resolve(parse_model(text)), steps=20, paths=5, seed=3).states["s"]
    assert (hybrid.simulate(hybrid.parse(text), steps=20, paths=5, seed=3).states["s"] == expected).all()
    listed = hybrid.parse(text, build="explicit")
    assert (hybrid.simulate(listed, steps=20, paths=5, seed=3).states["s"] == expected).all()
    matrix = hybrid.from_scipy(np.eye(2), type="dtmc", initial=0)
    with pytest.raises(OptionError, match="expected one with a text to draw paths from"):
        hybrid.simulate(matrix, steps=3)


def test_groups_are_not_alike() -> None:
    paths = simulate(resolved(RACE), steps=8, paths=2 * WIDTH)
    assert (paths.states["x"][:WIDTH] != paths.states["x"][WIDTH:]).any(axis=1).mean() > 0.9


def test_pieces_make_up_the_whole_path() -> None:
    sampler = Sampler(Rules(resolved(RACE)), 25, 1, 2, rewards=True)
    ((_, whole),) = sampler.pieces(0, 1)
    pieces = list(sampler.pieces(0, 1, most=10))
    assert [begin for begin, _ in pieces] == [0, 10, 20]
    for begin, part in pieces:
        length = part.states["x"].shape[1]
        np.testing.assert_array_equal(part.states["x"], whole.states["x"][:, begin : begin + length])
        assert part.times is not None and whole.times is not None
        np.testing.assert_array_equal(part.times, whole.times[:, begin : begin + length])
        np.testing.assert_array_equal(part.rewards["2"], whole.rewards["2"][:, begin : begin + length])


def test_lines_are_the_same_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Sampler(Rules(resolved(RACE)), 25, 3, 2, until=2.5, rewards=True)
    whole = "".join(csv_texts(sampler))
    for rows, piece, lines in ((1 << 18, 99, 5), (30, 99, 1000), (7, 6, 4), (60, 10, 1000)):
        monkeypatch.setattr("hybrid.checking.simulation.paths._ROWS", rows)
        monkeypatch.setattr("hybrid.checking.simulation.paths._PIECE", piece)
        monkeypatch.setattr("hybrid.checking.simulation.paths._LINES", lines)
        assert "".join(csv_texts(sampler)) == whole
    header, *lines_of = whole.splitlines()
    assert header == "path,step,time,action,x,reward time,reward 2"
    paths = simulate(resolved(RACE), 25, 3, 2, 2.5)
    assert len(lines_of) == int(paths.lengths.sum()) + 3
    assert lines_of[0] == "0,0,0.0,,0,0.0,0.0"


def test_a_deadlock_keeps_a_loop_of_rate_one() -> None:
    model = resolved(
        "ctmc module a x : [0..1]; [go] x=0 -> 4 : (x'=1); endmodule "
        "rewards [go] true : 1; [] true : 5; endrewards"
    )
    paths = simulate(model, steps=3, paths=5000, rewards=True)
    assert paths.times is not None
    assert (paths.states["x"] == [0, 1, 1, 1]).all()
    assert (paths.actions == [1, -1, -1]).all()
    assert (paths.rewards["1"] == [0, 1, 1, 1]).all()
    assert kstest(np.diff(paths.times, axis=1)[:, 1], "expon").pvalue > TINY


def test_first_states_are_drawn_among_the_initial_ones() -> None:
    model = resolved(
        "dtmc module a x : [0..5]; b : bool; [] true -> true; endmodule init mod(x,2)=1 & (x>2 | b) endinit"
    )
    paths = simulate(model, steps=0, paths=6000)
    states, counts = np.unique(visited(paths, slice(None))[:, :, 0], axis=1, return_counts=True)
    assert states.T.tolist() == [[1, 1], [3, 0], [3, 1], [5, 0], [5, 1]]
    assert chisquare(counts).pvalue > TINY
    fixed = simulate(model, steps=0, paths=50, start={"x": 3, "b": False})
    assert (visited(fixed, slice(None))[:, :, 0].T == [3, 0]).all()


def test_start_takes_the_place_of_initial_values() -> None:
    model = resolved("dtmc module a x : [0..5] init 2; y : [0..1]; [] true -> true; endmodule")
    paths = simulate(model, steps=1, start={"x": 4})
    assert (paths.states["x"] == 4).all() and (paths.states["y"] == 0).all()


@pytest.mark.parametrize(
    ("name", "constants"),
    [("kanban", {"t": 2}), ("herman", {}), ("coin", {"K": 2}), ("polling", {}), ("tandem", {"c": 4000})],
)
def test_compiled_draws_are_those_of_array_operations(
    examples_folder: Path, name: str, constants: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tandem's queues are too long for a table of both."""
    found = []
    for begin in (1, 10**9):
        monkeypatch.setattr("hybrid.checking.simulation.walk.COMPILED_FROM", begin)
        path = examples_folder / f"{name}.prism"
        found.append(
            simulate(path, 60, 300, constants=constants, start={"sc": 3999} if name == "tandem" else None)
        )
    for variable, states in found[0].states.items():
        np.testing.assert_array_equal(states, found[1].states[variable])
    if found[0].times is not None:
        np.testing.assert_array_equal(found[0].times, found[1].times)


def test_compiled_draws_meet_rates_without_tables_deadlocks_and_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """ctmc
module a
  x : [-50..50]; y : [0..80]; b : bool;
  [] x+y<100 & mod(x+y,3)!=2 & y<80 -> x*y+101*50 : (y'=y+1) + 2 : (b'=!b);
  [] x<50 & b -> 100 : (x'=x+1);
  [] !b & y>30 -> 50 : (x'=50) & (y'=80) & (b'=false);
endmodule"""
    found = []
    for begin in (1, 10**9):
        monkeypatch.setattr("hybrid.checking.simulation.walk.COMPILED_FROM", begin)
        found.append(simulate(resolved(text), 120, 200, start={"x": 0}))
    for variable, states in found[0].states.items():
        np.testing.assert_array_equal(states, found[1].states[variable])
    assert (found[0].actions == -1).any() and (found[0].actions == 0).any()
    monkeypatch.setattr("hybrid.checking.simulation.walk.COMPILED_FROM", 1)
    for fault in (FAULTS["negative"], FAULTS["together"], FAULTS["too much"]):
        with pytest.raises(LanguageError, match=fault[3]):
            simulate(resolved(faulty(*fault[:3])), 20, 20)


def test_models_of_any_size() -> None:
    text = "ctmc\n" + "\n".join(
        f"module m{i} x{i} : [0..1000000]; [] x{i}<1000000 -> {i + 1} : (x{i}'=x{i}+1); endmodule"
        for i in range(80)
    )
    paths = simulate(resolved(text), steps=50, paths=20)
    total = sum(states[:, -1].astype(int) for states in paths.states.values())
    assert (total == 50).all()


# ------------------------------------------------------------------ faults

SYNCHRONISED = "endmodule module b [s] true -> {} : true;"

# The type, the commands of a module with x in 0..2, what follows it, the message.
FAULTS = {
    "outside": (
        "ctmc",
        "[] true -> (x'=x+1);",
        "",
        r":2:\d+: .*sets x to 3, outside its range \[0\.\.2\], in reachable state \(x=2\)",
    ),
    "negative": (
        "ctmc",
        "[] true -> 3-2*x : (x'=min(2,x+1));",
        "",
        r":2:\d+: the weight of an update is -1(\.0)?, in reachable state \(x=2\)",
    ),
    "infinite": (
        "ctmc",
        "[] true -> 1/(1-x) : (x'=min(2,x+1));",
        "",
        r":2:\d+: the weight of an update has no finite value .*\(x=1\)",
    ),
    "guard": (
        "dtmc",
        "[] mod(3,2-x)<5 -> (x'=min(2,x+1));",
        "",
        r":2:\d+: the guard of a command has no value .*\(x=2\)",
    ),
    "sum": (
        "dtmc",
        "[] true -> 0.5:(x'=min(2,x+1)) + x/4:true;",
        "",
        r":2:\d+: the probabilities of a command add up to 0\.5, expected 1, in reachable state \(x=0\)",
    ),
    "no value": (
        "dtmc",
        "[] true -> (x'=x<2 ? x+1 : mod(3,2-x));",
        "",
        r":2:\d+: the value assigned to x does not exist .*\(x=2\)",
    ),
    "together": (
        "ctmc",
        "[s] true -> 3-2*x : (x'=min(2,x+1)); " + SYNCHRONISED.format(2),
        "",
        r":2:\d+: the weight of an update is -1(\.0)?, in reachable state \(x=2\)",
    ),
    "too much": (
        "ctmc",
        "[s] true -> 1e200 : true; " + SYNCHRONISED.format("1e200"),
        "",
        r"less than 1\.79e308",
    ),
    "reward": (
        "dtmc",
        "[] true -> (x'=min(2,x+1));",
        "rewards x<2 : 1/(1-x); endrewards",
        r":3:\d+: expected a reward that is a finite number, got none in state \(x=1\)",
    ),
    "initial": ("dtmc", "[] true -> true;", "init x>5 endinit", ":3:.*no state satisfies"),
}


def faulty(kind: str, commands: str, rest: str) -> str:
    return f"{kind} module a x : [0..2];\n{commands} endmodule\n{rest}"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_models_at_fault_are_told_with_place_and_state(fault: tuple[str, str, str, str]) -> None:
    with pytest.raises(LanguageError, match=fault[3]):
        simulate(resolved(faulty(*fault[:3])), steps=20, paths=20, rewards=True)


@pytest.mark.parametrize("name", ["outside", "negative", "sum", "guard", "no value", "together", "too much"])
def test_faults_are_those_of_the_engine(name: str) -> None:
    with pytest.raises(LanguageError, match=FAULTS[name][3]):
        build(faulty(*FAULTS[name][:3]))


def test_ranges_too_wide_for_integers_are_refused() -> None:
    model = resolved("dtmc module a x : [-9223372036854775807..0]; [] true -> true; endmodule")
    with pytest.raises(LanguageError, match=r"within -2\^62"):
        simulate(model)


def test_what_cannot_happen_is_no_fault() -> None:
    model = resolved(
        "ctmc module a x : [0..1]; [s] true -> x-1 : true; [] x=0 -> 1 : (x'=1) + 0 : (x'=7); endmodule "
        "module b [s] false -> true; endmodule"
    )
    assert simulate(model, steps=5, paths=9).states["x"][:, 1:].all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": -1}, {"steps": 1.5}, {"paths": 0}, {"paths": True}, {"seed": -1}, {"until": -1.0},
        {"until": float("nan")}, {"start": {"z": 1}}, {"start": {"x": 9}}, {"start": {"x": True}},
        {"start": {"x": 1.0}}, {"steps": 2**63},
    ],
    ids=str,
)  # fmt: skip
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        simulate(resolved(RACE), **wrong)


def test_time_ends_in_continuous_time_only() -> None:
    with pytest.raises(OptionError, match="until"):
        simulate(resolved("dtmc module a x : [0..1]; [] true -> true; endmodule"), until=1.0)


def test_records_without_room_are_refused() -> None:
    with pytest.raises(MemoryError, match="the record of"):
        simulate(resolved(RACE), steps=10**9, paths=10**6)

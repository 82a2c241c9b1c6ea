"""UMB files: round trips, files of other tools, and every part of the format that is read."""

from __future__ import annotations

import gc
import json
import tarfile
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.base.errors import OptionError
from hybrid.models.interchange import ExplicitModel, InterchangeError, StateVariable
from hybrid.models.interchange.umb import read_umb, write_umb
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import example_written_out
from tests.hybrid.models.interchange.foreign import foreign
from tests.hybrid.models.interchange.umb_helpers import (
    archive,
    assert_same,
    chain_members,
    index_of,
    models,
    put,
)

STEP = 2.0**-53


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("umb")


@settings(max_examples=60)
@given(model=models(), compression=st.sampled_from([None, "gzip", "xz"]))
def test_written_models_are_read_back(folder: Path, model: ExplicitModel, compression: str | None) -> None:
    path = folder / "model.umb"
    write_umb(model, path, compression)
    found = read_umb(path)
    if model.type is ModelType.CTMC:
        # Where no exit rate gives all rates of a state, some are a double next to what they were.
        assert np.all(np.abs(found.values - model.values) <= np.spacing(model.values))
        assert np.count_nonzero(found.values != model.values) <= 0.2 * model.n_entries
        model = replace(model, values=found.values)
    else:
        assert found.value_units == 0.0
    if model.choice_actions is not None and not (model.choice_actions >= 0).any():
        model = replace(model, choice_actions=None)
        found = replace(found, actions=()) if found.actions == model.actions else found
    else:
        # Names of actions are there only if choices have some.
        assert found.actions == (model.actions if model.choice_actions is not None else ())
    assert_same(model, found)


@settings(max_examples=60)
@given(model=models())
def test_written_rates_are_products_within_a_unit(folder: Path, model: ExplicitModel) -> None:
    """What the file says of a rate, the exact product, is the rate up to one unit of 2^-53."""
    model = replace(model, type=ModelType.CTMC, choice_starts=None, actions=(), choice_actions=None)
    model = replace(
        model, n_states=model.n_choices, columns=model.columns % 1, labels={}, variables=(), valuations={},
        rewards=(), initial=np.zeros(model.n_choices, dtype=bool),
    )  # fmt: skip
    path = folder / "rates.umb"
    write_umb(model, path, None)
    with tarfile.open(path) as file:
        content = {name: file.extractfile(name).read() for name in file.getnames()}  # type: ignore[union-attr]
    probabilities = np.frombuffer(content["branch-to-probability.bin"])
    exits = np.repeat(np.frombuffer(content["state-to-exit-rate.bin"]), np.diff(model.row_starts))
    for rate, p, e in zip(model.values.tolist(), probabilities.tolist(), exits.tolist(), strict=True):
        assert abs(Fraction(p) * Fraction(e) - Fraction(rate)) <= Fraction(rate) * Fraction(STEP)
    sums = np.add.reduceat(probabilities, model.row_starts[:-1][np.diff(model.row_starts) > 0])
    assert np.all(np.abs(sums - 1) < 1e-13)


def test_rates_of_few_digits_are_read_back_to_the_bit(tmp_path: Path, rng: np.random.Generator) -> None:
    lengths = rng.integers(1, 10, 3000)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    values = rng.integers(1, 2000, starts[-1]) / 1000
    columns = rng.integers(0, 3000, starts[-1])
    model = ExplicitModel(ModelType.CTMC, 3000, starts, columns, values, np.arange(3000) == 0)
    write_umb(model, tmp_path / "m.umb")
    found = read_umb(tmp_path / "m.umb")
    assert np.mean(found.values != values) < 5e-3
    assert found.value_units == 1.0


def test_products_that_are_exact_have_no_units(tmp_path: Path) -> None:
    members = chain_members() | {"state-to-exit-rate.bin": np.array([4.0, 0.3, 0.0]).tobytes()}
    index = index_of(time="stochastic", **{"exit-rate-type": {"type": "double", "size": 64}})
    found = read_umb(put(tmp_path, archive(index, members)))
    assert found.type is ModelType.CTMC
    assert found.values.tolist() == [1.0, 3.0, 0.3, 0.0]
    assert found.value_units == 0.0
    members["branch-to-probability.bin"] = np.array([0.1, 0.9, 1.0, 1.0]).tobytes()
    members["state-to-exit-rate.bin"] = np.array([0.3, 0.3, 0.0]).tobytes()
    assert read_umb(put(tmp_path, archive(index, members))).value_units == 1.0


@pytest.mark.parametrize("model", ["tandem3", "kanban1", "herman5", "coin2"])
def test_prism_and_storm_mean_the_same(model: str) -> None:
    """Two tools' files have the same model, up to the numbers of the states."""
    ours, other = (read_umb(foreign(f"{model}.{tool}.umb")) for tool in ("prism", "storm"))
    assert ours.type is other.type
    assert set(ours.valuations) == set(other.valuations)
    states = [
        list(zip(*(m.valuations[v.name].tolist() for v in ours.variables), strict=True))
        for m in (ours, other)
    ]
    place = {valuation: number for number, valuation in enumerate(states[0])}
    order = np.array([place[valuation] for valuation in states[1]])
    assert sorted(order.tolist()) == list(range(ours.n_states))
    assert np.array_equal(other.initial, ours.initial[order])
    for name, mask in ours.labels.items():
        assert np.array_equal(other.labels[name], mask[order])
    rewards = {reward.name: reward for reward in other.rewards}
    for reward in ours.rewards:
        for left, right in (
            (reward.states, rewards[reward.name].states),
            (reward.choices, rewards[reward.name].choices),
        ):
            assert (left is None) == (right is None)
            if left is not None and right is not None:
                assert np.allclose(left[order], right, rtol=4 * STEP, atol=0)
    assert moves(ours, np.arange(ours.n_states)) == moves(other, order)


def moves(model: ExplicitModel, number: np.ndarray) -> list[list[list[tuple[int, float]]]]:
    """The choices of every state, in order, as targets with probabilities of twelve digits."""
    starts = np.arange(model.n_states + 1) if model.choice_starts is None else model.choice_starts
    found: list[list[list[tuple[int, float]]]] = [[] for _ in range(model.n_states)]
    for state in range(model.n_states):
        for choice in range(starts[state], starts[state + 1]):
            own = slice(model.row_starts[choice], model.row_starts[choice + 1])
            targets = number[model.columns[own]].tolist()
            values = [float(f"{value:.12g}") for value in model.values[own].tolist()]
            found[number[state]].append(sorted(zip(targets, values, strict=True)))
        found[number[state]].sort()
    return found


def test_files_of_other_tools_in_figures() -> None:
    tandem = read_umb(foreign("tandem3.prism.umb"))
    assert (tandem.n_states, tandem.n_entries, tandem.value_units) == (28, 71, 1.0)
    assert tandem.values[:3].tolist() == [12.0, 12.0, 4.0]
    assert [variable.name for variable in tandem.variables] == ["sc", "ph", "sm"]
    kanban = read_umb(foreign("kanban1.storm.umb"))
    assert [reward.name for reward in kanban.rewards][0] == "throughput"
    coin = read_umb(foreign("coin2.prism.umb"))
    assert (coin.n_states, coin.n_choices, coin.n_entries) == (272, 400, 492)
    assert coin.actions == ("done",)
    assert coin.choice_actions is not None
    assert set(coin.choice_actions.tolist()) == {-1, 0}
    assert read_umb(foreign("coin2.storm.umb")).variables[0] == StateVariable("counter", 0, 12)


def test_absent_members_have_their_defaults(tmp_path: Path) -> None:
    """Every state its own choice, every choice its own branch, with probability 1; nothing is initial."""
    index = index_of(**{"#branches": 3, "#initial-states": 0, "#players": 1, "#choice-actions": 2})
    index["annotations"] = {
        "aps": {"goal": {"applies-to": ["states"], "type": {"type": "bool"}}},
        "rewards": {"1": {"applies-to": ["states", "choices"], "type": {"type": "double"}}},
    }
    members = {"branch-to-target.bin": np.array([1, 2, 2], dtype="<u8").tobytes()}
    found = read_umb(put(tmp_path, archive(index, members)))
    assert found.row_starts.tolist() == [0, 1, 2, 3]
    assert found.choice_starts is not None
    assert found.choice_starts.tolist() == [0, 1, 2, 3]
    assert found.values.tolist() == [1.0, 1.0, 1.0]
    assert not found.initial.any()
    assert not found.labels["goal"].any()
    assert found.rewards[0].name is None
    assert found.rewards[0].states is not None and not found.rewards[0].states.any()
    assert found.rewards[0].choices is not None and not found.rewards[0].choices.any()
    assert found.actions == ("a0",)
    assert found.choice_actions is not None and found.choice_actions.tolist() == [0, 0, 0]


def test_folders_and_dots_in_archives(tmp_path: Path) -> None:
    members = {f"./{name}": content for name, content in chain_members().items()}
    path = put(tmp_path, archive(index_of(), members, "gz"))
    assert read_umb(path).values.tolist() == [0.25, 0.75, 1.0, 1.0]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x" * 700}) as out:
        out.addfile(folder_named("annotations/"))
        (tmp_path / "index.json").write_text(json.dumps(index_of()))
        for name, content in chain_members().items():
            (tmp_path / name).write_bytes(content)
            # A time that is no whole number makes an extended header.
            out.add(tmp_path / name, arcname=name)
        out.add(tmp_path / "index.json", arcname="index.json")
    assert read_umb(path).n_entries == 4


def folder_named(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    return info


def test_names_of_any_characters_have_folders_of_their_own(tmp_path: Path) -> None:
    masks = np.eye(3, dtype=bool)
    names = ["A b", "a_b", "ä" * 200]
    model = read_umb(put(tmp_path, archive(index_of(), chain_members())))
    model = replace(model, labels=dict(zip(names, masks, strict=True)))
    write_umb(model, tmp_path / "m.umb")
    assert_same(model, read_umb(tmp_path / "m.umb"))
    with tarfile.open(tmp_path / "m.umb") as file:
        assert file.getnames()[0] == "index.json"
        assert all(name.isascii() and len(name) <= 100 for name in file.getnames())


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    model = example_written_out("kanban", t=1)
    for name in ("a.umb", "b.umb"):
        write_umb(model, tmp_path / name)
    assert (tmp_path / "a.umb").read_bytes() == (tmp_path / "b.umb").read_bytes()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    model = read_umb(put(tmp_path, archive(index_of(), chain_members())))
    with pytest.raises(OptionError, match="gzip, xz, or None"):
        write_umb(model, tmp_path / "x.umb", "zip")
    rates = replace(model, type=ModelType.CTMC, values=np.array([1e-320, 1.0, 1.0, 1.0]))
    with pytest.raises(InterchangeError, match="choice 0: expected rates"):
        write_umb(rates, tmp_path / "x.umb")
    rates = replace(rates, values=np.array([1e308, 1e308, 1.0, 1.0]))
    with pytest.raises(InterchangeError, match="choice 0: expected rates"):
        write_umb(rates, tmp_path / "x.umb")
    beyond = replace(
        model, variables=(StateVariable("x", 0, 1),), valuations={"x": np.array([0, 1, 2], dtype=np.int64)}
    )
    with pytest.raises(InterchangeError, match="state 2: expected 'x' from 0 to 1, got 2"):
        write_umb(beyond, tmp_path / "x.umb")
    with pytest.raises(InterchangeError, match="Unicode"):
        write_umb(replace(model, type=ModelType.MDP, choice_starts=np.arange(4), actions=("\ud800",),
                          choice_actions=np.zeros(3, dtype=np.int64)), tmp_path / "x.umb")  # fmt: skip


def test_umbi_reads_what_is_written(tmp_path: Path) -> None:
    umbi = pytest.importorskip("umbi")
    # It refuses bounds of variables, "not supported yet" (0.2.5).
    plain = replace(example_written_out("kanban", t=1), variables=(), valuations={})
    write_umb(plain, tmp_path / "m.umb")
    assert umbi.ats.read(tmp_path / "m.umb").num_states == 160


def test_storm_reads_what_is_written(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    if not hasattr(stormpy, "build_model_from_umb"):
        pytest.skip("this version of stormpy does not read UMB files")
    write_umb(example_written_out("kanban", t=1), tmp_path / "m.umb")
    assert stormpy.build_model_from_umb(str(tmp_path / "m.umb")).nr_states == 160


def test_reading_takes_few_bytes_a_transition(tmp_path: Path) -> None:
    side, names = 40, ("x", "y", "z", *(f"kept{k}" for k in range(13)))
    n = side**3
    places = np.stack(np.unravel_index(np.arange(n), (side,) * 3))
    columns = np.empty((n, 6), dtype=np.int64)
    for k in range(6):
        moved = places.copy()
        moved[k // 2] = (moved[k // 2] + (1 if k % 2 else -1)) % side
        columns[:, k] = np.ravel_multi_index(tuple(moved), (side,) * 3)
    path = tmp_path / "torus.umb"
    torus = ExplicitModel(
        ModelType.CTMC, n, np.arange(0, 6 * n + 1, 6), columns.reshape(-1), np.tile([0.5, 1.5, 2.0], 2 * n),
        np.arange(n) == 0,
        variables=tuple(StateVariable(name, 0, side - 1) for name in names),
        valuations={name: places[min(k, 2)] for k, name in enumerate(names)},
    )  # fmt: skip
    write_umb(torus, path)
    del columns, torus, moved
    hybrid.load(path)  # modules are loaded once
    gc.collect()
    tracemalloc.start()
    try:
        model = hybrid.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (model.n_states, model.n_transitions) == (n, 6 * n)
    # Targets and values alone are 16; values of 16 variables as 64-bit numbers would be 21 more, twice.
    assert peak < 125 * 6 * n


def test_rates_of_rationals_are_off_by_both_and_their_product(tmp_path: Path) -> None:
    pairs, exits = [(1, 3), (2, 3), (1, 1), (1, 1)], [(1, 7), (3, 11), (1, 1)]
    index = index_of(
        time="stochastic",
        **{"branch-probability-type": {"type": "rational"}, "exit-rate-type": {"type": "rational"}},
    )
    data, rates = (
        b"".join(a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in own) for own in (pairs, exits)
    )
    members = chain_members(**{"branch-to-probability.bin": data, "state-to-exit-rate.bin": rates})
    found = read_umb(put(tmp_path, archive(index, members)))
    # A factor is off by a unit each, and their product is rounded.
    assert 3.0 < found.value_units < 3.1
    exact = [Fraction(1, 3) * Fraction(1, 7), Fraction(2, 3) * Fraction(1, 7)]
    for value, wanted in zip(found.values[:2].tolist(), exact, strict=True):
        assert abs(Fraction(value) - wanted) <= Fraction(found.value_units) / 2**53 * wanted

"""Rationals and rewards in UMB files: the doubles that are read, and their units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.umb import read_umb, write_umb
from mtbdd.language.syntax import ModelType
from tests.hybrid.models.interchange.umb_helpers import archive, chain_members, index_of, put

STEP = 2.0**-53


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("umb")


def test_rationals_become_the_doubles_next_to_them(tmp_path: Path) -> None:
    third = 2**63 // 3
    pairs = [(1, 4), (3, 4), (third, 3 * third), (2, 2)]
    data = b"".join(a.to_bytes(8, "little", signed=True) + b.to_bytes(8, "little") for a, b in pairs)
    index = index_of(**{"branch-probability-type": {"type": "rational"}})
    found = read_umb(put(tmp_path, archive(index, chain_members(**{"branch-to-probability.bin": data}))))
    assert found.values.tolist() == [0.25, 0.75, 1 / 3, 1.0]
    assert found.value_units == 1.0
    long = [(1, 4), (3, 4), (10**30, 10**30), (1, 1)]
    data = b"".join(a.to_bytes(16, "little", signed=True) + b.to_bytes(16, "little") for a, b in long)
    index = index_of(**{"branch-probability-type": {"type": "rational", "size": 256}})
    found = read_umb(put(tmp_path, archive(index, chain_members(**{"branch-to-probability.bin": data}))))
    assert found.values.tolist() == [0.25, 0.75, 1.0, 1.0]
    assert found.value_units == 0.0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**64 - 1)), min_size=1, max_size=20),
    st.booleans(),
)
def test_rationals_of_any_size(folder: Path, pairs: list[tuple[int, int]], is_small: bool) -> None:
    if is_small:
        pairs = [(a >> 12, max(1, b >> 13)) for a, b in pairs]
    data = b"".join(a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in pairs)
    index = index_of()
    index["annotations"] = {"rewards": {"r": {"applies-to": ["states"], "type": {"type": "rational"}}}}
    n = len(pairs)
    index["transition-system"] |= {"#states": n, "#choices": n, "#branches": n, "#initial-states": 0}
    members = {
        "branch-to-target.bin": bytes(8 * n),
        "annotations/rewards/r/states/values.bin": data,
    }
    reward = read_umb(put(folder, archive(index, members))).rewards[0]
    assert reward.states is not None
    assert reward.states.tolist() == [float(Fraction(a, b)) for a, b in pairs]
    exact = all(Fraction(value) == Fraction(*pair) for value, pair in zip(reward.states, pairs, strict=True))
    assert reward.units == (0.0 if exact else 1.0)


def test_rewards_of_branches_are_folded(tmp_path: Path) -> None:
    index = index_of()
    index["annotations"] = {
        "rewards": {
            "r": {"alias": "R", "applies-to": ["choices", "branches"], "type": {"type": "double"}},
            "same": {"applies-to": ["branches"], "type": {"type": "double"}},
        }
    }
    members = chain_members() | {
        "annotations/rewards/r/choices/values.bin": np.array([1.0, 0.0, 0.0]).tobytes(),
        "annotations/rewards/r/branches/values.bin": np.array([4.0, 8.0, 0.1, 0.0]).tobytes(),
        "annotations/rewards/same/branches/values.bin": np.array([0.1, 0.1, 0.2, 0.3]).tobytes(),
    }
    mixed, same = read_umb(put(tmp_path, archive(index, members))).rewards
    assert mixed.name == "R"
    assert mixed.choices is not None
    assert mixed.choices.tolist() == [8.0, 0.1, 0.0]
    assert 0 < mixed.units < 20
    assert same.choices is not None
    assert same.choices.tolist() == [0.1, 0.2, 0.3]
    assert same.units == 0.0


number = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda value: value if abs(value) > 1e-9 else 0.0)
shares = st.lists(st.integers(1, 99), min_size=4, max_size=4)


@settings(max_examples=80)
@example([9.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1, 9, 1, 1], "rational")
@given(
    st.lists(number, min_size=4, max_size=4),
    st.lists(number, min_size=3, max_size=3),
    shares,
    st.sampled_from(["double", "rational"]),
)
def test_lemma_units_of_folded_rewards(
    folder: Path, branches: list[float], choices: list[float], weights: list[int], kind: str
) -> None:
    """What a choice earns is within the units told of the mean over its branches, and of its own reward."""
    index = index_of(**{"branch-probability-type": {"type": kind}})
    types = {"applies-to": ["choices", "branches"], "type": {"type": "double"}}
    index["annotations"] = {"rewards": {"r": types}}
    total = weights[0] + weights[1]
    exact = [Fraction(weights[0], total), Fraction(weights[1], total), Fraction(1), Fraction(1)]
    if kind == "double":
        values = np.array([float(value) for value in exact])
        exact = [Fraction(value) for value in values.tolist()]
        data = values.tobytes()
    else:
        data = b"".join(
            v.numerator.to_bytes(8, "little") + v.denominator.to_bytes(8, "little") for v in exact
        )
    members = chain_members() | {
        "branch-to-probability.bin": data,
        "annotations/rewards/r/choices/values.bin": np.array(choices).tobytes(),
        "annotations/rewards/r/branches/values.bin": np.array(branches).tobytes(),
    }
    reward = read_umb(put(folder, archive(index, members))).rewards[0]
    assert reward.choices is not None
    starts = [0, 2, 3, 4]
    for row, (start, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        own = sum(p * Fraction(r) for p, r in zip(exact[start:end], branches[start:end], strict=True))
        wanted = Fraction(choices[row]) + own / sum(exact[start:end])
        if np.isfinite(reward.units):
            error = abs(Fraction(float(reward.choices[row])) - wanted)
            assert error <= abs(wanted) * Fraction(STEP) * Fraction(reward.units)
    if all(r >= 0 for r in branches + choices):
        assert reward.units < 30


def test_the_sum_of_a_choices_reward_and_its_branches_is_rounded_once(tmp_path: Path) -> None:
    """Both are doubles as they are; 0.1 and 0.2 add up to a number that is none."""
    index = index_of()
    types = {"applies-to": ["choices", "branches"], "type": {"type": "double"}}
    index["annotations"] = {"rewards": {"r": types}}
    members = chain_members() | {
        "annotations/rewards/r/choices/values.bin": np.array([0.1, 0.0, 0.0]).tobytes(),
        "annotations/rewards/r/branches/values.bin": np.array([0.2, 0.2, 0.0, 0.0]).tobytes(),
    }
    reward = read_umb(put(tmp_path, archive(index, members))).rewards[0]
    assert reward.choices is not None
    exact = Fraction(0.1) + Fraction(0.2)
    error = abs(Fraction(float(reward.choices[0])) - exact)
    assert 0 < error <= exact * Fraction(STEP) * Fraction(reward.units)


def test_rounded_probabilities_count_in_folded_rewards(tmp_path: Path) -> None:
    """Once where they weigh the rewards, once in their sum."""
    units = []
    for pairs in ([(1, 4), (3, 4)], [(1, 3), (2, 3)]):
        index = index_of(**{"branch-probability-type": {"type": "rational"}})
        rewards = {"applies-to": ["branches"], "type": {"type": "double"}}
        index["annotations"] = {"rewards": {"r": rewards}}
        parts = [part.to_bytes(8, "little") for pair in [*pairs, (1, 1), (1, 1)] for part in pair]
        members = chain_members() | {
            "branch-to-probability.bin": b"".join(parts),
            "annotations/rewards/r/branches/values.bin": np.array([1.0, 2.0, 3.0, 4.0]).tobytes(),
        }
        units.append(read_umb(put(tmp_path, archive(index, members))).rewards[0].units)
    assert units[1] - units[0] == pytest.approx(2.0)


def test_a_chain_may_have_a_state_without_a_choice(tmp_path: Path) -> None:
    index = index_of(**{"#choices": 2, "#branches": 3})
    index["annotations"] = {"rewards": {"r": {"applies-to": ["choices"], "type": {"type": "double"}}}}
    members = {
        "state-to-choices.bin": np.array([0, 1, 1, 2], dtype="<u8").tobytes(),
        "choice-to-branches.bin": np.array([0, 2, 3], dtype="<u8").tobytes(),
        "branch-to-target.bin": np.array([1, 2, 0], dtype="<u8").tobytes(),
        "branch-to-probability.bin": np.array([0.5, 0.5, 1.0]).tobytes(),
        "state-is-initial.bin": np.array([1], dtype="<u8").tobytes(),
        "annotations/rewards/r/choices/values.bin": np.array([3.0, 4.0]).tobytes(),
    }
    found = read_umb(put(tmp_path, archive(index, members)))
    assert found.row_starts.tolist() == [0, 2, 2, 3]
    assert found.rewards[0].choices is not None
    assert found.rewards[0].choices.tolist() == [3.0, 0.0, 4.0]


def test_rewards_in_a_state_without_branches_are_left_out(tmp_path: Path) -> None:
    starts = np.array([0, 1, 1])
    reward = ExplicitReward("r", choices=np.array([2.0, 5.0]))
    model = ExplicitModel(
        ModelType.CTMC, 2, starts, np.array([1]), np.array([3.0]), np.array([True, False]), rewards=(reward,)
    )
    write_umb(model, tmp_path / "m.umb")
    found = read_umb(tmp_path / "m.umb").rewards[0].choices
    assert found is not None and found.tolist() == [2.0, 0.0]

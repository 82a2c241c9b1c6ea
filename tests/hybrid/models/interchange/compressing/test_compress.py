"""Models written out come back as diagrams with the same matrix, labels and rewards."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import hybrid
from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.compressing import compressed, with_loops
from hybrid.models.interchange.write_out import written_out
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import action_rewards, state_rewards
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import random_explicit_model
from tests.exploring import rounds
from tests.oracles.chains import until_probabilities
from tests.source_tree import ROOT

KINDS = ("dtmc", "ctmc", "mdp")


def _order(model: SymbolicModel) -> np.ndarray:
    return np.arange(model.n_states) if model.numbering is None else model.numbering


def _choices(given: ExplicitModel) -> list[list[tuple[str | None, float, dict[int, float]]]]:
    """The choices of every state: action, reward, row (divided by its sum unless it is of rates)."""
    found: list[list[tuple[str | None, float, dict[int, float]]]] = [[] for _ in range(given.n_states)]
    for choice, state in enumerate(given.state_of_choice.tolist()):
        own = slice(given.row_starts[choice], given.row_starts[choice + 1])
        row: dict[int, float] = {}
        for target, value in zip(given.columns[own].tolist(), given.values[own].tolist(), strict=True):
            row[target] = row.get(target, 0.0) + value
        total = sum(row.values())
        earned = given.rewards[0].choices
        reward = 0.0 if earned is None else float(earned[choice])
        if given.type is ModelType.CTMC:
            reward *= total
        else:
            row = {target: value / total for target, value in row.items()}
        number = -1 if given.choice_actions is None else int(given.choice_actions[choice])
        found[state].append((given.actions[number] if number >= 0 else None, reward, row))
    return found


def _layers(model: SymbolicModel) -> list[list[tuple[str | None, float, dict[int, float]]]]:
    """The same of a symbolic model, by the source's numbers."""
    order = _order(model)
    source = np.argsort(order)
    found: list[list[tuple[str | None, float, dict[int, float]]]] = [[] for _ in range(model.n_states)]
    for number, layer in enumerate(model.layers):
        rows = hybrid.explicit_matrix(model.layer_transitions(number))
        earned = action_rewards(model, 0, model.index, number if model.is_mdp else None)
        actions = {
            state: part.action
            for part in layer.parts
            for state in np.flatnonzero(model.indicator(part.states)).tolist()
        }
        for state in range(model.n_states):
            own = slice(rows.row_starts[state], rows.row_starts[state + 1])
            targets = source[rows.columns[own]].tolist()
            row = dict(zip(targets, rows.values[own].tolist(), strict=True))
            if row:
                found[int(source[state])].append((actions[state], float(earned[state]), row))
    return found


def _same(
    found: list[tuple[str | None, float, dict[int, float]]],
    expected: list[tuple[str | None, float, dict[int, float]]],
) -> None:
    left = list(found)
    for action, reward, row in expected:
        for candidate in left:
            close = candidate[2].keys() == row.keys() and all(
                abs(candidate[2][t] - value) <= 1e-12 * value for t, value in row.items()
            )
            if candidate[0] == action and abs(candidate[1] - reward) <= 1e-12 and close:
                left.remove(candidate)
                break
        else:
            raise AssertionError(f"no choice {(action, reward, row)} among {found}")
    assert not left


@pytest.mark.parametrize("kind", KINDS)
def test_random_models_keep_their_choices_labels_and_rewards(kind: str) -> None:
    for number in range(rounds(30)):
        rng = np.random.default_rng([20261122, KINDS.index(kind), number])
        _compare(random_explicit_model(rng, kind, most_states=9 if number else 1))


def _compare(given: ExplicitModel) -> None:
    """Compare a model with its diagrams."""
    model = compressed(given)
    looped, deadlocks = with_loops(given)
    assert model.n_states == given.n_states
    assert model.n_transitions == looped.n_entries
    for found, expected in zip(_layers(model), _choices(looped), strict=True):
        _same(found, expected)
    order = _order(model)
    for name, mask in {**given.labels, "init": given.initial, "deadlock": deadlocks}.items():
        np.testing.assert_array_equal(
            model.indicator(model.translator.labels.get(name, model.initial))[order], mask
        )
    np.testing.assert_array_equal(state_rewards(model, 1, model.index)[order], given.rewards[1].states)
    states = model.describe(order)
    for variable in given.variables:
        assert [state[variable.name] for state in states] == given.valuations[variable.name].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_out_comes_back(kind: str) -> None:
    for number in range(rounds(15)):
        rng = np.random.default_rng([5, KINDS.index(kind), number])
        given, _ = with_loops(random_explicit_model(rng, kind))
        again = written_out(compressed(given))
        assert again.n_states == given.n_states
        np.testing.assert_array_equal(again.initial, given.initial)
        for name in given.labels:
            np.testing.assert_array_equal(again.labels[name], given.labels[name])
        for found, expected in zip(_choices(again), _choices(given), strict=True):
            _same(found, expected)


def test_bounds_hold_for_random_matrices() -> None:
    """Against exact rational solutions of the doubles that were given, rows divided by their sums."""
    for number in range(rounds(150)):
        rng = np.random.default_rng([77, number])
        given, _ = with_loops(random_explicit_model(rng, "dtmc" if number % 2 else "ctmc", most_states=7))
        given = replace(given, initial=np.arange(given.n_states) == 0)
        chain = _chain(given)
        goal, some = (set(np.flatnonzero(given.labels[name]).tolist()) for name in ("goal", "some"))
        exact = until_probabilities(chain, some, goal)[0]
        answer = hybrid.check(compressed(given), 'P=? [ "some" U "goal" ]')
        assert answer.lower is not None
        assert answer.upper is not None
        assert answer.lower <= exact <= answer.upper, number
        assert abs(Fraction(answer.value) - exact) <= Fraction(1, 10**6)


def _chain(given: ExplicitModel) -> list[dict[int, Fraction]]:
    """The rows of a chain as the rationals that its doubles are."""
    found = []
    for state in range(given.n_states):
        own = slice(given.row_starts[state], given.row_starts[state + 1])
        row = zip(given.columns[own].tolist(), given.values[own].tolist(), strict=True)
        found.append({target: Fraction(value) for target, value in row})
    return found


@pytest.mark.parametrize("name", ["kanban", "coin", "fms", "cluster"])
def test_examples_come_back_with_the_nodes_of_the_text(name: str) -> None:
    constants = {"kanban": {"t": 1}, "coin": {"K": 2}, "fms": {"n": 1}, "cluster": {"N": 2}}[name]
    text = hybrid.load(ROOT / "examples" / f"{name}.prism", constants=constants)
    listed = compressed(written_out(text), order="model")
    assert listed.statistics.mtbdd_nodes == text.statistics.mtbdd_nodes
    assert listed.statistics.terminals == text.statistics.terminals
    assert len(listed.layers) == len(text.layers)


def test_variables_that_lie_apart_are_drawn_together() -> None:
    """Four queues whose bits come one by one, as tools write them that put kinds of variables together."""
    text = hybrid.load(ROOT / "examples" / "kanban.prism", constants={"t": 2})
    given = written_out(text)
    names = [f"{kind}{cell}" for kind in "wxyz" for cell in range(1, 5)]
    known = {v.name: v for v in given.variables}
    apart = replace(given, variables=tuple(known[name] for name in names))
    model = compressed(apart)
    assert model.statistics.mtbdd_nodes <= 1.2 * text.statistics.mtbdd_nodes
    assert compressed(apart, order="model").statistics.mtbdd_nodes > 2 * text.statistics.mtbdd_nodes
    assert [v.name for v in model.encoding.shown] == names
    again = written_out(model)
    for name in names:
        np.testing.assert_array_equal(again.valuations[name], given.valuations[name])
    for order in ("reversed", "force"):
        other = written_out(compressed(apart, order=order))
        np.testing.assert_array_equal(other.columns, given.columns)
        np.testing.assert_array_equal(other.values, given.values)
    with pytest.raises(hybrid.HybridError, match="order: expected auto, model, reversed, force"):
        compressed(apart, order="best")


def test_a_matrix_without_moves_is_taken_entry_by_entry(rng: np.random.Generator) -> None:
    n = 400
    dense = rng.random((n, n)) * (rng.random((n, n)) < 0.08) + np.diag(np.full(n, 0.5))
    dense /= dense.sum(axis=1, keepdims=True)
    model = hybrid.from_scipy(dense)
    found = hybrid.explicit_matrix(model.transitions).to_scipy().toarray()
    np.testing.assert_allclose(found, dense, rtol=1e-13)
    (warning,) = model.warnings
    assert "it has no valuations" in warning
    assert "engine='auto'" in warning


def test_rates_that_were_split_are_united() -> None:
    rates = np.array([0.1, 0.3, 0.7, 0.9])
    split = np.nextafter(rates, 1.0)
    ring = np.zeros((8, 8))
    ring[np.arange(8), (np.arange(8) + 1) % 8] = np.concatenate([rates, split])
    model = hybrid.from_scipy(ring, "ctmc")
    assert model.statistics.terminals == 5  # zero, too
    assert model.entry_units >= 1.0


def test_wide_variables_and_boxes_of_intervals() -> None:
    """A walk on a grid, in a corner of wide ranges: intervals in place of sets of values."""
    x, y = (a.reshape(-1) for a in np.meshgrid(np.arange(90), np.arange(-1000, -920), indexing="ij"))
    n = len(x)
    sources, targets, rates = [], [], []
    for rate, dx, dy in ((1.0, 1, 0), (2.0, -1, 0), (3.0, 0, 1), (0.25, -2, 2)):
        inside = (x + dx >= 0) & (x + dx < 90) & (y + dy >= -1000) & (y + dy < -920)
        sources.append(np.flatnonzero(inside))
        targets.append(sources[-1] + 80 * dx + dy)
        rates.append(np.full(len(sources[-1]), rate))
    rows = sparse.csr_array(
        (np.concatenate(rates), (np.concatenate(sources), np.concatenate(targets))), shape=(n, n)
    )
    model = hybrid.from_scipy(rows, "ctmc", variables={"x": x, "y": y}, initial=[0, 5])
    found = hybrid.explicit_matrix(model.transitions).to_scipy()
    assert abs(found - rows).max() == 0.0
    assert model.statistics.mtbdd_nodes < 200
    np.testing.assert_array_equal(model.exit_rates(model.index), rows.sum(axis=1))


@pytest.mark.parametrize("width", [1, 3, 40])
def test_states_of_many_bits(rng: np.random.Generator, width: int) -> None:
    """Sources that are no boxes, in any order, over words of more than 64 bits."""
    names = [f"v{i}" for i in range(width)]
    values = rng.integers(0, 6, (60, width))
    dense = (rng.random((60, 60)) < 0.1) * rng.integers(1, 4, (60, 60)) + np.eye(60)
    model = hybrid.from_scipy(dense, "ctmc", variables=dict(zip(names, values.T, strict=True)))
    order = _order(model)
    found = hybrid.explicit_matrix(model.transitions).to_scipy().toarray()[np.ix_(order, order)]
    np.testing.assert_array_equal(found, dense)
    assert ("copy" in model.encoding.by_name) == (len({tuple(v) for v in values.tolist()}) < 60)


def test_exit_rates_and_rewards_of_jumps_lie_within_their_units() -> None:
    """Three tenths are no sum of a tenth and two; a third of a jump's reward is no double times them."""
    rates, earned = [0.1, 0.2, 1.0], [0.7, 1 / 3]
    exits = [Fraction(0.1) + Fraction(0.2), Fraction(1)]
    model = ExplicitModel(
        ModelType.CTMC,
        2,
        np.array([0, 2, 3]),
        np.array([0, 1, 0]),
        np.array(rates),
        np.array([True, False]),
        rewards=(ExplicitReward("jumps", choices=np.array(earned)),),
    )
    built = compressed(model)
    told = Fraction(built.exit_units) / 2**53
    for rate, exact in zip(built.exit_rates(built.index)[_order(built)].tolist(), exits, strict=True):
        assert abs(Fraction(rate) - exact) <= told * exact
    assert built.given is not None
    values, error = built.given.rewards[0].values(built.index, False, 0)
    assert error is not None
    order = _order(built)
    for value, bound, reward, exit_rate in zip(values[order], error[order], earned, exits, strict=True):
        assert abs(Fraction(float(value)) - Fraction(reward) * exit_rate) <= Fraction(float(bound))

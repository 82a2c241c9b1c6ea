"""What every operator over choices promises: steps, policies, groups, repetitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.operators.device_choices import DeviceChoices
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem, Quotient
from tests.builders.choice_systems import Choices
from tests.contracts.choice_operators import Operators

GROUPS = Quotient(np.array([9, 3, 11, 41, 40, 55]), np.array([0, 3, 5]))
KINDS = [
    pytest.param(
        few, groups, id=f"{'few gains' if few else 'many'}-{'groups' if groups else 'single states'}"
    )
    for k, few in enumerate([True, False])
    for groups in [(None, GROUPS)[k % 2]]
]


def changes_of(system: ChoiceOperator) -> list[float]:
    return system.space.read(system.changes)


def improved(system: ChoiceOperator, x: np.ndarray, *arguments: float, **options: np.ndarray) -> np.ndarray:
    """One step from a vector on the host, which it leaves as it is; what was there before does not matter."""
    space = system.space
    held = space.vector(x)
    out = space.vector(np.full(system.size, np.nan))
    moved = {name: space.xp.asarray(value) for name, value in options.items()}
    system.improve(held, out, *arguments, **moved)
    np.testing.assert_array_equal(space.to_host(held), x)
    return space.to_host(out)


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
class TestSteps:
    @pytest.mark.parametrize(("few", "groups"), KINDS)
    def test_they_are_dense_ones(
        self,
        operators: Operators,
        rng: np.random.Generator,
        maximise: bool,
        groups: Quotient | None,
        few: bool,
    ) -> None:
        case, system = operators(rng, maximise, groups, few)
        x, shape = rng.random(case.size), rng.random(case.size)
        worth, plain = values_of(case, x)
        best, bare = case.best(worth, groups), case.best(plain, groups)
        np.testing.assert_allclose(improved(system, x, 0.5), 0.5 * best, rtol=1e-13)
        change = np.abs(0.5 * best - x)
        np.testing.assert_allclose(
            changes_of(system), [change.max(), (change / (0.5 * best)).max()], rtol=1e-11
        )
        np.testing.assert_allclose(improved(system, x, 0.75, shape=shape), 0.75 * bare + shape, rtol=1e-13)
        np.testing.assert_array_equal(improved(system, x), improved(system, x))
        assert system.nbytes > 0
        assert system.operand_bytes >= 0

    def test_f9_other_gains_groups_and_optima_on_the_same_matrices(
        self, operators: Operators, rng: np.random.Generator, maximise: bool
    ) -> None:
        case, system = operators(rng, maximise, None, True)
        x = rng.random(case.size)
        first = improved(system, x)
        worst = np.inf if maximise else -np.inf
        gains = np.where(np.isfinite(case.gains), rng.uniform(0.0, 1.0, case.gains.shape), worst)
        offers = [
            replace(o, gain=gains[o.layer] if o.place is None else gains[o.layer][o.place])
            for o in case.offers
        ]
        other = Choices(offers, case.dense, gains, not maximise)
        held: Any = system
        found = held.with_rewards(offers, ChoiceProblem(case.size, not maximise, GROUPS, system.slack))
        worth, _ = values_of(other, x)
        np.testing.assert_allclose(improved(found, x), other.best(worth, GROUPS), rtol=1e-13)
        chosen = found.space.to_host(found.choose(found.space.vector(x)))
        assert (chosen[GROUPS.members] == NO_CHOICE).sum() == len(GROUPS.members) - len(GROUPS.starts)
        assert found.nbytes == system.nbytes
        np.testing.assert_array_equal(improved(system, x), first)

    @pytest.mark.parametrize("groups", [None, GROUPS], ids=["single states", "groups"])
    def test_policies_attain_them(
        self, operators: Operators, rng: np.random.Generator, maximise: bool, groups: Quotient | None
    ) -> None:
        case, system = operators(rng, maximise, groups, True)
        x = rng.random(case.size)
        worth, _ = values_of(case, x)
        best = case.best(worth, groups)
        policy = system.choose(system.space.vector(x))
        chosen = system.space.to_host(policy)
        has = chosen != NO_CHOICE
        np.testing.assert_allclose(worth[chosen[has], np.flatnonzero(has)], best[has], rtol=1e-13)
        # One member of a group has the choice; a policy's own steps give all members its value.
        for own in () if groups is None else np.split(groups.members, groups.starts[1:]):
            assert np.count_nonzero(has[own]) == 1
        assert np.count_nonzero(~has) == (0 if groups is None else len(groups.members) - len(groups.starts))
        np.testing.assert_allclose(improved(system, x, policy=policy), best, rtol=1e-13)

    def test_a_policy_binds(self, operators: Operators, rng: np.random.Generator, maximise: bool) -> None:
        case, system = operators(rng, maximise, None, True)
        x = rng.random(case.size)
        worth, _ = values_of(case, x)
        others = np.where(np.isfinite(worth), worth, np.inf if maximise else -np.inf)
        worst = (others.argmin(axis=0) if maximise else others.argmax(axis=0)).astype(np.uint16)
        assert (worst != system.space.to_host(system.choose(system.space.vector(x)))).any()
        expected = worth[worst, np.arange(case.size)]
        np.testing.assert_allclose(improved(system, x, policy=worst), expected, rtol=1e-13)

    def test_equal_choices_leave_the_first(
        self, operators: Operators, rng: np.random.Generator, maximise: bool
    ) -> None:
        case, system = operators(rng, maximise, None, True)
        worth, _ = values_of(case, np.zeros(case.size))
        found = system.space.to_host(system.choose(system.zeros()))
        if isinstance(system, DeviceChoices):
            # There layers without entries in a row come after the others.
            np.testing.assert_array_equal(worth[found, np.arange(case.size)], case.best(worth))
            return
        np.testing.assert_array_equal(found, (worth == case.best(worth)).argmax(axis=0))

    @pytest.mark.parametrize("groups", [None, GROUPS], ids=["single states", "groups"])
    def test_policies_have_matrices(
        self, operators: Operators, rng: np.random.Generator, maximise: bool, groups: Quotient | None
    ) -> None:
        case, system = operators(rng, maximise, groups, True)
        if not system.has_policies:
            pytest.skip("steps that cannot be recorded")
        x, b = rng.random(case.size), rng.random(case.size)
        policy = system.choose(system.space.vector(x))
        rows = system.space.to_host(policy).astype(int)
        for own in () if groups is None else np.split(groups.members, groups.starts[1:]):
            # All members have the row of the one that chooses.
            rows[own] = rows[own].min()
        _, plain = values_of(case, x)
        chooses = np.arange(case.size)
        for own in () if groups is None else np.split(groups.members, groups.starts[1:]):
            chooses[own] = own[system.space.to_host(policy)[own] != NO_CHOICE]
        expected = plain[rows, chooses]
        space = system.of_policy(policy)
        held, out = space.vector(x), space.vector(np.full(case.size, np.nan))
        space.multiply(held, out)
        np.testing.assert_allclose(space.to_host(out), expected, rtol=1e-13)
        steps = space.system(space.ones(case.size), None).sharing(space.vector(b)).relaxation()
        steps.sweep((held, out), 0, 1)
        np.testing.assert_allclose(space.to_host(out), expected + b, rtol=1e-13)

    @pytest.mark.parametrize("groups", [None, GROUPS], ids=["single states", "groups"])
    def test_repeated_steps_are_single_ones(
        self, operators: Operators, rng: np.random.Generator, maximise: bool, groups: Quotient | None
    ) -> None:
        case, system = operators(rng, maximise, groups, True)
        space = system.space
        pair, single = ((system.zeros(), system.zeros()) for _ in range(2))
        # On a device two recorded tens and three more, twice, the second time from an odd number.
        system.repeat(pair, 0, 23, 0.75)
        system.repeat(pair, 23, 22, 0.75)
        changes = changes_of(system)
        for k in range(45):
            system.improve(single[k % 2], single[1 - k % 2], 0.75)
        np.testing.assert_array_equal(space.to_host(pair[1]), space.to_host(single[1]))
        assert changes == changes_of(system)


def values_of(case: Choices, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What every layer's choice is worth, with gains and without, shape (layers, n)."""
    products = case.dense @ x
    return products + case.gains, np.where(np.isfinite(case.gains), products, case.gains)

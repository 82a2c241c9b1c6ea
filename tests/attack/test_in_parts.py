"""Random models in parts against exact answers, whatever part has which states."""

from __future__ import annotations

import dataclasses

import pytest

from tests.attack.cases import draw_case
from tests.attack.formulas import Filtered
from tests.attack.further import Conditional
from tests.attack.in_parts import run_in_parts
from tests.attack.report import reported
from tests.gpu_kernels.devices import device_of

SEED = 20261123
CASES = 60
GROUP = 10
DEVICE_SEED, DEVICE_CASES, DEVICE_GROUP = 7, 20, 4


@pytest.mark.parametrize("first", range(0, CASES, 6 * GROUP))
def test_answers_in_parts_agree_with_exact_ones(first):
    assert not reported(run_in_parts, SEED, range(first, first + GROUP))


@pytest.mark.parametrize("first", range(0, DEVICE_CASES, 5 * DEVICE_GROUP))
def test_answers_in_parts_on_devices_agree_with_exact_ones(first):
    failures = []
    with device_of("host"):
        for number in range(first, first + DEVICE_GROUP, 2):
            case = draw_case(DEVICE_SEED, number)
            on_device = dataclasses.replace(case, options=case.options | {"backend": "gpu"})
            failures += run_in_parts(on_device).findings
    assert not failures, "\n\n".join(f.report() for f in failures)


def test_parts_are_asked_under_conditions_and_for_states():
    asked = [q.formula for n in range(CASES) for q in draw_case(SEED, n).questions]
    assert any(isinstance(formula, Conditional) for formula in asked)
    told = {formula.operator for formula in asked if isinstance(formula, Filtered)}
    assert told & {"first", "argmin", "argmax"}

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
DEVICE_SEED = 7
DEVICE_CASES = [0, pytest.param(2, marks=pytest.mark.nightly)]


@pytest.mark.parametrize("first", range(0, CASES, 6 * GROUP))
def test_answers_in_parts_agree_with_exact_ones(first):
    assert not reported(run_in_parts, SEED, range(first, first + GROUP))


@pytest.mark.parametrize("number", DEVICE_CASES)
def test_answers_in_parts_on_devices_agree_with_exact_ones(number):
    with device_of("host"):
        case = draw_case(DEVICE_SEED, number)
        on_device = dataclasses.replace(case, options=case.options | {"backend": "gpu"})
        failures = run_in_parts(on_device).findings
    assert not failures, "\n\n".join(f.report() for f in failures)


def test_parts_are_asked_under_conditions_and_for_states():
    asked = (q.formula for n in range(CASES) for q in draw_case(SEED, n).questions)
    wanted = {"conditional", "filtered"}
    for formula in asked:
        if isinstance(formula, Conditional):
            wanted -= {"conditional"}
        if isinstance(formula, Filtered) and formula.operator in ("first", "argmin", "argmax"):
            wanted -= {"filtered"}
        if not wanted:
            return
    raise AssertionError(wanted)

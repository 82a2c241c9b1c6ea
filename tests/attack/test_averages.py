"""Long-run averages of random processes against exact ones: every memoryless scheduler, by its classes."""

from __future__ import annotations

import pytest

from gpu_kernels import use_device
from tests.attack.averages import run_averages
from tests.attack.cases import draw_case
from tests.attack.report import reported
from tests.exploring import rounds
from tests.gpu_kernels.host_device import HostDevice

SEED = 20261128
CASES = 240
GROUP = 10


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_averages_of_processes_agree_with_exact_ones(first: int) -> None:
    assert not reported(run_averages, SEED, range(first, first + GROUP))


@pytest.mark.parametrize("number", range(CASES, CASES + rounds(9)))
def test_averages_on_a_device_agree_with_exact_ones(number: int) -> None:
    with use_device(HostDevice()):
        record = run_averages(draw_case(SEED, number, "gpu"))
    assert not record.findings and "wrong" not in record.verdicts, record.findings

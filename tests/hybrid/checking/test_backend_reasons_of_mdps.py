"""Answers about MDPs say where they were computed, and why the device took them or did not."""

from __future__ import annotations

import pytest

import hybrid
from gpu_kernels import use_device
from tests.builders.mdp_texts import SLOW_WAY
from tests.builders.models import build
from tests.gpu_kernels.host_device import COMPILER, HostDevice

WIN = "Pmax=? [ F x=2 ]"
ONE_STEP = """
mdp module m x : [0..2];
[] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2); [] x>0 -> true; endmodule
"""

pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with"
)


def reason(prop: str = WIN, text: str = SLOW_WAY, free: int = 1 << 40, **options: object) -> tuple[str, str]:
    """Return the backend of an answer on the emulated device and why it is that one, from its record."""
    with use_device(HostDevice(free)):
        answer = hybrid.check(build(text), prop, **options, throw=False)
    assert answer.error is None, answer.error
    record = answer.record()
    assert record["backend_reason"] == answer.statistics.backend_reason
    return record["backend"], record["backend_reason"]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every system pass for a large one."""
    monkeypatch.setattr("hybrid.matrix.operators.hybrid_choices._SMALL_STATES", 1)
    monkeypatch.setattr("hybrid.matrix.operators.device_choices.SMALL_ENTRIES", 1)
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 1)


@pytest.mark.parametrize("backend", ["cpu", "reference", "gpu"])
def test_what_was_asked_for_says_so(backend: str) -> None:
    assert reason(backend=backend) == (backend, "asked for")


def test_auto_names_the_problem_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "the card is at home")
    for prop, expected in (
        (WIN, "reference"),
        ('R{"tries"}max=? [ C<=3 ]', "reference"),
        ('R{"tries"}max=? [ C<=3000 ]', "cpu"),
        ("Pmax=? [ F[2,3] x=2 ]", "reference"),
    ):
        backend, why = reason(prop)
        assert backend == expected
        assert "no GPU: the card is at home" in why, prop


@pytest.mark.parametrize("prop", [WIN, 'R{"tries"}max=? [ F x>=2 ]', "Pmax=? [ F<=3 x=2 ]"])
def test_too_few_states_stay_on_the_cpu(prop: str) -> None:
    assert reason(prop) == ("cpu", "2 unknown states are too few for the GPU to be faster (below 65536)")


def test_too_few_entries_stay_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.hybrid_choices._SMALL_STATES", 1)
    assert reason() == ("cpu", "2 non-zeros of all layers are too few for the GPU to be faster")


def test_large_systems_are_taken(large: None) -> None:
    assert reason() == ("gpu", "a device is there, host")
    assert reason('R{"tries"}max=? [ C<=3 ]') == ("gpu", "a device is there, host")


def test_a_device_without_room_leaves_auto_the_cpu(large: None) -> None:
    backend, why = reason(free=100)
    assert backend == "cpu"
    assert "bytes on host to be built and solved with, 100 are free" in why
    with pytest.raises(MemoryError, match="100 are free"):
        reason(free=100, backend="gpu")


def test_too_many_layers_go_one_by_one(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.device_choices.MOST_LAYERS", 1)
    why = "layers one by one: there are 2 layers of choices, and a fused step takes 1"
    prop = 'R{"tries"}max=? [ C<=3 ]'
    assert reason(prop, backend="gpu") == ("gpu", f"asked for; {why}")
    assert reason(prop) == ("gpu", f"a device is there, host; {why}")


def test_layers_that_cannot_be_laid_out_go_one_by_one(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.device_choices.build_choices", lambda *_, **__: None)
    why = "layers one by one: no level can be laid out so that a fused step takes all layers"
    assert reason() == ("gpu", f"a device is there, host; {why}")


def test_layers_one_by_one_may_be_too_small(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.device_choices.MOST_LAYERS", 1)
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 1 << 20)
    backend, why = reason('R{"tries"}max=? [ C<=3 ]')
    assert backend == "cpu"
    assert "non-zeros are too few for the GPU to be faster" in why


@pytest.mark.parametrize("backend", ["gpu", "auto"])
def test_where_nothing_is_multiplied_the_cpu_says_so(large: None, backend: str) -> None:
    found = reason("Pmax=? [ F x=1 ]", ONE_STEP, backend=backend)
    assert found == ("cpu", "every choice leaves the unknown states at once: there is nothing to multiply")


def test_one_step_is_made_on_the_host() -> None:
    for backend in ("auto", "gpu"):
        found = reason("Pmax=? [ X x=2 ]", backend=backend)
        assert found == ("cpu", "single products over the layers of an MDP are made on the host")
    assert reason("Pmax=? [ X x=2 ]", backend="reference") == ("reference", "asked for")


def test_choices_written_out_say_where() -> None:
    backend, why = reason(engine="explicit")
    assert backend == "cpu"
    assert "auto is the cpu with the engine explicit" in why
    assert reason(engine="explicit", backend="gpu") == ("gpu", "asked for")

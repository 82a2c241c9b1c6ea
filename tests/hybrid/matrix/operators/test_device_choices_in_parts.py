"""Fused steps of several processes: the values of one process, and the same way in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from gpu_kernels import Device, TileMatrix, current_device, use_device
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.communicators import in_threads
from hybrid.matrix.gpu import transports as carriers
from hybrid.matrix.gpu.transports import joined_neighbours
from hybrid.matrix.operators import device_choices as fused
from hybrid.matrix.operators.device_choices import DeviceChoices, DistributedDeviceChoices, fused_choices
from hybrid.matrix.operators.hybrid_choices import Ineligible
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem, Quotient
from mtbdd.base.communicator import Communicator
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.choice_systems import Choices, random_choices
from tests.builders.divided_choices import own_groups, own_offers
from tests.builders.exchanges import InTurns
from tests.builders.matrices import from_dense, to_dense
from tests.contracts.choice_operators import ONE_PASS, make_operator
from tests.gpu_kernels.host_device import COMPILER, HostDevice

GROUPS = Quotient(np.array([9, 3, 11, 41, 40, 55]), np.array([0, 3, 5]))
# Of two parts both have members of the first group; of three the second has no member of any.
CUTS = {1: (0, 60), 2: (0, 10, 60), 3: (0, 14, 30, 60)}
STEPS = 23

Told = dict[str, Any]


@pytest.fixture
def built_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the device make what the host would make of few items."""
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", -1)


def problem_of(
    case: Choices, cuts: tuple[int, ...], alike: Communicator, groups: Quotient | None = None
) -> ChoiceProblem:
    own = None if groups is None else own_groups(groups, cuts, alike.rank)
    size = cuts[alike.rank + 1] - cuts[alike.rank]
    return ChoiceProblem(size, case.maximise, own, 1e-14, alike)


def operator_of(
    case: Choices, cuts: tuple[int, ...], alike: Communicator, groups: Quotient | None = None
) -> DeviceChoices:
    """Return a process's operator."""
    problem = problem_of(case, cuts, alike, groups)
    found = fused_choices(
        own_offers(case, cuts, alike), problem, CheckOptions(backend="gpu").matrix_backend()
    )
    assert isinstance(found, DeviceChoices), found
    assert isinstance(found, DistributedDeviceChoices) == (alike.size > 1)
    return found


def told(system: ChoiceOperator, vectors: dict[str, np.ndarray], rows: slice) -> Told:
    """Return what steps from vectors make of the own states."""
    space = system.space
    x, shape = space.vector(vectors["x"][rows]), space.vector(vectors["shape"][rows])
    out, found = space.vector(np.full(system.size, np.nan)), {}

    def note(name: str, values: Any) -> None:
        found[name] = np.array(space.to_host(values))

    system.improve(x, out)
    note("step", out)
    found["changes"] = space.read(system.changes)
    system.improve(x, out, 0.5, shape=shape)
    note("shaped", out)
    policy = space.xp.asarray(vectors["policy"][rows].astype(np.uint16))
    system.improve(x, out, policy=policy)
    note("policy", out)
    note("chosen", system.choose(x))
    pair = space.vector(np.zeros(system.size)), space.vector(np.zeros(system.size))
    system.repeat(pair, 0, STEPS)
    note("repeated", pair[STEPS % 2])
    found["last changes"] = space.read(system.changes)
    note("positive", system.positive())
    found["residual"] = system.residual(x, out)
    return found


def in_process(
    case: Choices,
    cuts: tuple[int, ...],
    vectors: dict[str, np.ndarray],
    alike: Communicator,
    groups: Quotient | None = None,
) -> Told:
    rows = slice(cuts[alike.rank], cuts[alike.rank + 1])
    return told(operator_of(case, cuts, alike, groups), vectors, rows)


def drawn(rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
    """Return vectors whose products and sums are exact, and a policy."""
    names = ("x", "shape")
    numbers = {name: rng.integers(1, 64, size) / 64.0 for name in names}
    return numbers | {"policy": rng.choice([0, 1, 2, NO_CHOICE], size)}


def compare(found: list[Told], wanted: Told, has_groups: bool = False) -> None:
    """Expect the bits where sums are exact, and else what another order of additions leaves."""
    for name in ("step", "shaped", "policy", "positive"):
        together = np.concatenate([own[name] for own in found])
        np.testing.assert_array_equal(together, wanted[name], err_msg=name)
    together = np.concatenate([own["repeated"] for own in found])
    np.testing.assert_allclose(together, wanted["repeated"], rtol=1e-13)
    chosen = np.concatenate([own["chosen"] for own in found])
    if not has_groups:
        np.testing.assert_array_equal(chosen, wanted["chosen"])
    np.testing.assert_array_equal(chosen == NO_CHOICE, wanted["chosen"] == NO_CHOICE)
    for own in found:
        assert own["changes"] == wanted["changes"]
        assert own["residual"] == wanted["residual"]
        np.testing.assert_allclose(own["last changes"], wanted["last changes"], rtol=1e-6, atol=1e-14)


@pytest.mark.usefixtures("built_on_the_device")
@pytest.mark.parametrize(
    ("parts", "maximise", "groups"),
    [
        pytest.param(
            parts,
            *case,
            id=f"{parts}-{'max' if case[0] else 'min'}-{'groups' if case[1] else 'single states'}",
        )
        for parts in (1, 2, 3)
        for case in ([(True, None), (False, GROUPS)], [(True, GROUPS), (False, None)])[parts % 2]
    ],
)
def test_parts_step_as_one(
    device: Device, rng: np.random.Generator, parts: int, maximise: bool, groups: Quotient | None
) -> None:
    case = random_choices(rng, maximise, partial=False, few=parts != 2)
    vectors, cuts = drawn(rng, case.size), CUTS[parts]
    wanted = told(make_operator(ONE_PASS, case, groups), vectors, slice(None))
    found = in_threads(parts, lambda alike: in_process(case, cuts, vectors, alike, groups))
    compare(found, wanted, groups is not None)


@pytest.mark.parametrize("cuts", [(0, 0, 30, 60), (0, 50, 60, 60)], ids=["the first", "the last"])
def test_a_part_without_states_takes_part(
    device: Device, rng: np.random.Generator, cuts: tuple[int, ...]
) -> None:
    case = random_choices(rng, True, partial=False)
    vectors = drawn(rng, case.size)
    wanted = told(make_operator(ONE_PASS, case), vectors, slice(None))
    compare(in_threads(3, lambda alike: in_process(case, cuts, vectors, alike)), wanted)


def test_a_part_without_entries_takes_part(device: Device, rng: np.random.Generator) -> None:
    case = random_choices(rng, False, partial=False)
    offers = [replace(o, matrix=cut_below(o.matrix, 30)) for o in case.offers]
    case = replace(case, offers=offers)
    vectors = drawn(rng, case.size)
    wanted = told(make_operator(ONE_PASS, case), vectors, slice(None))
    compare(in_threads(2, lambda alike: in_process(case, (0, 30, 60), vectors, alike)), wanted)


def cut_below(matrix: OffsetMTBDD | None, row: int) -> OffsetMTBDD:
    assert matrix is not None
    dense = to_dense(matrix)
    dense[row:] = 0.0
    return from_dense(dense)


# ------------------------------------------------------------------ what steps receive


class Recording(HostDevice):
    """An emulated device that counts what is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded = 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        return super().record(work)


@pytest.fixture
def recording() -> Iterator[Recording]:
    """An emulated device that counts recordings, the current one."""
    if COMPILER is None:
        pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
    with use_device(Recording()) as device:
        assert isinstance(device, Recording)
        yield device


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["single states", "groups"])
def test_steps_by_windows_are_recorded_and_those_of_the_hosts(
    recording: Recording, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, groups: Quotient | None
) -> None:
    monkeypatch.setattr(carriers, "PeerTransport", InTurns)
    case = random_choices(rng, True, partial=False)
    vectors, cuts = drawn(rng, case.size), CUTS[3]

    def run(alike: Communicator, direct: bool) -> Told:
        if direct:
            alike.links = joined_neighbours(current_device(), alike) or False
        system = operator_of(case, cuts, alike, groups)
        way = "straight to other cards" if direct else "by way of the hosts"
        assert system.backend_reason == f"3 parts share the states, elements are carried {way}"
        return told(system, vectors, slice(cuts[alike.rank], cuts[alike.rank + 1]))

    plain = in_threads(3, partial(run, direct=False))
    assert recording.recorded == 0
    straight = in_threads(3, partial(run, direct=True))
    # The second ten of the steps, in every process; with groups processes tell each other in every step.
    assert recording.recorded == (0 if groups else 3)
    for own, other in zip(plain, straight, strict=True):
        assert own.keys() == other.keys()
        for name, values in own.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_every_step_has_what_others_have_now(device: Device, rng: np.random.Generator) -> None:
    case, cuts = random_choices(rng, True, partial=False), CUTS[2]
    every = rng.integers(1, 64, (6, case.size)) / 64.0

    def run(alike: Communicator) -> list[np.ndarray]:
        system = operator_of(case, cuts, alike)
        rows, space, found = slice(cuts[alike.rank], cuts[alike.rank + 1]), system.space, []
        x, out = space.vector(every[0][rows]), space.xp.empty(system.size)
        for numbers in every:
            x[...] = space.vector(numbers[rows])
            system.improve(x, out)
            found.append(np.array(space.to_host(out)))
        return found

    alone = make_operator(ONE_PASS, case)
    space = alone.space
    halves = in_threads(2, run)
    before: np.ndarray | None = None
    for numbers, *own in zip(every, *halves, strict=True):
        out = space.xp.empty(case.size)
        alone.improve(space.vector(numbers), out)
        wanted = np.array(space.to_host(out))
        np.testing.assert_array_equal(np.concatenate(own), wanted)
        # With the halves of a step before in place of others' elements there would be other values.
        if before is not None:
            stale = np.concatenate((numbers[: cuts[1]], before[cuts[1] :]))
            alone.improve(space.vector(stale), out)
            assert (space.to_host(out)[: cuts[1]] != wanted[: cuts[1]]).any()
        before = numbers


# ------------------------------------------------------------------ all the same way

Built = tuple[int, TileMatrix] | None


@pytest.mark.parametrize("problem", ["room", "level"])
def test_what_one_cannot_lay_out_goes_one_by_one_in_all(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    case, cuts, build = random_choices(rng, True, partial=False), CUTS[3], fused.build_choices

    def build_choices(there: Device, matrices: dict[int, OffsetMTBDD], *more: Any, **others: Any) -> Built:
        if matrices[0].n_rows == cuts[2] - cuts[1]:
            if problem == "room":
                raise MemoryError("no room on one of them")
            return None
        return build(there, matrices, *more, **others)

    monkeypatch.setattr(fused, "build_choices", build_choices)

    def run(alike: Communicator) -> DeviceChoices | Ineligible:
        return fused_choices(
            own_offers(case, cuts, alike),
            problem_of(case, cuts, alike),
            CheckOptions(backend="gpu").matrix_backend(),
        )

    reasons = {
        "room": "no room on one of them",
        "level": "no level can be laid out so that a fused step takes all layers",
    }
    assert in_threads(3, run) == [Ineligible(reasons[problem], False)] * 3

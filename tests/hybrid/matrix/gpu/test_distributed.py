"""Parts of a matrix on devices: early rows and late ones, passes over parts of vectors, answers in parts."""

from __future__ import annotations

import math
import re
import sys
import threading
import warnings
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid
import hybrid.matrix.gpu.transports as carriers
from gpu_kernels import (
    CudaDevice,
    Device,
    IterationState,
    Mode,
    ShadowKernels,
    Step,
    coded_step,
    compress,
    current_device,
    run_tiles,
)
from gpu_kernels.compressed.tiles import TileMatrix
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.arrays import to_host
from hybrid.base.communicators import in_threads
from hybrid.base.errors import OptionError
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.gpu.cost import least_vector_bytes
from hybrid.matrix.gpu.distributed_space import DevicePasses, DistributedDeviceSpace
from hybrid.matrix.gpu.product import DistributedGpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.transports import Neighbours, gather, joined_neighbours, leaving_elements
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.passes import DIRECTIONS, NumPyPasses
from hybrid.properties import parse_properties, resolve_properties
from hybrid.solvers.average_krylov import DAMPED_VECTORS, LEAN_VECTORS, DampedAverage, LowMemoryAverage
from hybrid.solvers.average_reward import AverageReward, BiasIteration
from mtbdd.base.communicator import AgreedMemoryError, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import states_from
from tests.builders.exchanges import InTurns
from tests.builders.matrices import from_dense, random_sparse
from tests.builders.part_questions import QUESTIONS, agree, asked, dealt
from tests.builders.processes import needs_mpi, run_processes
from tests.gpu_kernels.devices import device_of
from tests.gpu_kernels.host_device import HostDevice
from tests.source_tree import ROOT

SPOILT = 1e6  # what is read before it has come makes a result that is wrong, and a number


# ------------------------------------------------------------------ kernels


def halved(rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """Return a matrix of which the upper half has no entry in the last third of the columns."""
    dense = random_sparse(rng, size, size, 0.2)
    dense[: size // 2, size - size // 3 :] = 0.0
    return dense


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("level", [0, 4])
def test_early_items_read_nothing_of_others(
    device: Device, mode: Mode, level: int, rng: np.random.Generator
) -> None:
    size, own = 96, 64
    dense = halved(rng, size)
    matrix = build_tile_matrix(device, TypedMatrix(from_dense(dense)).plain, level, own_columns=own)
    assert isinstance(matrix, TileMatrix) and matrix.early is not None
    assert (matrix.early > 0) == (level > 0)
    assert matrix.early < len(matrix.items)
    xp, x = device.xp, rng.normal(size=size)
    diagonal, b = 1.0 + rng.random(size), rng.random(size)
    # Relaxed rows are own columns as well: a square matrix whose last columns stand elsewhere.
    square = dense.copy()
    square[own:] = 0.0
    if mode != Mode.PRODUCT:
        matrix = build_tile_matrix(
            device, TypedMatrix(from_dense(square[:own])).plain, level, own_columns=own
        )
        assert isinstance(matrix, TileMatrix)
        diagonal, b = diagonal[:own], b[:own]
    rows = matrix.n_rows
    state = IterationState.create(device)
    step = (
        coded_step(device, mode, diagonal, b, 0.7, state)
        if mode != Mode.PRODUCT
        else Step(mode, compress(device, None), compress(device, None))
    )
    others = xp.full(size - own, SPOILT)
    out, whole = xp.empty(rows), xp.asarray(x)
    mine = whole[:own].copy()
    run_tiles(device, matrix, step, mine, out, others, "early")
    others[...] = whole[own:]
    run_tiles(device, matrix, step, mine, out, others, "late")
    product = dense[:rows] @ x if mode == Mode.PRODUCT else square[:own] @ x
    wanted = {
        Mode.PRODUCT: lambda: product,
        Mode.JACOBI: lambda: 0.3 * x[:own] + 0.7 * (product + b) / diagonal,
        Mode.POWER: lambda: (1.0 - 0.7 * diagonal) * x[:own] + 0.7 * (product + b),
        Mode.RESIDUAL: lambda: None,
    }[mode]()
    if wanted is not None:
        np.testing.assert_allclose(to_host(out), wanted, rtol=1e-12, atol=1e-12)
    if mode == Mode.RESIDUAL:
        from gpu_kernels import finish_iteration

        finish_iteration(device, state, -1.0, False)
        greatest = np.abs(product + b - diagonal * x[:own]).max()
        assert to_host(state.differences)[0] == pytest.approx(greatest, rel=1e-12)


def test_without_early_items_all_rows_wait(device: Device, rng: np.random.Generator) -> None:
    size, own = 40, 30
    dense = random_sparse(rng, size, size, 0.2)
    matrix = build_tile_matrix(device, TypedMatrix(from_dense(dense)).plain, 3)
    assert isinstance(matrix, TileMatrix) and matrix.early is None
    x = rng.normal(size=size)
    out, others, mine = device.xp.empty(size), device.xp.full(size - own, SPOILT), device.xp.asarray(x[:own])
    product = Step(Mode.PRODUCT, compress(device, None), compress(device, None))
    run_tiles(device, matrix, product, mine, out, others, "early")
    others[...] = device.xp.asarray(x[own:])
    run_tiles(device, matrix, product, mine, out, others, "late")
    np.testing.assert_allclose(to_host(out), dense @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("size", [0, 1, 255, 3000])
def test_passes_on_a_device_are_those_in_numpy(
    device: Device, size: int, weighed: bool, wide: bool, rng: np.random.Generator
) -> None:
    plain, xp = NumPyPasses(), device.xp
    x, t, weights = rng.normal(size=(3, size))
    diagonal = 1.0 + rng.integers(3, size=size)
    ours = ShadowKernels(device, size, compress(device, diagonal), wide)
    scale, there = (weights, xp.asarray(weights)) if weighed else (None, None)
    tight: Any = {"rtol": 1e-11, "atol": 1e-11}
    x_there, t_there = xp.asarray(x), xp.asarray(t)
    np.testing.assert_allclose(
        to_host(ours.shadow_sums(x_there, there)), plain.shadow_sums(x, scale), **tight
    )
    np.testing.assert_allclose(
        to_host(ours.step_sums(t_there, x_there, there)), plain.step_sums(t, x, scale), **tight
    )
    for k in range(DIRECTIONS):
        vectors = [*rng.normal(size=(2, DIRECTIONS, size)), *rng.normal(size=(2, size))]
        shares = rng.normal(size=DIRECTIONS)
        u, g, r, y = (vector.copy() for vector in vectors)
        plain.aim(k, shares, 0.7, r, u, g)
        betas = np.full(DIRECTIONS, 0.3)
        following = u[(k + 1) % DIRECTIONS].copy()
        plain.settle(k, shares, betas, shares, 0.7, u, g, r, y)
        if k + 1 < DIRECTIONS:
            u[k + 1] = following  # these launches leave the next direction to `aim`
        plain.step(0.4, t, r, y)
        own = [xp.asarray(vector) if xp is not np else vector.copy() for vector in vectors]
        ours.aim(k, shares, 0.7, own[2], own[0], own[1])
        ours.settle(k, shares, 0.3, *own)
        ours.step(0.4, t_there, own[2], own[3])
        for found, wanted in zip(own, (u, g, r, y), strict=True):
            np.testing.assert_allclose(to_host(found), wanted, **tight)
    image, residual = xp.asarray(t.copy()), xp.asarray(t.copy())
    ours.write_image(0.5, x_there, image)
    ours.write_residual(0.5, x_there, residual)
    np.testing.assert_allclose(to_host(image), x - (t - 0.5) / diagonal, **tight)
    if size:
        image[...] = t_there
        DevicePasses(device).image(x_there, xp.asarray(diagonal, dtype=np.float64), 0.5, image)
        np.testing.assert_allclose(to_host(image), x - (t - 0.5) / diagonal, **tight)
    np.testing.assert_allclose(to_host(residual), t - 0.5 / diagonal - x, **tight)


@pytest.mark.parametrize(("outgoing", "incoming"), [(5, 3), (0, 4), (4, 0), (0, 0)])
def test_elements_go_out_and_come_in(device: Device, outgoing: int, incoming: int) -> None:
    transfers, xp = device.transfers(outgoing, incoming), device.xp
    others = xp.zeros(incoming)
    for turn in range(3):
        leaving = xp.arange(outgoing, dtype=np.float64) + turn
        transfers.send(leaving)
        leaving += 0.0  # queued behind the copy
        transfers.sent()
        assert transfers.outgoing.tolist() == [k + turn for k in range(outgoing)]
        transfers.incoming[...] = np.arange(incoming) * 2.0 + turn
        transfers.receive(others)
        assert to_host(others * 1.0).tolist() == [2.0 * k + turn for k in range(incoming)]


# ------------------------------------------------------------------ products, steps, recurrences


def everything(own: SymbolicModel, options: CheckOptions) -> list[list[float]]:
    """Return what a vector space of a part's matrix makes of vectors."""
    matrix = build_operator(own.submatrix(own.index, own.index), options)
    assert isinstance(matrix, DistributedMatrix)
    n, first, place = own.index.size, own.communicator.rank == 0, matrix.place
    numbers = np.random.default_rng(n).random((3, n))
    x, start, right = (place.array(vector) for vector in numbers)
    d = place.array(numbers[0] + 2.0 * to_host(matrix.row_sums()))
    space = space_of(matrix)
    found = [matrix.row_sums(), matrix.multiply(x)]
    y, z = space.vector(x), space.xp.empty(n)
    found.append(matrix.jacobi_step(x, z, right, d, 0.9))
    found.append(z.copy())
    for steps in (
        space.system(d, right).relaxation(0.8),
        space.system(d, None).uniformised(9.0),
        space.system(d, None).sharing(space.vector(right)).relaxation(),
    ):
        total = space.xp.zeros(n)
        steps.sweep((y, z), 0, 3, total)
        found += [y.copy(), z.copy(), total, space.read(steps.changes), space.read(steps.course)]
        steps.sweep((y, z), 3, 1)
        found.append(space.read(steps.changes))
    for recurrence in (
        space.system(d, right).idr(start, 1e-13),
        space.system(d, right).idr(start, 1e-13, 0 if first else -1, space.operand(x)),
        space.system(d, right).idr(start, 1e-13, directions=1),
        space.system(d, right).idr(start, 1e-13, 0 if first else -1, directions=1),
    ):
        recurrence.restart()
        while not recurrence.advance(1).ended:
            assert recurrence.products < 2000
        found += [recurrence.x.copy(), [recurrence.refresh() < 1e-11]]
    found.append(space.element(x, n - 1 if first else -1))
    found += [[float(f)] for f in (space.least(x), space.greatest(x), space.all(x > 0.5), space.any(x > 0.5))]
    # Told here and not by the host's vector space alone, which shares these with a device's.
    alike, own_x = own.communicator, to_host(x)
    assert float(space.least(x)) == alike.gather([own_x.min()]).min()
    assert float(space.greatest(x)) == alike.gather([own_x.max()]).max()
    # True in the first part alone, and false in that one alone.
    for number, holds in ((2.0, True), (-1.0, False)):
        mask, is_alone = (x > number) ^ first, alike.size == 1
        assert bool(space.all(mask)) == (is_alone and holds)
        assert bool(space.any(mask)) == (holds or not is_alone)
    found += [space.read(*space.extremes(x)), space.read(space.distance(x, start))]
    found.append(space.read(space.system(d, right).residual(x, z)))
    assert (alike.gather(found[-1]) == found[-1][0]).all()  # the greatest of all rows, told to all
    space.add_scaled(0.5, x, z)
    passes = space.passes
    passes.uniformise(x, right, d, 0.1, y)
    found += [
        y,
        [passes.step_sums(x, right, None)[0]],
        [float(space.has_room(4, n)), float(space.stretch(100))],
    ]
    return [np.ravel(to_host(part)).tolist() for part in found]


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("kanban", {"t": 1}, {"level": 20}),
    ("kanban", {"t": 1}, {"representation": "tasks"}),
    ("tandem", {"c": 15}, {}),
]


@pytest.mark.parametrize(("name", "constants", "more"), CASES, ids=["tiles", "tasks", "default"])
def test_spaces_in_parts_do_what_those_of_the_host_do(
    device: Device, name: str, constants: dict[str, Any], more: dict[str, Any], rng: np.random.Generator
) -> None:
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=constants)
    for parts in [(3, 1)[CASES.index((name, constants, more)) % 2]]:
        owners = dealt(model, parts, rng)
        wanted, found = (
            in_parts(model, parts, partial(everything, options=CheckOptions(backend=backend, **more)), owners)
            for backend in ("cpu", "gpu")
        )
        for number, (ours, plain) in enumerate(zip(found, wanted, strict=True)):
            np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-11, err_msg=str(number))


def test_a_part_without_entries_takes_part(device: Device) -> None:
    # The states of the second part are deadlocks, those of the first lead there.
    model = hybrid.parse("ctmc module m x:[0..9] init 0; [] x<5 -> 2:(x'=x+1) + 3:(x'=x+5); endmodule")
    part = (np.arange(10) >= 5).astype(int)
    owners = tuple(states_from(model.manager, model.index, part == p) for p in range(2))
    for backend in ("cpu", "gpu"):
        options: Any = CheckOptions(backend=backend)

        def results(own: SymbolicModel, options: CheckOptions = options) -> list[list[float]]:
            matrix = build_operator(own.submatrix(own.index, own.index, diagonal=False), options)
            assert isinstance(matrix, DistributedMatrix)
            own_part = own.communicator.rank
            assert (matrix.matrix is None) == (own_part == 1)
            x = matrix.place.array(np.arange(5) + 10.0 * own_part)
            d, z = matrix.place.array(np.full(5, 5.0)), matrix.place.xp.empty(5)
            space = space_of(matrix)
            steps = space.system(d, x).relaxation()
            steps.sweep((x, z), 0, 1)
            numbers = [matrix.multiply(x), z, space.read(steps.changes), [own.communicator.rank]]
            return [
                [float(v) for v in own.communicator.gather(to_host(part)).ravel()]
                for part in (np.ravel(to_host(n)) for n in numbers)
            ]

        found = in_parts(model, 2, results, owners)
        product = [2.0 * (k + 1) + 3.0 * (k + 10) if k < 4 else 2.0 * 10 + 3.0 * 14 for k in range(5)]
        assert found[0] == [*product, *[0.0] * 5]
        assert found[1] == pytest.approx(
            [(p + k) / 5 for k, p in enumerate(product)] + [2, 2.2, 2.4, 2.6, 2.8]
        )


# ------------------------------------------------------------------ answers


def test_a_rows_product_is_one_of_parts(device: Device) -> None:
    model, _ = asked("walk")

    def kind(own: SymbolicModel) -> tuple[type, int]:
        matrix = build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="gpu"))
        assert isinstance(matrix, DistributedMatrix) and matrix.matrix is not None
        return type(matrix.matrix.product), matrix.halo.size

    assert in_parts(model, 3, kind) == (DistributedGpuProduct, 1)


HOST_QUESTIONS = {
    "walk": [
        'P=? [ true U[0.5,2] x=3 ]', "P=? [ x>1 U x=n ]", 'R{"up"}=? [ C<=2.5 ]', 'R{"up"}=? [ F x=n ]',
        "S=? [ x>2 ]", "filter(avg, P=? [ F<=2 x=n ])",
    ],
    "loops": ["Pmax=? [ F x=9 ]", "Pmin=? [ F<=4 x=9 ]", "Rmin=? [ F x>=9 ]", "Rmin=? [ C ]"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["host", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_questions_in_parts_on_a_device(name: str, kind: str) -> None:
    model, questions = asked(name)
    if kind == "host":
        questions = HOST_QUESTIONS[name]
    properties = ";\n".join(questions)
    ones = hybrid.check_all(model, properties, backend="cpu")
    with device_of(kind):
        for ranks in (3,) if kind == "host" else (1, 2, 5):
            found = hybrid.check_all(model, properties, ranks=ranks, backend="gpu")
            for text, one, many in zip(questions, ones, found, strict=True):
                assert one.error is None and many.error is None, (text, ranks, one.error, many.error)
                assert agree(one, many), (text, ranks, one.value, many.value)


@pytest.mark.parametrize("method", ["jacobi", "power", "bicgstab", "interval", "optimistic"])
def test_methods_in_parts_on_a_device(device: Device, method: Any) -> None:
    model, _ = asked("walk")
    options: dict[str, Any] = {"method": method, "epsilon": 1e-10, "throw": False}
    for text in [('R{"up"}=? [ F x=n ]', "S=? [ x>2 ]")[len(method) % 2]]:
        one = hybrid.check(model, text, backend="cpu", **options)
        many = hybrid.check(model, text, ranks=2, backend="gpu", **options)
        if one.value is None:
            assert many.value is None and many.error == one.error
            continue
        assert many.value == pytest.approx(one.value, rel=1e-8)
        assert (many.lower is None) == (one.lower is None)


def test_groups_of_states_across_devices_share_their_best_value(
    device: Device, rng: np.random.Generator
) -> None:
    model, _ = asked("loops")
    (prop,) = resolve_properties(parse_properties("Pmax=? [ F x=9 ]"), model.source).properties
    wanted = Checker(model, CheckOptions()).answer(prop)
    for _ in range(2):
        part = rng.integers(3, size=model.n_states)
        owners = tuple(states_from(model.manager, model.index, part == p) for p in range(3))
        found = in_parts(model, 3, lambda own: Checker(own, CheckOptions(backend="gpu")).answer(prop), owners)
        assert found.error is None and agree(wanted, found)
        assert found.statistics.backend == "gpu"


_TWO = """
import sys
import hybrid
from gpu_kernels import CudaDevice
from hybrid.matrix.gpu import transports as carriers
from hybrid.matrix.gpu.transports import Neighbours, joined_neighbours
from mpi4py import MPI
comm, way = MPI.COMM_WORLD, sys.argv[1]
if way == "straight":  # as if there were a card for each, which there is where there are two
    CudaDevice.card_identity = lambda self: bytes([comm.Get_rank() + 1])
elif way == "linked":
    carriers.joined_neighbours = lambda *_: None
else:
    CudaDevice.card_identity = lambda self: b""
for name, constants, text in (
    ("kanban", {"t": 2}, 'R{"throughput"}=? [ S ]'),
    ("kanban", {"t": 2}, "P=? [ F<=2 w1=1 ]"),
    ("coin", {"K": 1}, 'Pmin=? [ F "decided" & "all_heads" ]'),
):
    model = hybrid.load(f"examples/{name}.prism", constants=constants)
    alone = hybrid.check(model, text, backend="cpu")
    for method in ("auto", "interval") if way != "hosts" else ("auto",):
        if method == "interval" and "F" not in text:
            continue
        found = hybrid.check(model, text, backend="gpu", ranks=comm, method=method)
        assert found.error is None and found.statistics.backend == "gpu", found.error
        assert max(found.lower, alone.lower) <= min(found.upper, alone.upper), (found, alone)
        print(found.statistics.backend_reason)
print(f"alike {comm.Get_rank()}")
"""


@needs_mpi
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("way", "words"),
    [("straight", "straight to other cards"), ("linked", "by NCCL"), ("hosts", "by way of the hosts")],
)
def test_two_processes_with_a_device(way: str, words: str) -> None:
    import cupy

    if way == "linked" and cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("NCCL joins no processes that share a card")
    found = run_processes(2, sys.executable, "-c", _TWO, way)
    assert found.returncode == 0, found.stderr
    assert sorted(re.findall(r"alike \d", found.stdout)) == ["alike 0", "alike 1"]
    assert found.stdout.count(words) == (6 if way == "hosts" else 10)


@pytest.mark.parametrize(
    ("runs", "one_by_one"),
    [
        ([], False),
        ([(0, 3)], False),
        ([(1, 2), (4, 5), (7, 9)], False),
        ([(0, 300), (400, 800)], False),
        ([(0, 600), *((k, k + 1) for k in range(700, 750, 2))], True),  # long on average alone
    ],
)
def test_ranges_are_gathered(
    device: Device, runs: list[tuple[int, int]], one_by_one: bool, rng: np.random.Generator
) -> None:
    x, out = rng.random(1000), device.xp.empty(sum(b - a for a, b in runs))
    leaving = leaving_elements(device, np.array(runs, np.int64).reshape(-1, 2), len(x))
    assert (leaving.places is not None) == one_by_one
    gather(device, leaving, device.xp.asarray(x), out)
    assert to_host(out).tolist() == [number for a, b in runs for number in x[a:b]]


class Alike(Communicator):
    """One of two processes whose cards have given identities."""

    size, carries = 2, True

    def __init__(self, rank: int, cards: list[bytes]) -> None:
        self.rank, self._cards, self.asked = rank, cards, 0

    def gather_bytes(self, own: bytes) -> list[bytes]:
        self.asked += 1
        if self.asked == 4 and len(set(self._cards) - {b""}) == 2:
            return [b"key", b""]
        return self._cards if self.asked == 2 else [own, own]  # the first time for the environment

    def gather(self, numbers: Any) -> np.ndarray[Any, Any]:
        return np.stack([np.array(numbers, np.float64)] * 2)

    def local_rank(self) -> tuple[int, int]:
        return 0, 1  # machines of their own


@pytest.mark.parametrize(
    ("cards", "linked"), [([b"a", b"b"], True), ([b"a", b"a"], False), ([b"a", b""], False)]
)
def test_cards_are_linked_where_each_process_has_one(
    cards: list[bytes], linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, int, bytes]] = []

    class Links:
        aside = None

        def __init__(self, *where: Any) -> None:
            made.append(where)

        @staticmethod
        def is_there() -> bool:
            return True

        @staticmethod
        def new_key() -> bytes:
            return b"key"

    monkeypatch.setattr(carriers, "DeviceLinks", Links)
    none, two = np.zeros((0, 2), np.int64), np.array([[0, 2]])
    for rank in range(2):
        alike, device = Alike(rank, cards), HostDevice()
        for _ in range(2):  # the second exchange has the links of the first
            found = carriers.transport_of(device, alike, [none, two], [0, 3], 5)
            assert isinstance(found, carriers.NcclTransport if linked else carriers.HostTransport)
            assert found.host_waits != linked
            assert found.name.startswith(
                "by NCCL: the cards are in" if linked else "by way of the hosts: process"
            )
    assert made == ([(2, 0, b"key"), (2, 1, b"key")] if linked else [])


# ------------------------------------------------------------------ room


def part() -> int:
    """The part that the thread works for; the first one is the calling thread's."""
    return int(threading.current_thread().name.partition("part ")[2] or 0)


def test_f14_what_finds_no_room_in_one_process_is_refused_in_all() -> None:
    def run(alike: Communicator) -> str:
        def make() -> int:
            if alike.rank:
                raise MemoryError(f"{8 * alike.rank} bytes are free")
            return 1

        with pytest.raises(MemoryError) as found:
            alike.with_room(make)
        assert alike.with_room(lambda: alike.rank) == alike.rank
        return str(found.value)

    assert in_threads(3, run) == ["process 1: 8 bytes are free"] * 3


@pytest.mark.parametrize("case", ["few", "steps", "pieces", "none"])
def test_f14_cards_with_little_memory(
    case: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    (prop,) = resolve_properties(parse_properties('R{"throughput"}=? [ S ]'), model.source).properties
    wanted = Checker(model, CheckOptions()).answer(prop)
    free, lean, begin = {1: 1 << 40}, list[tuple[int, bool]](), BiasIteration.begin
    own_room = LowMemoryAverage.__post_init__

    def made(self: LowMemoryAverage) -> None:
        lean.append((part(), type(self) is DampedAverage))
        own_room(self)

    def begun(self: BiasIteration) -> None:
        if case == "pieces" and part() == 1:
            raise MemoryError("memory is in pieces")
        begin(self)

    def answered(own: SymbolicModel) -> Answer:
        if own.communicator.rank == 1 and case != "pieces":
            free[1] = 8 * own.index.size * {"few": LEAN_VECTORS, "steps": 3, "none": 2}[case]
        return Checker(own, CheckOptions(backend="gpu")).answer(prop)

    monkeypatch.setattr(HostDevice, "free_bytes", lambda self: free.get(part(), 1 << 40))
    for name in ("hybrid.matrix.gpu.build.check_memory", "hybrid.matrix.gpu.repeated_steps.check_memory"):
        monkeypatch.setattr(name, lambda *_, **__: None)
    monkeypatch.setattr(LowMemoryAverage, "__post_init__", made)
    monkeypatch.setattr(BiasIteration, "begin", begun)
    monkeypatch.setattr(AverageReward, "_preconditioner", lambda *_: None)
    owners = dealt(model, 3, rng)
    if case == "none":
        needs = (
            r"process 1: a solution with 3 vectors of \d+ elements needs \d+ bytes on .*, \d+ are free; .*, "
            r"or \d such cards \(ranks\)"
        )
        with device_of("host"), pytest.raises(MemoryError, match=needs):
            in_parts(model, 3, answered, owners)
    else:
        with device_of("host"):
            found = in_parts(model, 3, answered, owners)
        assert found.error is None and agree(wanted, found)
        assert found.statistics.backend == "gpu"
    tried = {"steps": [False, True], "none": []}.get(case, [False])
    assert sorted(lean) == [(number, by_steps) for number in range(3) for by_steps in tried]


def test_f14_a_matrix_without_room_on_one_card_is_refused(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    model, _ = asked("walk")
    (asked_for,) = resolve_properties(parse_properties("P=? [ F<=10 x=6 ]"), model.source).properties
    monkeypatch.setattr(HostDevice, "free_bytes", lambda self: 0 if part() else 1 << 40)
    failures: list[str] = []

    def answered(own: SymbolicModel) -> None:
        with pytest.raises(MemoryError) as failure:
            Checker(own, CheckOptions(backend="gpu")).answer(asked_for)
        failures.append(str(failure.value))

    with device_of("host"):
        in_parts(model, 3, answered, dealt(model, 3, rng))
    assert failures == [failures[0]] * 3
    assert re.search(r"process [12]: .* bytes on .*, 0 are free", failures[0])


def test_kanban_14_on_eight_cards_of_80_gb() -> None:
    # Cells 1 and 4 by themselves, and 2 and 3 with as many tokens each; nothing is built.
    t, card = 14, 80 * 10**9
    states = math.comb(t + 3, 3) ** 2 * sum(math.comb(n + 2, 2) ** 2 for n in range(t + 1))
    assert states == 24_085_491_200
    own, received = states // 8, 7 * states // 64  # as `hybrid levels --parts 8` has it
    assert least_vector_bytes(own, own + received) < card < least_vector_bytes(2 * own, 2 * own + received)

    def run(alike: Communicator) -> list[str]:
        halo_and_operands = 8 * received + 2 * own
        space = DistributedDeviceSpace(
            HostDevice(card - halo_and_operands - (alike.rank == 3)), lambda *_: None, alike, False
        )
        space.reserve(2, own)  # damped steps: an estimate
        found = []
        for vectors in (AverageReward.vectors, LEAN_VECTORS, DAMPED_VECTORS):
            assert not space.has_room(vectors - 2, own)
            with pytest.raises(AgreedMemoryError) as refused:
                space.reserve(vectors - 2, own)
            found.append(str(refused.value))
        return found

    texts = in_threads(8, run)
    assert texts == [texts[0]] * 8
    for text, vectors, cards in zip(texts[0], (7, 6, 3), (26, 22, 11), strict=True):
        assert text.startswith(f"process 0: a solution with {vectors} vectors of {own} elements needs ")
        assert text.endswith(f", or {cards} such cards (ranks)")


def test_what_memory_ends_at_in_one_process_alone_passes() -> None:
    def run(alike: Communicator) -> str:
        with alike.if_room():
            alike.with_room(lambda: None if alike.rank else (_ for _ in ()).throw(MemoryError("few")))
        with pytest.raises(MemoryError, match="alone"), alike.if_room():
            raise MemoryError("alone")
        return "went on"

    assert in_threads(2, run) == ["went on"] * 2
    with Communicator().if_room():
        raise MemoryError("of one process")


# ------------------------------------------------------------------ why the hosts carry


class Carded(HostDevice):
    """A device with an identity, whose windows may fail."""

    def __init__(self, card: bytes, fails: str) -> None:
        super().__init__()
        self.card, self.fails = card, fails

    def card_identity(self) -> bytes:
        if self.fails == "tell":
            raise RuntimeError("driver too old")
        return self.card

    def window(self, words: int, elements: int) -> Any:
        if self.fails == "make":
            raise RuntimeError("memory of this card has no handle")
        return super().window(words, elements)

    def open_window(self, handle: bytes) -> Any:
        if self.fails == "open":
            raise RuntimeError("cards are not linked")
        return super().open_window(handle)


def carried(
    cards: Sequence[str], fails: str, nccl: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str]]:
    """Return how elements go, or why they do not, by process, and the warnings.

    `fails` says what process 1's card cannot do, and `nccl` whether it has NCCL, or one that is broken there
    ("broken") or in process 0 ("keyless").
    """
    none, ranks = np.zeros((0, 2), np.int64), threading.local()

    class Links:
        aside = None

        def __init__(self, size: int, rank: int, key: bytes) -> None:
            if nccl == "broken" and rank == 1:
                raise RuntimeError("no route")

        @staticmethod
        def is_there() -> bool:
            return nccl != "missing" or ranks.own != 1

        @staticmethod
        def new_key() -> bytes:
            if nccl == "keyless":
                raise RuntimeError("no interface")
            return b"key"

    monkeypatch.setattr(carriers, "DeviceLinks", Links)

    def run(alike: Communicator) -> str:
        ranks.own, alike.carries = alike.rank, True
        device = Carded(cards[alike.rank].encode(), fails if alike.rank == 1 else "")
        try:
            return carriers.transport_of(device, alike, [none] * alike.size, [0] * alike.size, 5).name
        except OptionError as refused:
            return f"refused: {refused}"

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        names = in_threads(len(cards), run)
    return names, [text for w in told if "which is slow" in (text := str(w.message))]


@pytest.mark.parametrize(
    ("cards", "fails", "nccl", "reason", "warned"),
    [
        ("ab", "make", "missing", "memory of this card has no handle; process 1 has no NCCL", True),
        ("ab", "open", "missing", "process 1: cards are not linked; process 1 has no NCCL", True),
        (
            *("ab", "open", "broken"),
            "cards are not linked; NCCL does not join the cards: process 1: no route",
            True,
        ),
        ("ab", "open", "keyless", "cards are not linked; NCCL makes no communicator: no interface", True),
        ("aba", "", "there", "processes 0 and 2 share a card", True),
        ("aa", "", "there", "processes 0 and 1 share a card", False),
        ("abc", "tell", "there", "process 1 cannot tell its card from others: driver too old", True),
        (["a", ""], "", "there", "process 1 has no card that others could reach", False),
    ],
)
def test_f13_the_hosts_carry_for_a_reason_that_all_tell(
    cards: Sequence[str], fails: str, nccl: str, reason: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, told = carried(cards, fails, nccl, monkeypatch)
    assert set(names) == {names[0]}
    assert names[0].startswith("by way of the hosts: ")
    assert names[0].endswith(reason)
    assert told == [
        f"elements go from card to card by way of the hosts, which is slow: {names[0][21:]}"
    ] * int(warned)


@pytest.mark.parametrize(
    ("forced", "fails", "nccl", "way"),
    [
        ("", "", "there", "straight to other cards"),
        ("straight", "", "missing", "straight to other cards"),
        ("nccl", "", "there", "by NCCL: HYBRID_CARRIER=nccl"),
        ("hosts", "", "there", "by way of the hosts: HYBRID_CARRIER=hosts"),
        ("straight", "open", "there", "refused: HYBRID_CARRIER=straight: no such way between the cards: "),
        ("nccl", "", "missing", "refused: HYBRID_CARRIER=nccl: no such way between the cards: process 1 "),
        ("mpi", "", "there", "refused: HYBRID_CARRIER: expected straight, nccl or hosts, got 'mpi'"),
    ],
)
def test_a_way_is_forced_or_refused_in_all_processes(
    forced: str, fails: str, nccl: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_CARRIER", forced)
    names, told = carried("ab", fails, nccl, monkeypatch)
    assert names[0] == names[1] and names[0].startswith(way) and told == []


def test_processes_with_different_ways_in_their_environments_are_refused() -> None:
    class Other(Communicator):
        size, carries = 2, True

        def gather_bytes(self, own: bytes) -> list[bytes]:
            return [own, b"nccl"]

    with pytest.raises(OptionError, match=r"HYBRID_CARRIER: processes have different values, '', 'nccl'"):
        carriers.transport_of(HostDevice(), Other(), [], [], 0)


def test_pieces_of_unused_blocks_are_no_free_memory() -> None:
    blocks = {"whole": 6 << 30, "pieces": 5 << 30}

    def free_all_blocks() -> None:
        blocks["whole"] = 0

    pool = SimpleNamespace(free_bytes=lambda: sum(blocks.values()), free_all_blocks=free_all_blocks)
    runtime = SimpleNamespace(memGetInfo=lambda: ((10 << 30) - blocks["whole"], 80 << 30))
    device = object.__new__(CudaDevice)
    device._cupy = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime), get_default_memory_pool=lambda: pool
    )
    assert device.free_bytes() == 10 << 30
    blocks.update(whole=1 << 20, pieces=1 << 10)  # little: nothing is given back
    assert device.free_bytes() == (10 << 30) + (1 << 10) and blocks["whole"] == 1 << 20


def test_numbers_of_values_split_no_unused_block(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    class Module:
        @staticmethod
        def get_default_memory_pool() -> Any:
            return SimpleNamespace(free_all_blocks=lambda: given.append(1))

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

    monkeypatch.setattr("gpu_kernels.runtime.coded._FRAGMENTS", 100)
    place = SimpleNamespace(xp=Module())
    for size, calls in ((99, 0), (100, 1)):
        found = compress(place, np.arange(size) % 3.0)
        assert found.bits == 8 and len(given) == calls


def test_cards_are_told_apart_by_their_pci_addresses_where_uuids_are_zeros() -> None:
    def identity(number: int) -> bytes:
        runtime = SimpleNamespace(
            getDeviceProperties=lambda _: {"uuid": bytes(16)},
            deviceGetPCIBusId=lambda n: f"0000:0{n}:00.0",
        )
        device = object.__new__(CudaDevice)
        device._cupy = SimpleNamespace(
            cuda=SimpleNamespace(runtime=runtime, Device=lambda: SimpleNamespace(id=number))
        )
        return device.card_identity()

    assert identity(1) == identity(1) != identity(2)
    assert identity(1).startswith(bytes(16)) and identity(1).endswith(b"0000:01:00.0")


# ------------------------------------------------------------------ windows


class Beside(HostDevice):
    """A device of which some can make no windows, or open none."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.fails, self.made, self.opened = fails, [], []

    def window(self, words: int, elements: int) -> Any:
        if self.fails == "make" and elements > 1:
            raise MemoryError("no room on one of them")
        self.made.append(super().window(words, elements))
        return self.made[-1]

    def open_window(self, handle: bytes) -> Any:
        if self.fails == "open":
            raise RuntimeError("cards are not linked")
        self.opened.append(super().open_window(handle))
        return self.opened[-1]


class Holder:
    """Something that needs windows."""


def test_windows_are_freed_once_no_process_needs_them() -> None:
    devices = [Beside() for _ in range(3)]

    def run(alike: Communicator) -> None:
        device = devices[alike.rank]
        neighbours = Neighbours(device, alike)
        holders = [Holder() for _ in range(3)]
        for holder in holders:
            neighbours.open_windows(holder, 4)
        del holder
        assert [w.is_open for w in device.made] == [True] * 3
        holders[1] = Holder()
        if alike.rank == 2:
            holders[0] = Holder()  # the others need it still
        neighbours.open_windows(holders[1], 2)
        assert [w.is_open for w in device.made] == [True, False, True, True]
        assert [w.is_open for w in device.opened] == [True] * 2 + [False] * 2 + [True] * 4
        holders[0] = Holder()
        neighbours.open_windows(holders[0], 2)
        assert [w.is_open for w in device.made] == [False, False, True, True, True]

    in_threads(3, run)


@pytest.mark.parametrize("fails", ["make", "open"])
def test_windows_that_one_cannot_have_nobody_has(fails: str) -> None:
    devices = [Beside(), Beside(fails)]

    def run(alike: Communicator) -> str:
        neighbours, holder = Neighbours(devices[alike.rank], alike), Holder()
        with pytest.raises(MemoryError if fails == "make" else RuntimeError) as found:
            neighbours.open_windows(holder, 4)
        return str(found.value)

    wanted = "no room on one of them" if fails == "make" else "cards are not linked"
    assert in_threads(2, run) == [f"process 1: {wanted}"] * 2
    assert not any(window.is_open for device in devices for window in (*device.made, *device.opened))


def test_steps_by_windows_are_those_by_the_hosts(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    owners, ways = dealt(model, 3, rng), set()

    def results(own: SymbolicModel, direct: bool) -> list[list[float]]:
        alike, device = own.communicator, current_device()
        if direct:
            alike.links = joined_neighbours(device, alike) or False
        matrix = build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="gpu"))
        assert isinstance(matrix, DistributedMatrix)
        ways.add(matrix.halo.way)
        x = np.random.default_rng(own.communicator.rank).random(own.index.size)
        space = space_of(matrix)
        steps = space.system(np.full(len(x), 9.0), x).relaxation(0.8)
        pair = space.vector(x), space.xp.empty(len(x))
        steps.sweep(pair, 0, 20)
        steps.sweep(pair, 20, 10)
        return [pair[0].tolist(), space.read(steps.course)]

    monkeypatch.setattr(carriers, "PeerTransport", InTurns)
    with device_of("host"):
        plain, straight = (
            in_parts(model, 3, partial(results, direct=direct), owners) for direct in (False, True)
        )
    assert ways == {"by way of the hosts", "straight to other cards"}
    assert straight == plain

"""The launches of BiCGStab's recurrence against NumPy: sizes around the borders of blocks, ways to end."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import BiCGStabKernels, Device, compress
from gpu_kernels.krylov import krylov
from tests.gpu_kernels.devices import to_numpy

SIZES = (0, 1, 31, 33, 256, 257, 1000)
LIMIT, ORTHOGONAL = 1e-9, 1e-8
VECTORS = ("x", "r", "shadow", "p", "product_p", "product_r")
RHO, FIRST, NORM, ALPHA, OMEGA, BETA, AT_P, AT_R = range(8)
ARRIVED, BROKEN = 1, 2


class Case:
    """Kernels with vectors of random elements, and the same vectors on the host."""

    def __init__(
        self,
        device: Device,
        rng: np.random.Generator,
        size: int,
        bits: int,
        wide: bool,
        anchored: bool = False,
    ) -> None:
        self.anchor = size // 3 if anchored and size else None
        self.host = {name: rng.uniform(0.5, 1.5, size) for name in VECTORS}
        self.numbers = rng.uniform(0.5, 1.5, 8)
        self.diagonal = rng.uniform(1, 2, size) if bits == 64 else 1.0 + np.arange(size) % 3
        coded = compress(device, self.diagonal if bits else None)
        assert coded.bits == bits or size < 64
        if bits == 0:
            self.diagonal = np.ones(size)
        x = device.xp.asarray(self.host["x"].copy())
        self.kernels = BiCGStabKernels(device, x, coded, LIMIT, ORTHOGONAL, wide, self.anchor)
        for name in VECTORS:
            getattr(self.kernels, name)[...] = device.xp.asarray(self.host[name])
        self.kernels.numbers[...] = device.xp.asarray(self.numbers)
        self.kernels.status[0] = 0

    def anchored(self, name: str) -> float:
        """The element of a vector at the anchor."""
        return 0.0 if self.anchor is None else float(self.host[name][self.anchor])

    def kept(self, place: int, name: str) -> dict[int, float]:
        """What is kept of a vector, at its place among the numbers."""
        return {} if self.anchor is None else {place: self.anchored(name)}

    def image(self, name: str, at_anchor: float | None = None) -> np.ndarray:
        """A times p or r."""
        if at_anchor is None:
            at_anchor = self.anchored(name)
        elif self.anchor is None:
            at_anchor = 0.0
        return self.host[name] - (self.host[f"product_{name}"] - at_anchor) / self.diagonal

    def expect(self, status: list[int], numbers: dict[int, float], **vectors: np.ndarray) -> None:
        """Assert what has changed, and that nothing else has."""
        for name, before in self.host.items():
            found = to_numpy(getattr(self.kernels, name))
            if name in vectors:
                np.testing.assert_allclose(found, vectors[name], rtol=1e-13, atol=1e-14, err_msg=name)
            else:
                np.testing.assert_array_equal(found, before, err_msg=name)
        found = to_numpy(self.kernels.numbers)
        for place, before in enumerate(self.numbers):
            if place in numbers:
                assert found[place] == pytest.approx(numbers[place], rel=1e-12), place
            else:
                assert found[place] == before, place
        assert to_numpy(self.kernels.status).tolist() == status


@pytest.fixture(params=[0, 8, 64], ids=lambda bits: f"diagonal{bits}")
def bits(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[False, True], ids=["plain", "anchored"])
def anchored(request: pytest.FixtureRequest, bits: int) -> bool:
    if request.param and not bits:
        pytest.skip("an anchor's element comes in before the division, for which a diagonal is there")
    return bool(request.param)


@pytest.fixture(params=SIZES)
def case(
    request: pytest.FixtureRequest, device: Device, rng: np.random.Generator, bits: int, anchored: bool
) -> Case:
    return Case(device, rng, request.param, bits, request.param % 2 == 0, anchored)


def test_beginning_matches_numpy(case: Case) -> None:
    case.kernels.begin()
    r = case.host["r"] - case.host["x"] - case.anchored("x") / case.diagonal
    norm = float(np.linalg.norm(r))
    ended = ARRIVED if r.size == 0 else 0
    case.expect([ended, 0], {RHO: norm**2, FIRST: norm, NORM: norm}, r=r, shadow=r, p=r)


def test_alpha_matches_numpy(case: Case) -> None:
    case.kernels.find_alpha()
    along = float(case.host["shadow"] @ case.image("p"))
    if along == 0.0:
        case.expect([BROKEN, 1], case.kept(AT_P, "p"))
    else:
        case.expect([0, 1], {ALPHA: case.numbers[RHO] / along, **case.kept(AT_P, "p")})


def test_residual_is_shortened_as_numpy_does(case: Case) -> None:
    case.kernels.shorten_residual()
    case.expect([0, 0], {}, r=case.host["r"] - case.numbers[ALPHA] * case.image("p", case.numbers[AT_P]))


def test_omega_matches_numpy(case: Case) -> None:
    case.kernels.find_omega()
    t = case.image("r")
    omega = float(t @ case.host["r"] / (t @ t)) if t.size else 0.0
    case.expect([0, 0], {OMEGA: omega, **case.kept(AT_R, "r")})


def test_move_matches_numpy(case: Case) -> None:
    case.kernels.move_iterate()
    host, numbers = case.host, case.numbers
    x = host["x"] + numbers[ALPHA] * host["p"] + numbers[OMEGA] * host["r"]
    r = host["r"] - numbers[OMEGA] * case.image("r", numbers[AT_R])
    norm, rho = float(np.linalg.norm(r)), float(host["shadow"] @ r)
    beta = rho / numbers[RHO] * numbers[ALPHA] / numbers[OMEGA]
    case.expect([ARRIVED if r.size == 0 else 0, 0], {NORM: norm, RHO: rho, BETA: beta}, x=x, r=r)


def test_direction_is_turned_as_numpy_does(case: Case) -> None:
    case.kernels.turn_direction()
    p = case.host["p"] - case.numbers[OMEGA] * case.image("p", case.numbers[AT_P])
    case.expect([0, 0], {}, p=case.host["r"] + case.numbers[BETA] * p)


def all_but_the_beginning(kernels: BiCGStabKernels) -> None:
    kernels.find_alpha()
    kernels.shorten_residual()
    kernels.find_omega()
    kernels.move_iterate()
    kernels.turn_direction()


@pytest.mark.parametrize("ended", [ARRIVED, BROKEN])
def test_ended_recurrences_move_nothing(device: Device, rng: np.random.Generator, ended: int) -> None:
    case = Case(device, rng, 300, 8, wide=False)
    case.kernels.status[0] = ended
    all_but_the_beginning(case.kernels)
    case.expect([ended, 0], {})


def test_nothing_moves_before_a_beginning(device: Device) -> None:
    xp = device.xp
    kernels = BiCGStabKernels(device, xp.ones(3), compress(device, None), LIMIT, ORTHOGONAL)
    assert to_numpy(kernels.status).tolist() == [ARRIVED, 0]
    all_but_the_beginning(kernels)
    assert to_numpy(kernels.x).tolist() == [1.0] * 3
    assert to_numpy(kernels.status).tolist() == [ARRIVED, 0]
    assert not to_numpy(kernels.numbers).any()


@pytest.mark.parametrize("bits", [0])
@pytest.mark.parametrize("size", [1, 300])
@pytest.mark.parametrize(
    ("value", "status"), [(0.5 * LIMIT, ARRIVED), (2 * LIMIT, 0), (np.inf, BROKEN), (np.nan, BROKEN)]
)
def test_beginnings_that_are_ends(
    device: Device, rng: np.random.Generator, bits: int, size: int, value: float, status: int
) -> None:
    case = Case(device, rng, size, bits, wide=False)
    case.kernels.x[...] = 0.0
    case.kernels.r[...] = 0.0
    case.kernels.r[-1] = value
    case.kernels.begin()
    assert to_numpy(case.kernels.status).tolist() == [status, 0]
    np.testing.assert_allclose(to_numpy(case.kernels.numbers)[NORM], value, rtol=1e-15)


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("value", [0.0, np.inf, np.nan, 1e308])
def test_a_step_without_length_breaks_down(
    device: Device, rng: np.random.Generator, size: int, value: float
) -> None:
    case = Case(device, rng, size, 0, wide=False)
    # Products are zero here, so that v is p; 1e308 overflows when its products are added.
    case.kernels.product_p[...] = 0.0
    case.kernels.p[...] = value
    case.kernels.shadow[...] = 10.0
    case.kernels.find_alpha()
    assert to_numpy(case.kernels.status).tolist() == [BROKEN, 1]
    assert to_numpy(case.kernels.numbers)[ALPHA] == case.numbers[ALPHA]


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_omega_is_zero_where_t_has_no_length(
    device: Device, rng: np.random.Generator, size: int, value: float
) -> None:
    case = Case(device, rng, size, 0, wide=False)
    case.kernels.product_r[...] = case.kernels.r + value
    case.kernels.find_omega()
    assert to_numpy(case.kernels.numbers)[OMEGA] == 0.0
    assert to_numpy(case.kernels.status).tolist() == [0, 0]


ENDS = {
    "omega is zero": (0.0, [1.0, 1.0], [1.0, 1.0], BROKEN),
    "arrived although omega is zero": (0.0, [0.1 * LIMIT, 0.0], [0.0, 0.0], ARRIVED),
    "orthogonal": (1.0, [1.0, 0.0], [0.0, 1.0], BROKEN),
    "nearly orthogonal": (1.0, [1.0, 0.0], [0.9 * ORTHOGONAL, 1.0], BROKEN),
    "not quite orthogonal": (1.0, [1.0, 0.0], [1.1 * ORTHOGONAL, 1.0], 0),
    "an opposite residual goes on": (1.0, [1.0, 0.0], [-1.0, 0.0], 0),
    "arrived although orthogonal": (1.0, [0.1 * LIMIT, 0.0], [0.0, 1.0], ARRIVED),
    "no number": (1.0, [np.nan, 0.0], [1.0, 1.0], BROKEN),
    "an infinite number": (1.0, [np.inf, 0.0], [1.0, 1.0], BROKEN),
}


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("name", ENDS)
def test_ways_to_end(device: Device, rng: np.random.Generator, name: str, size: int) -> None:
    omega, residual, shadow, status = ENDS[name]
    case = Case(device, rng, size, 0, wide=False)
    kernels = case.kernels
    for vector, ends in ((kernels.r, residual), (kernels.shadow, shadow)):
        vector[...] = 0.0
        vector[:1], vector[-1:] = ends
    kernels.product_r[...] = kernels.r  # t is zero, and r stays as it is
    kernels.numbers[FIRST], kernels.numbers[OMEGA] = 1.0, omega
    with np.errstate(all="ignore"):
        kernels.move_iterate()
    assert to_numpy(kernels.status).tolist() == [status, 0]


@pytest.mark.parametrize("size", [768, 769, 2000])
def test_rows_beyond_the_grid_are_met(
    device: Device, rng: np.random.Generator, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(krylov, "_MOST_BLOCKS", 3)
    case = Case(device, rng, size, 8, wide=False)
    case.kernels.find_omega()
    t = case.image("r")
    case.expect([0, 0], {OMEGA: float(t @ case.host["r"] / (t @ t))})
    first = to_numpy(case.kernels.numbers).copy()
    # Every time the same bits, and blocks are counted anew.
    case.kernels.find_omega()
    np.testing.assert_array_equal(to_numpy(case.kernels.numbers), first)
    case.kernels.find_alpha()
    along = float(case.host["shadow"] @ case.image("p"))
    assert to_numpy(case.kernels.numbers)[ALPHA] == pytest.approx(case.numbers[RHO] / along, rel=1e-12)


def test_bad_operands_are_refused(device: Device) -> None:
    nothing = compress(device, None)
    with pytest.raises(ValueError, match="diagonal: expected 4 elements, got 5"):
        BiCGStabKernels(device, device.xp.ones(4), compress(device, np.ones(5)), LIMIT, ORTHOGONAL)
    with pytest.raises(TypeError, match="x: expected dtype float64"):
        BiCGStabKernels(device, device.xp.ones(4, np.float32), nothing, LIMIT, ORTHOGONAL)
    with pytest.raises(ValueError, match="x: expected a contiguous array"):
        BiCGStabKernels(device, device.xp.ones(8)[::2], nothing, LIMIT, ORTHOGONAL)

"""The launches of IDR(s)'s recurrence against NumPy: sizes around the borders of blocks, ways to end."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import numpy as np
import pytest

from gpu_kernels import Device, IDRKernels, compress
from gpu_kernels import krylov as idr
from hybrid.matrix.space.idr import Space
from hybrid.matrix.space.passes import DIRECTIONS, NumPyPasses
from tests.gpu_kernels.devices import to_numpy

SIZES = (1, 31, 257, 1000)
LIMIT, KAPPA, LOST, ORTHOGONAL = 1e-9, 0.7, 1e8, 1e-8
SHARES, TAKEN, OMEGA, NORM, GREATEST, FIRST = 0, 4, 8, 9, 10, 11
LEFT, IMAGES, BETAS, AT_ANCHOR = 12, 16, 32, 36
GOING, ARRIVED, BROKEN, NEW = 0, 1, 2, 3
PASSES = NumPyPasses()


class Case:
    """Kernels with random vectors and numbers, and the same vectors and numbers on the host."""

    def __init__(
        self,
        device: Device,
        rng: np.random.Generator,
        size: int,
        bits: int = 64,
        anchored: bool = False,
        weighed: bool = False,
        real: type = np.float64,
        directions: int = DIRECTIONS,
    ) -> None:
        self.real, self.directions = real, directions
        self.anchor = size // 3 if anchored else None
        self.host = {name: rng.uniform(0.5, 1.5, size) for name in ("x", "r", "t")}
        self.host |= {name: rng.uniform(0.5, 1.5, (directions, size)) for name in ("u", "g")}
        if directions == 1:
            self.host["shadow"] = rng.uniform(0.5, 1.5, size)
        for name in self.host.keys() - {"x"}:
            self.host[name] = self.host[name].astype(real).astype(np.float64)
        self.diagonal = rng.uniform(1, 2, size) if bits == 64 else 1.0 + np.arange(size) % 3
        coded = compress(device, self.diagonal if bits else None)
        assert coded.bits == bits or size < 64
        if bits == 0:
            self.diagonal = np.ones(size)
        self.weights = rng.uniform(0.5, 1.5, size) if weighed else None
        weights = None if self.weights is None else device.xp.asarray(self.weights.copy())
        x = device.xp.asarray(self.host["x"].copy())
        self.kernels = IDRKernels(
            device,
            x,
            coded,
            LIMIT,
            KAPPA,
            LOST,
            weights,
            size % 2 == 0,
            self.anchor,
            real,
            directions,
            ORTHOGONAL,
        )
        self.kernels.fresh[...] = device.xp.asarray(self.host["r"].copy())
        for name, vector in self.host.items():
            getattr(self.kernels, name)[...] = device.xp.asarray(vector.copy())
        self.space = Space(directions)
        self.space.begin(rng.uniform(0.5, 1.5, directions))
        self.space.omega = 0.8
        self.space._images += np.tril(rng.uniform(0.1, 0.5, (directions, directions)), -1)
        self.tell(device, rng.uniform(0.5, 1.5, directions - 1), rng.uniform(0.5, 1.5, directions))

    def tell(
        self, device: Device, taken: np.ndarray, betas: np.ndarray, k: int = 0, at_anchor: float = 0.0
    ) -> None:
        """Give the kernels the numbers of the space, of which direction k is next."""
        numbers, s = np.zeros(40), self.directions
        numbers[SHARES : SHARES + s], numbers[TAKEN : TAKEN + s - 1] = self.space.shares(k), taken
        numbers[[OMEGA, NORM, GREATEST, FIRST]] = self.space.omega, 1.0, 2.0, 1.5
        numbers[LEFT : LEFT + s], numbers[IMAGES : IMAGES + s * s] = (
            self.space.left,
            self.space._images.ravel(),
        )
        numbers[BETAS : BETAS + s], numbers[AT_ANCHOR] = betas, at_anchor
        self.kernels.numbers[...] = device.xp.asarray(numbers)
        self.kernels.status[0] = GOING

    def image(self, x: np.ndarray, product: np.ndarray) -> np.ndarray:
        """A times x, from the product."""
        return x - (product - (0.0 if self.anchor is None else x[self.anchor])) / self.diagonal

    def sums(self, x: np.ndarray, shadow: np.ndarray | None = None) -> np.ndarray:
        """Products of a vector with the shadow vectors, and with itself."""
        if self.directions > 1:
            return PASSES.shadow_sums(x, self.weights)
        return PASSES.step_sums(x, self.host["shadow"] if shadow is None else shadow, self.weights)[:2]

    def told(self, place: int, count: int | None = None) -> np.ndarray:
        """As many numbers as directions, or so many, from a place on."""
        return self.numbers()[place : place + (self.directions if count is None else count)]

    def within(self, rtol: float, atol: float = 0.0, cancelled: float = 1.0) -> dict[str, float]:
        """Tolerances: those for double precision, or what single precision leaves of some digits.

        So many times as much where a difference is that much less than what it is taken from.
        """
        if self.real is not np.float64:
            rtol, atol = 2e-4, 2e-5
        return {"rtol": cancelled * rtol, "atol": cancelled * atol}

    def numbers(self) -> np.ndarray:
        return np.asarray(to_numpy(self.kernels.numbers))

    def expect(self, status: list[int], **vectors: np.ndarray) -> None:
        """Assert what has become of the vectors, and that the others are as they were."""
        for name, before in self.host.items():
            found = to_numpy(getattr(self.kernels, name))
            if name in vectors:
                np.testing.assert_allclose(found, vectors[name], **self.within(1e-12, 1e-13), err_msg=name)
            else:
                np.testing.assert_array_equal(found, before, err_msg=name)
        assert to_numpy(self.kernels.status).tolist() == status


FORMS = [(0, False), (8, False), (64, False), (8, True), (64, True)]


@pytest.fixture(
    params=[
        *((*form, np.float64, DIRECTIONS) for form in FORMS),
        *((*form, np.float32, DIRECTIONS) for form in FORMS[-2:]),
        *((*form, np.float64, 1) for form in FORMS),
    ],
    ids=str,
)
def form(request: pytest.FixtureRequest) -> tuple[int, bool, type, int]:
    """Bits of the diagonal, whether there is an anchor, the precision, and the directions."""
    return request.param


@pytest.fixture(params=SIZES)
def case(
    request: pytest.FixtureRequest,
    device: Device,
    rng: np.random.Generator,
    form: tuple[int, bool, type, int],
) -> Case:
    bits, anchored, *others = form
    return Case(device, rng, request.param, bits, anchored, request.param in (31, 1000), *others)


@pytest.mark.parametrize("is_new", [True, False])
def test_beginning_matches_numpy(case: Case, is_new: bool) -> None:
    at_anchor = 0.0 if case.anchor is None else case.host["x"][case.anchor]
    r = case.host["r"] - case.host["x"] - at_anchor / case.diagonal
    *left, square = case.sums(r, r if is_new else None)
    case.kernels.begin(is_new)
    found = case.numbers()
    np.testing.assert_allclose(case.told(LEFT), left, **case.within(1e-11, 1e-12))
    assert found[NORM] == found[GREATEST] == pytest.approx(np.sqrt(square), rel=case.within(1e-12)["rtol"])
    if is_new:
        case.space.begin(np.array(left))
    case.space.left[...] = left
    assert found[FIRST] == (found[NORM] if is_new else 1.5)
    assert found[OMEGA] == (1.0 if is_new else 0.8)
    np.testing.assert_array_equal(case.told(IMAGES, case.directions**2), case.space._images.ravel())
    np.testing.assert_allclose(case.told(SHARES), case.space.shares(0), **case.within(1e-10, 1e-11))
    changed = {name: np.zeros_like(case.host[name]) for name in ("u", "g")} if is_new else {}
    if is_new and case.directions == 1:
        changed["shadow"] = r
    case.expect([GOING, 0], r=r, **changed)


def test_the_first_direction_matches_numpy(case: Case) -> None:
    u = case.host["u"].copy()
    PASSES.aim(0, case.space.shares(0), 0.8, case.host["r"], u, case.host["g"])
    case.kernels.aim()
    case.expect([GOING, 0], u=u)


def test_images_match_numpy(case: Case, device: Device, rng: np.random.Generator) -> None:
    begun, s = deepcopy(case.space), case.directions
    for k in range(s):
        case.space = deepcopy(begun)
        case.tell(device, rng.uniform(0.5, 1.5, s - 1), rng.uniform(0.5, 1.5, s))
        case.kernels.status[1] = 0
        g = case.host["g"].copy()
        g[k] = case.image(case.host["u"][k], g[k])
        sums = case.sums(g[k])[:-1]
        taken, beta = case.space.take(k, sums) or ([], 0.0)
        case.kernels.find_image(k)
        np.testing.assert_allclose(case.told(TAKEN, k), taken[:k], **case.within(1e-9, 1e-11))
        # The divisor of beta is what is left of a sum after the images before are taken out of it.
        cancelled = max(1.0, abs(sums[k] * beta / begun.left[k]))
        assert case.numbers()[BETAS + k] == pytest.approx(beta, rel=case.within(1e-8, 0.0, cancelled)["rtol"])
        at_anchor = 0.0 if case.anchor is None else case.host["u"][k][case.anchor]
        assert case.numbers()[AT_ANCHOR] == at_anchor
        within = partial(case.within, cancelled=cancelled)
        np.testing.assert_allclose(case.told(LEFT), case.space.left, **within(1e-8, 1e-9))
        images = case.told(IMAGES, s * s)
        np.testing.assert_allclose(images, case.space._images.ravel(), **within(1e-9, 1e-10))
        if k + 1 < s:
            shares = case.space.shares(k + 1)
            np.testing.assert_allclose(case.told(SHARES), shares, **within(1e-7, 1e-8))
        case.expect([GOING, 0])


def test_moves_along_directions_match_numpy(case: Case, device: Device, rng: np.random.Generator) -> None:
    s = case.directions
    for k in range(s):
        taken, betas = rng.uniform(0.5, 1.5, s - 1), rng.uniform(0.1, 0.5, s)
        following, is_last = min(k + 1, s - 1), k + 1 == s
        u, g, r, x = (case.host[name].copy() for name in ("u", "g", "r", "x"))
        case.tell(device, taken, betas, following, 0.0 if case.anchor is None else u[k][case.anchor])
        g[k] = case.image(u[k], g[k])
        for j in range(k):  # what the steps before would have moved
            x += betas[j] * u[j]
            r -= betas[j] * g[j]
        PASSES.settle(k, taken, betas, case.space.shares(following), 0.8, u, g, r, x)
        case.kernels.settle(k)
        moved = {"u": u, "g": g, **({"r": r, "x": x} if is_last else {})}
        case.expect([GOING, 0], **moved)
        for name in moved:
            getattr(case.kernels, name)[...] = device.xp.asarray(case.host[name].copy())


def test_the_step_along_the_residual_matches_numpy(case: Case) -> None:
    r, x = case.host["r"], case.host["x"]
    t = case.image(r, case.host["t"])
    assert case.space.step(*PASSES.step_sums(t, r, case.weights))
    case.kernels.find_omega()
    assert case.numbers()[OMEGA] == pytest.approx(case.space.omega, rel=case.within(1e-10)["rtol"])
    case.expect([GOING, 0])
    omega = case.numbers()[OMEGA]
    x, r = x + omega * r, r - omega * t
    *left, square = case.sums(r)
    case.kernels.move()
    found = case.numbers()
    np.testing.assert_allclose(case.told(LEFT), left, **case.within(1e-10, 1e-11))
    norm = float(np.sqrt(square))
    assert found[NORM] == pytest.approx(
        norm, rel=case.within(1e-11)["rtol"], abs=case.within(0.0, 1e-14)["atol"]
    )
    assert found[GREATEST] == max(2.0, found[NORM])
    case.space.left[...] = left
    np.testing.assert_allclose(case.told(SHARES), case.space.shares(0), **case.within(1e-9, 1e-10))
    case.expect([ARRIVED if found[NORM] < LIMIT else GOING, 1], x=x, r=r)


def test_a_cycle_that_has_ended_moves_nothing(device: Device, rng: np.random.Generator) -> None:
    for status, directions in ((ARRIVED, DIRECTIONS), (BROKEN, DIRECTIONS), (NEW, 1)):
        case = Case(device, rng, 40, directions=directions)
        case.kernels.status[0] = status
        before = case.numbers().tolist()
        case.kernels.aim()
        for k in range(directions):
            case.kernels.find_image(k)
            case.kernels.settle(k)
        case.kernels.find_omega()
        case.kernels.move()
        assert case.numbers().tolist() == before
        case.expect([status, 0])


@pytest.mark.parametrize(
    ("real", "directions"), [(np.float64, DIRECTIONS), (np.float32, DIRECTIONS), (np.float64, 1)]
)
def test_rows_that_blocks_come_to_in_several_turns(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, real: type, directions: int
) -> None:
    monkeypatch.setattr(idr, "_MOST_BLOCKS", 1)
    case = Case(device, rng, 1500, 8, True, real=real, directions=directions)
    u, g, r, x = (case.host[name].copy() for name in ("u", "g", "r", "x"))
    PASSES.aim(0, case.space.shares(0), 0.8, r, u, g)
    case.kernels.aim()
    case.expect([GOING, 0], u=u)
    taken, betas = rng.uniform(0.5, 1.5, directions - 1), rng.uniform(0.1, 0.5, directions)
    last = directions - 1
    case.tell(device, taken, betas, last, u[last][case.anchor])
    g[last] = case.image(u[last], g[last])
    for j in range(last):
        x += betas[j] * u[j]
        r -= betas[j] * g[j]
    PASSES.settle(last, taken, betas, betas, 0.8, u, g, r, x)
    case.kernels.settle(last)
    case.expect([GOING, 0], u=u, g=g, r=r, x=x)
    t = case.image(r, case.host["t"])
    case.kernels.find_omega()
    omega = case.numbers()[OMEGA]
    case.kernels.move()
    case.expect([GOING, 1], u=u, g=g, r=r - omega * t, x=x + omega * r)


BEGINNINGS = {0.0: ARRIVED, 1e-10: ARRIVED, 1e-8: GOING, 1e200: BROKEN, np.nan: BROKEN}


def test_ways_to_begin(device: Device, rng: np.random.Generator) -> None:
    for residual, status in BEGINNINGS.items():
        case = Case(device, rng, 40)
        case.kernels.x[3] = 0.0
        case.kernels.r[...] = case.kernels.x
        case.kernels.r[3] = residual
        case.kernels.begin(True)
        assert to_numpy(case.kernels.status).tolist() == [status, 0], residual


def test_ways_to_break_down(device: Device, rng: np.random.Generator) -> None:
    # An image that is zero, no number, infinite; a residual that is orthogonal to its image, or that grows.
    for value in (0.0, np.nan, 1e308):
        case = Case(device, rng, 40)
        case.kernels.u[0] = value
        case.kernels.g[0] = 0.0
        case.kernels.find_image(0)
        assert to_numpy(case.kernels.status).tolist() == [BROKEN, 1], value
    for value in (0.0, np.nan, 1e200):
        case = Case(device, rng, 40)
        case.kernels.r[...], case.kernels.t[...] = 1.0, 0.0
        case.kernels.r[5] = value
        case.kernels.t[...] = case.kernels.r * device.xp.asarray(case.diagonal) if value == 0.0 else 0.0
        case.kernels.find_omega()
        assert to_numpy(case.kernels.status).tolist() == [BROKEN, 1], value
    for first, status in ((1e-7, GOING), (1e-9, BROKEN)):
        case = Case(device, rng, 40)
        case.kernels.numbers[FIRST] = first
        case.kernels.t[...] = 0.0
        case.kernels.move()
        assert to_numpy(case.kernels.status).tolist() == [status, 1]


ENDS = {
    "orthogonal": ([1.0, 0.0], [0.0, 1.0], NEW),
    "nearly orthogonal": ([1.0, 0.0], [0.9 * ORTHOGONAL, 1.0], NEW),
    "not quite orthogonal": ([1.0, 0.0], [1.1 * ORTHOGONAL, 1.0], GOING),
    "an opposite residual goes on": ([1.0, 0.0], [-1.0, 0.0], GOING),
    "arrived although orthogonal": ([0.1 * LIMIT, 0.0], [0.0, 1.0], ARRIVED),
    "no number": ([np.nan, 0.0], [1.0, 1.0], BROKEN),
    "an infinite number": ([np.inf, 0.0], [1.0, 1.0], BROKEN),
}


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("name", ENDS)
def test_residuals_orthogonal_to_the_only_shadow(
    device: Device, rng: np.random.Generator, name: str, size: int
) -> None:
    residual, shadow, status = ENDS[name]
    case = Case(device, rng, size, 0, directions=1)
    kernels = case.kernels
    for vector, ends in ((kernels.r, residual), (kernels.shadow, shadow)):
        vector[...] = 0.0
        vector[:1], vector[-1:] = ends
    kernels.t[...] = kernels.r  # its image is zero, and r stays as it is
    kernels.numbers[FIRST] = 1.0
    with np.errstate(all="ignore"):
        kernels.move()
    assert to_numpy(kernels.status).tolist() == [status, 1]


@pytest.mark.parametrize("directions", [DIRECTIONS, 1])
def test_a_residual_that_has_arrived_needs_no_step(
    device: Device, rng: np.random.Generator, directions: int
) -> None:
    for value, status in ((0.0, ARRIVED), (0.9 * LIMIT, ARRIVED), (1.1 * LIMIT, BROKEN)):
        case = Case(device, rng, 40, 0, directions=directions)
        case.kernels.r[...] = 0.0
        case.kernels.r[7] = value
        case.kernels.t[...] = case.kernels.r  # its image is zero
        case.kernels.find_omega()
        assert to_numpy(case.kernels.status).tolist() == [status, 1]
        assert case.numbers()[NORM] == (pytest.approx(value, rel=1e-12) if status == ARRIVED else 1.0)


def test_small_cosines_make_omega_greater(device: Device, rng: np.random.Generator) -> None:
    case = Case(device, rng, 2, bits=0)
    for name, vector in (("r", [1.0, 0.0]), ("t", [0.5, -1.0])):
        getattr(case.kernels, name)[...] = device.xp.asarray(np.array(vector))
    case.kernels.find_omega()  # its image is (0.5, 1)
    cosine = 0.5 / np.sqrt(1.25)
    assert case.numbers()[OMEGA] == pytest.approx(0.5 / 1.25 * KAPPA / cosine, rel=case.within(1e-14)["rtol"])


def test_sums_meet_rows_beyond_the_grid(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idr, "_MOST_BLOCKS", 3)
    case = Case(device, rng, 2000)
    t = case.image(case.host["r"], case.host["t"])
    found = []
    for _ in range(2):
        # Every time the same bits, and blocks are counted anew.
        case.kernels.t[...] = device.xp.asarray(case.host["t"].copy())
        case.kernels.find_omega()
        found.append(case.numbers()[OMEGA])
    case.space.step(*PASSES.step_sums(t, case.host["r"], None))
    assert found[0] == found[1] == pytest.approx(case.space.omega, rel=case.within(1e-11)["rtol"])


def test_bad_operands_are_refused(device: Device) -> None:
    xp, ends = device.xp, (LIMIT, KAPPA, LOST)
    three = compress(device, np.ones(3))
    with pytest.raises(ValueError, match="diagonal: expected 4 elements, got 3"):
        IDRKernels(device, xp.ones(4), three, *ends)
    with pytest.raises(ValueError, match=r"weights: expected shape \(3,\)"):
        IDRKernels(device, xp.ones(3), three, *ends, xp.ones(4))
    for diagonal, anchor in ((three, 3), (compress(device, None), 0)):
        with pytest.raises(ValueError, match=f"anchor: expected a row below 3 .*, got {anchor}"):
            IDRKernels(device, xp.ones(3), diagonal, *ends, anchor=anchor)

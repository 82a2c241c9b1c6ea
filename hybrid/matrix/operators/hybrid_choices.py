"""Choices on hybrid matrices: one offset-labelled matrix a layer, all injected at one level."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arrays import few_values
from hybrid.base.operands import ArrivingVector
from hybrid.base.option_types import LevelOption, Representation
from hybrid.matrix.backends import Backend, CpuBackend, select_level
from hybrid.matrix.levels.curve import layer_curve
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix, operator_of
from hybrid.matrix.operators.inject import inject_transposed
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.base import Product
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import Array, VectorSpace
from mtbdd.base.communicator import Communicator
from mtbdd.base.records import Record
from mtbdd.base.sorting import sorted_values

if TYPE_CHECKING:
    from hybrid.matrix.backends import MatrixTable

Vector = NDArray[np.float64]


@functools.cache
def compiled_passes() -> Any:
    """Return `hybrid.matrix.cpu.choice_passes`, whose kernels are loaded on first use."""
    from hybrid.matrix.cpu import choice_passes

    return choice_passes


class EmptyMatrix:
    """Stands for the matrix of a system in which every choice leaves the unknown states for certain."""

    def __init__(self, size: int) -> None:
        self.shape = (size, size)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return zeros."""
        result = np.zeros(self.shape[0]) if out is None else out
        result[:] = 0.0
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Refuse: steps over choices are no relaxation steps."""
        raise NotImplementedError("a system without transitions has no relaxation steps")


# Reasons why a device does not fuse the layers of a decision process, and the fallback.

NOTHING_TO_MULTIPLY = "every choice leaves the unknown states at once: there is nothing to multiply"
"""The reason why such a system stays on the CPU in spite of the options."""

_SMALL_STATES = 1 << 16
"""Unknown states below which ``auto`` never takes the device."""


class Ineligible(Record):
    """A reason against a fused step.

    Attributes
    ----------
    reason : str
        In words.
    is_final : bool
        Whether it speaks against the device altogether, so that ``auto`` takes the CPU; else layers may still
        go one by one there.
    """

    reason: str
    is_final: bool

    def applied_to(self, engine: Backend) -> Backend:
        """Return the backend to take instead of the device, with the reason; other backends stay.

        Parameters
        ----------
        engine : Backend
            The backend chosen so far.
        """
        if engine.name != "gpu":
            return engine
        if self.is_final and engine.is_free:
            return CpuBackend(self.reason)
        return replace(engine, reason=f"{engine.reason}; layers one by one: {self.reason}")


def why_ineligible(engine: Backend, problem: ChoiceProblem) -> Ineligible | None:
    """Return why the layers are not held for a fused step, with a row for every unknown state in each.

    Parameters
    ----------
    engine : Backend
        The backend requested for matrices.
    problem : ChoiceProblem

    Returns
    -------
    Ineligible or None
        None if they are; the same in all processes that share the states.
    """
    if engine.name != "gpu":
        return Ineligible(engine.reason, True)
    size = int(problem.communicator.total([problem.size])[0])
    if size == 0:
        return Ineligible("no state is unknown", True)
    if engine.is_free and size < _SMALL_STATES:
        return Ineligible(
            f"{size} unknown states are too few for the GPU to be faster (below {_SMALL_STATES})", True
        )
    return None


def refusal_of_all(communicator: Communicator, own: Ineligible | None) -> Ineligible | None:
    """Return why the first process that refuses does so: then no process takes a fused step.

    Parameters
    ----------
    communicator : Communicator
    own : Ineligible or None
        Why this process refuses; None if it does not.
    """
    reason = communicator.first_text(None if own is None else own.reason)
    is_final = communicator.any(own is not None and own.is_final)
    return None if reason is None else Ineligible(reason, is_final)


# Rewards of the choices of a layer, coded by a dictionary where they have few values.


_CODES = 1 << 16
_SAMPLES = 1 << 12, 1 << 16, 1 << 20  # first elements, which show whether a vector has few values
_REPEATED = 16  # values that are met so often need no larger sample


def coded_gains(gain: Vector, factor: Vector | None) -> tuple[NDArray[Any] | None, Vector, Vector]:
    """Put pairs of a gain and a factor in a dictionary, if that is much shorter than they are.

    Parameters
    ----------
    gain : ndarray, shape (rows,), float64
        Without NaN.
    factor : ndarray, shape (rows,), float64, or None
        None is 1 everywhere.

    Returns
    -------
    codes : ndarray, shape (rows,), uint8 or uint16, or None
        None if the pairs are too many; gains and factors are then the vectors themselves.
    gains, factors : ndarray of float64
        By code, or by row; `factors` is empty without factors.

    Notes
    -----
    Time: O(rows log m) for m pairs while these are few, and O(rows log rows) at most.
    """
    limit = min(_CODES, max(16, len(gain) // 8))
    none = np.zeros(0)
    columns = [gain] if factor is None else [gain, factor]
    if all(_seems_few(column, limit) for column in columns):
        (gains, codes), *others = map(few_values, columns)
        factors = none
        for every, own in others:
            pairs, codes = few_values(codes.astype(np.int64) * len(every) + own)
            gains, factors = gains[pairs // len(every)], every[pairs % len(every)]
        if len(gains) <= limit:
            return codes.astype(np.uint8 if len(gains) <= 256 else np.uint16), gains, factors
    return None, np.ascontiguousarray(gain), none if factor is None else factor


def _seems_few(column: Vector, limit: int) -> bool:
    """Return whether the first elements leave it open that a dictionary of a vector's values pays."""
    for part in _SAMPLES:
        count = len(sorted_values(column[:part]))
        if count > limit or _REPEATED * count <= part:
            break
    return count <= limit


class LayerOperands(Record, eq=False):
    """One layer's operands where the vectors are.

    Attributes
    ----------
    layer : int
    matrix : HybridMatrix, DistributedMatrix or None
    multiply : callable or None
        Writes the product with the matrix, ``multiply(x, out)``, where it takes no other process.
    place : array or None
    codes : array, unsigned, or None
        None if every row has its own gain.
    gains, blank, factors : array, float64
        `blank` is `gains` with zeros in place of finite numbers; an empty `factors` stands for 1.
    rows : int
    product : array, float64
        Room for the product with the matrix, which all layers share; empty without one.
    """

    layer: int
    matrix: HybridMatrix | DistributedMatrix | None
    multiply: Callable[[Array, Array], object] | None
    place: Array | None
    codes: Array | None
    gains: Array
    blank: Array
    factors: Array
    rows: int
    product: Array

    def operand(self, values: Array) -> Array:
        """Return gains or factors row by row."""
        return values if self.codes is None else values[self.codes]


def hybrid_choices(
    layer_choices: list[LayerChoices],
    problem: ChoiceProblem,
    engine: Backend,
    level: LevelOption = "auto",
    representation: Representation = "row-types",
    refusal: Ineligible | None = None,
) -> HybridChoices:
    """Inject the matrices of all offers at one level, on one backend, which the largest of them chooses.

    Parameters
    ----------
    layer_choices, problem
        As for `HybridChoices`.
    engine : Backend
    level : str or int
        Its policy, or its number.
    representation : {"row-types", "tasks"}
    refusal : Ineligible, optional
        Why a device has not taken all layers fused; heeded in the choice of the backend.

    Raises
    ------
    ValueError
        If the level does not exist or cannot be used.

    Notes
    -----
    The level is the one that :func:`hybrid.matrix.levels.table.choose_level` finds on the matrices' common
    curve.
    """
    from mtbdd.offset.distributed import DistributedMTBDD

    if refusal is not None:
        engine = refusal.applied_to(engine)
    if problem.communicator.size > 1:
        engine = engine.because(engine.reason)  # no process changes over to the CPU by itself
    injected: dict[int, HybridMatrix | DistributedMatrix] = {}
    wanted = sorted((o for o in layer_choices if o.matrix is not None), key=lambda o: -_entries(o))
    first = wanted[0].matrix if wanted else None
    halo = engine.halo(first) if isinstance(first, DistributedMTBDD) else None
    for offer in wanted:
        if offer.matrix is not None and not offer.matrix.n_entries:
            injected[offer.layer] = operator_of(offer.matrix, None, engine, halo)
    wanted = [offer for offer in wanted if offer.layer not in injected]
    engine, held = problem.communicator.with_room(lambda: _held(wanted, engine, level, representation))
    if not wanted and engine.name == "gpu" and not injected:
        engine = CpuBackend(NOTHING_TO_MULTIPLY)
    for offer, matrix in zip(wanted, held, strict=True):
        injected[offer.layer] = operator_of(matrix.symbolic, matrix, engine, halo)
    return HybridChoices(layer_choices, injected, problem, engine)


def _held(
    wanted: Sequence[LayerChoices], engine: Backend, level: LevelOption, representation: Representation
) -> tuple[Backend, list[HybridMatrix]]:
    """Return the backend and the matrices of layers that have entries, their representations built."""
    matrices = [o.matrix for o in wanted if o.matrix is not None]
    if not matrices:
        return engine, []
    table: MatrixTable
    if representation == "tasks":
        from hybrid.matrix.levels.task_table import layer_tasks

        table = layer_tasks(matrices)
    else:
        table = layer_curve(matrices)
    apart: Sequence[MatrixTable] = table.apart
    engine = engine.admitted(apart[0])
    choice, holding = select_level(table, level, engine)
    products: Sequence[Product | None] = [None] * len(matrices) if holding is None else holding.products
    held = []
    for matrix, levels, product in zip(matrices, apart, products, strict=True):
        transposed = partial(inject_transposed, matrix, level, engine, representation=representation)
        held.append(HybridMatrix(matrix, levels, choice, engine, transposed, product).prepare())
    return engine, held


class HybridChoices(ChoiceOperator):
    """See `ChoiceOperator`.

    Parameters
    ----------
    layer_choices : list of LayerChoices
    injected : dict
        The matrix of every layer that has one.
    engine : Backend
        Theirs.
    problem : ChoiceProblem

    Attributes
    ----------
    layers : list of LayerOperands

    Notes
    -----
    A step is one product a layer, into one vector that all layers share, and one pass over it.  Gains are
    held by dictionary where they have few values: one or two bytes a row.
    """

    def __init__(
        self,
        layer_choices: list[LayerChoices],
        injected: dict[int, HybridMatrix | DistributedMatrix],
        problem: ChoiceProblem,
        engine: Backend,
    ) -> None:
        spaces = {layer: matrix.vector_space() for layer, matrix in injected.items()}
        space: VectorSpace = next(iter(spaces.values())) if spaces else _space_of_none(problem)
        super().__init__(problem, space)
        self.backend, self.backend_reason = engine.name, engine.reason
        self._injected, self._engine = injected, engine
        xp = space.xp
        most = max((len(o.gain) for o in layer_choices if o.layer in injected), default=0)
        product = xp.empty(most)
        self.layers = []
        for offer in layer_choices:
            codes, gains, factors = coded_gains(offer.gain, offer.factor)
            blank = np.where(np.isfinite(gains), 0.0, gains)
            self.layers.append(
                LayerOperands(
                    offer.layer,
                    injected.get(offer.layer),
                    _multiplication(injected.get(offer.layer), spaces.get(offer.layer)),
                    None if offer.place is None else xp.asarray(_narrow(offer.place)),
                    None if codes is None else xp.asarray(codes),
                    xp.asarray(gains),
                    xp.asarray(blank),
                    xp.asarray(factors),
                    len(offer.gain),
                    product[: len(offer.gain) if offer.layer in injected else 0],
                )
            )
        first = next((e.matrix for e in self.layers if e.matrix is not None), None)
        self.level = None if first is None else first.level
        self.storage = None if first is None else first.storage
        self.nbytes = sum(m.nbytes for m in injected.values())
        arrays = [a for e in self.layers for a in (e.place, e.codes, e.gains, e.factors)]
        self.operand_bytes = sum(int(a.nbytes) for a in arrays if a is not None)
        self._divided = next((e.matrix for e in self.layers if isinstance(e.matrix, DistributedMatrix)), None)
        self._compiled = engine.name == "cpu"
        self._no_policy = np.zeros(0, np.uint16)
        self._no_codes = np.zeros(0, np.uint8)

    def with_rewards(self, layer_choices: list[LayerChoices], problem: ChoiceProblem) -> HybridChoices:
        """Return the choices on the same matrices with other gains, groups or optimum."""
        return HybridChoices(layer_choices, self._injected, problem, self._engine)

    def layer_choices(self) -> list[LayerChoices]:
        """Return the choices of all layers, with the operands that are held here, on the host."""
        return [
            LayerChoices(
                own.layer,
                None if own.place is None else own.place.astype(np.int64),
                None if own.matrix is None else own.matrix.symbolic,
                own.operand(own.gains),
                own.operand(own.factors) if own.factors.size else None,
            )
            for own in self.layers
        ]

    # ------------------------------------------------------------------ steps

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        started = False
        with self._arriving(x) as arriving:
            for e in self.layers:
                if not started and e.place is not None:
                    out.fill(self.worst)
                    started = True
                product = self._multiplied(e, arriving)
                self._take(e, product, e.blank if plain else e.gains, policy, not started, out)
                started = True
        if not started:
            out.fill(self.worst)

    def _multiplied(self, e: LayerOperands, x: ArrivingVector) -> Array | None:
        """Return the product with a layer's matrix, in the shared vector."""
        if e.multiply is not None:
            e.multiply(x.own, e.product)
            return e.product
        return e.matrix.multiply_arriving(x, e.product) if isinstance(e.matrix, DistributedMatrix) else None

    def _arriving(self, x: Array) -> ArrivingVector:
        """Begin to receive what matrices of all layers need of other processes; the first one awaits it."""
        return ArrivingVector(x, x) if self._divided is None else self._divided.halo.exchange(x)

    def _take(
        self,
        e: LayerOperands,
        product: Array | None,
        gains: Array,
        policy: Array | None,
        first: bool,
        out: Array,
    ) -> None:
        """Take one layer's choices into account."""
        if not self._compiled:
            self._take_by_arrays(e, product, gains, policy, first, out)
            return
        codes = self._no_codes if e.codes is None else e.codes
        operands = (codes, e.codes is not None, gains, e.factors, len(e.factors) > 0)
        chosen = (self._no_policy if policy is None else policy, policy is not None, e.layer)
        order = (first, self.maximise) if e.place is None else (self.maximise,)
        compiled_passes().take(
            e.rows, e.place, e.product, product is not None, *operands, *order, *chosen, out
        )

    def _take_by_arrays(
        self,
        e: LayerOperands,
        product: Array | None,
        gains: Array,
        policy: Array | None,
        first: bool,
        out: Array,
    ) -> None:
        xp = self.space.xp
        value = self._values(e, product, gains)
        if policy is not None:
            chosen = policy if e.place is None else policy[e.place]
            value = xp.where(chosen == e.layer, value, self.worst)
        reduce = xp.maximum if self.maximise else xp.minimum
        if e.place is not None:
            out[e.place] = reduce(out[e.place], value)
        elif first:
            out[...] = value
        else:
            reduce(out, value, out=out)

    def _values(self, e: LayerOperands, product: Array | None, gains: Array) -> Array:
        """Return what a layer's choices are worth, row by row."""
        own = e.operand(gains)
        if product is None:
            return own
        with np.errstate(over="ignore", invalid="ignore"):
            if len(e.factors):
                product *= e.operand(e.factors)
            return product + own

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp = self.space.xp
        best, policy = xp.full(self.size, self.worst), xp.full(self.size, NO_CHOICE, dtype=np.uint16)
        with self._arriving(x) as arriving:
            for e in self.layers:
                value = self._values(e, self._multiplied(e, arriving), e.gains)
                rows = slice(None) if e.place is None else e.place
                before = best[rows]
                better = value > before if self.maximise else value < before
                best[rows] = xp.where(better, value, before)
                policy[rows] = xp.where(better, np.uint16(e.layer), policy[rows])
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        if self._compiled:
            self.changes = compiled_passes().finish_on_host(x, out, factor, shape)
        else:
            super()._finish(x, out, factor, shape)


def _multiplication(
    matrix: HybridMatrix | DistributedMatrix | None, space: VectorSpace | None
) -> Callable[[Array, Array], object] | None:
    """Return what writes the product with a layer's matrix; None where others take part in it."""
    if matrix is None or space is None or isinstance(matrix, DistributedMatrix):
        return None
    return matrix.product.multiply if isinstance(space, HostSpace) else space.multiply


def _space_of_none(problem: ChoiceProblem) -> VectorSpace:
    """Return the vector space of a system without a matrix."""
    from hybrid.matrix.space.distributed import DistributedHostSpace

    space = HostSpace(EmptyMatrix(problem.size))
    if problem.communicator.size == 1:
        return space
    return DistributedHostSpace(EmptyMatrix(problem.size), space.passes, problem.communicator)


def _entries(offer: LayerChoices) -> float:
    """Return a measure of a matrix's size: its rows and diagram nodes, or entries where these are held."""
    matrix = offer.matrix
    assert matrix is not None
    return 1e3 * matrix.n_rows + (sum(matrix.nodes) if matrix.entries is None else matrix.n_entries)


def _narrow(place: NDArray[np.int64]) -> NDArray[Any]:
    """Return places with as few bytes as they need."""
    return place.astype(np.uint32) if int(place.max(initial=0)) < 2**32 else place

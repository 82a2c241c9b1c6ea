"""Linear systems over a set of states: injection, solution between bounds, accounting."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import array_module
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.arrays import extremes, total
from hybrid.base.errors import NotConvergedError, PropertyError
from hybrid.base.state_values import StateValues
from hybrid.matrix.backends import FEW_EQUATIONS, TIMES_SWEPT, CpuBackend
from hybrid.matrix.cpu.csr import csr_of
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.rounding import Discount, step_slack
from hybrid.matrix.reference import OutgrownError, end_when_long
from hybrid.matrix.space.base import Clock, Solution, Status
from hybrid.matrix.space.bellman import DirectedSystem
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import OPERANDS
from mtbdd.base.communicator import AgreedMemoryError, Communicator
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.offset import SCALED_UNITS, OffsetMTBDD, row_entries
from mtbdd.offset.states import HOST, StateIndex, VectorPlace, all_finite, is_all, is_any

if TYPE_CHECKING:
    from hybrid.matrix.explicit.operators import ExplicitOperator
    from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows
    from hybrid.solvers.average_reward import AverageReward
    from hybrid.solvers.block_rows import BlockRows
    from hybrid.solvers.bounding import BoundingMethod

    Matrix = HybridMatrix | DistributedMatrix | ExplicitOperator

# Matrices in the representation that the options of a check choose, and the place of the vectors beside them.

_log = logging.getLogger(__name__)

_SMALL = 1 << 18
"""States below which a system goes to a device only on request."""

_SHORT = 1 << 28
"""Bytes of a vector for which a device has room at any time."""

_SET_UP_VECTORS = 3
"""Held at once while an average's rates and rewards are made: ones and row sums, or rewards and errors."""

_HOST_VECTORS = 3
"""Diagonal, right-hand side and solution, where they are on the host."""


def build_operator(
    matrix: OffsetMTBDD,
    options: CheckOptions,
    beside: bool = False,
    steps: float = 0.0,
    is_light: bool = False,
) -> Matrix:
    """Return the operator with its representation built, so that iterations are timed without set-up.

    `beside` says whether the vectors of the solution lie where the matrix does, and not on the host in any
    case, and `steps` how many products will follow, as far as that is known. If it `is_light`, NumPy may have
    it where entries are few, and raises OutgrownError once products are many. If there is no room for the
    matrix, or for the vectors that any method keeps on the host, that is reported as a MemoryError; in all
    processes that share it, if one of them has none.
    """
    from mtbdd.offset.distributed import DistributedMTBDD

    alone = None if isinstance(matrix, DistributedMTBDD) else matrix.n_rows
    is_light = is_light and alone is not None and options.begins_in_numpy(alone, matrix.n_entries)
    backend = options.matrix_backend(alone, steps, TIMES_SWEPT if is_light else 1)
    expects_room = not beside or backend.place is HOST
    if isinstance(matrix, DistributedMTBDD):

        def own() -> HybridMatrix | None:
            if expects_room or engine.place is HOST:
                _require_room(matrix)
            if not matrix.n_entries:
                return None
            return inject(matrix, options.level, engine, representation=options.representation).prepare()

        engine = backend.admitted_by_all(matrix)
        try:
            held = matrix.communicator.with_room(own)
        except AgreedMemoryError as failure:
            if not backend.is_free or engine.place is HOST:
                raise
            engine = CpuBackend(str(failure))
            held = matrix.communicator.with_room(own)
        found = DistributedMatrix(held, matrix, engine)
        if engine.name != backend.name:
            found.backend_reason += f"; {engine.reason}"
        return found
    if expects_room:
        _require_room(matrix)
    if options.engine == "explicit":
        from hybrid.matrix.explicit.operators import write_out

        written = write_out(matrix, backend.name, options.storage)
        written.backend_reason = backend.reason
        return written
    operator = inject(matrix, options.level, backend, representation=options.representation)
    if not expects_room and operator.place is HOST:
        _require_room(matrix)  # the device had none for it
    if is_light and matrix.n_rows > FEW_EQUATIONS:
        end_when_long(operator.product, matrix.n_entries)
    return operator.prepare()


def _require_room(matrix: OffsetMTBDD) -> None:
    """Refuse a system whose vectors do not fit on the host."""
    require_memory(
        8 * _HOST_VECTORS * matrix.n_rows,
        f"a system of {matrix.n_rows} equations, with {_HOST_VECTORS} vectors at least,",
        f"choose smaller constants, or {option('spill', 'DIR')}, which has them on a disk",
    )


def expected_place(options: CheckOptions, size: int) -> VectorPlace:
    """Return the probable place of vectors of a size, before the matrix is built."""
    backend = options.matrix_backend()
    return HOST if backend.is_free and size < _SMALL else backend.place


def recompute_on(
    vector: NDArray[np.float64], place: VectorPlace, make: Callable[[StateIndex], NDArray[np.float64]]
) -> Callable[[StateIndex], NDArray[np.float64]]:
    """Return a function that gives a vector over a set in the requested place, from a copy or recomputed.

    A device recomputes a long vector, rather than keep it beside a matrix that is built.
    """
    if place is HOST or vector.nbytes <= _SHORT:
        return lambda there: there.place.array(vector)
    return make


def operator_row_sums(matrix: Matrix) -> NDArray[np.float64]:
    """Return the sums of the rows where the matrix lies, shape (n_rows,)."""
    if isinstance(matrix, DistributedMatrix):
        return matrix.row_sums()
    sums: NDArray[np.float64] = matrix.multiply(matrix.place.xp.ones(matrix.shape[1]))
    return sums


# Vectors all of whose elements are equal.

_PART = 1 << 20  # elements compared together: bounds the temporary memory


def is_constant(communicator: Communicator, vector: NDArray[np.float64]) -> bool:
    """Return whether all elements are equal, those of other processes included.

    In parts: most vectors differ early, and some take gigabytes.
    """
    first = float(vector[0]) if vector.size else np.inf
    parts = (vector[begin : begin + _PART] for begin in range(0, vector.size, _PART))
    own = all(is_all(array_module(part).equal(part, first)) for part in parts)
    if communicator.size == 1:
        return own
    found = communicator.gather([float(own), first])
    values = found[:, 1][np.isfinite(found[:, 1])]
    return bool(found[:, 0].all() and (values == values[0]).all()) if values.size else True


def is_zero(communicator: Communicator, vector: NDArray[np.float64]) -> bool:
    """Return whether all elements are zero, those of other processes included."""
    least, most = extremes(vector)
    return not communicator.any(least < 0.0 or most > 0.0)


# Sums of the rows of a chain: the rates from states into a set, and those at which states are left.

Vector = NDArray[np.float64]


def flow_into(
    model: SymbolicModel,
    rows: StateIndex,
    columns: StateIndex,
    options: CheckOptions,
    work: SolveStatistics | None = None,
) -> Vector:
    """Return the total rate from every state of one set into another, shape (rows.size,), in its place.

    `work` takes the account where the product is the answer, and not a part of an equation.
    """
    if columns.total == 0:
        nothing: Vector = rows.place.xp.zeros(rows.size)
        return nothing
    matrix = build_operator(model.submatrix(rows, columns), options, beside=rows.place is not HOST)
    clock = Clock(None)
    flow: Vector = rows.place.array(operator_row_sums(matrix))
    if work is not None:
        work.note("steps", matrix, 1, clock.seconds, 16 * rows.size, is_product=True)
        work.products += 1
    return flow


class LeavingRates(NamedTuple):
    """The rate at which every state of a set is left for another state.

    Attributes
    ----------
    rates : ndarray of float64, shape (states of the set,)
        In the place of the set.
    units : float
        Relative error, in units of rounding, beyond that of sums of entries which no block is shared for.
    """

    rates: Vector
    units: float


def leaving_rates(model: SymbolicModel, within: StateIndex, options: CheckOptions) -> LeavingRates:
    """Return the rates at which the states of a set are left for others, in the set or not.

    These are the row sums without the diagonal.  Where a self-loop is most of a row, subtracting it would
    cancel the digits of the rest, so that the other entries are added up.
    """
    rates: Vector = model.exit_rates(within)
    if not model.has_self_loops(within):
        return LeavingRates(rates, 0.0)
    loops = model.self_loops(within)
    if model.communicator.any(is_any(loops > within.place.xp.multiply(0.5, rates))):
        beside = within.place is not HOST
        matrix = build_operator(model.submatrix(within, model.index, diagonal=False), options, beside)
        return moving_rates(matrix, within)
    rates -= loops
    return LeavingRates(rates, 0.0)


def moving_rates(matrix: Matrix, within: StateIndex) -> LeavingRates:
    """Return the rates at which the states of a set are left for the columns of a matrix without diagonal.

    Time: that of one product; nothing is added up on diagrams.
    """
    return LeavingRates(within.place.array(operator_row_sums(matrix)), SCALED_UNITS)


_SUMMED_AT_ONCE = 1 << 26  # elements added up together: bounds the temporary memory
_DISCOUNTING = 8.0  # units of rounding of the operations that bring a discount into a system


def solve_linear(
    model: SymbolicModel,
    maybe: StateIndex,
    b: Vector | Callable[[StateIndex], Vector],
    upper_bound: float | None,
    options: CheckOptions,
    work: SolveStatistics,
    what: str,
    losses: Vector | None = None,
    units: float = 0.0,
    discount: Discount | None = None,
    is_light: bool = True,
) -> StateValues:
    """Solve ``x = P x + b`` over a set of states from each of which the set is left almost surely.

    For CTMCs rates take the place of probabilities: every row is scaled by its exit rate.

    Parameters
    ----------
    b : ndarray of float64, shape (maybe.size,), or callable
        Right-hand side, scaled by the exit rate like the rows; of any sign.  A callable is given the set and
        returns the vector in the set's place.
    upper_bound : float, optional
        A bound on x known beforehand, and on the parts of it that gains and losses make.
    losses : ndarray of float64, shape (maybe.size,), optional
        Not negative, taken from b, which is not negative either: where both are sums, what cancels in their
        difference would take its digits along.
    units : float
        Relative error of b and of `losses` in units of rounding, beyond that of sums of matrix entries.
    discount : Discount, optional
        What P is multiplied with; the set need not be left then.
    is_light : bool
        Whether NumPy may try, see `build_operator`; not between checkpoints.

    Returns
    -------
    StateValues
        Over `maybe`, where the matrix lies; without bounds (NaN) if the method gives none.

    Raises
    ------
    NotConvergedError
    PropertyError
        Something is beyond doubles once it is divided by the discount.

    Notes
    -----
    Where the matrix lies on a device, so do all vectors.
    """
    entries = model.submatrix(maybe, maybe, diagonal=False)
    matrix = build_operator(entries, options, beside=True, is_light=is_light and work.checkpoint is None)
    there = maybe.at(matrix.place)
    place, xp = there.place, there.place.xp
    diagonal, shared = leaving_rates(model, there, options)
    given, own_losses = units, losses
    # lemma: entry-units, rounding
    units += shared
    gains: Vector = b(there) if callable(b) else place.array(b)
    losses = None if losses is None else place.array(losses)
    if discount is not None:
        diagonal, gains = _discounted(model, there, diagonal, gains, discount)
        # lemma: entry-units, rounding
        units += 2.0 * discount.units + _DISCOUNTING
    method: BoundingMethod | None = options.bounding_method()
    if method is None:
        solver = options.solver(steady=False)
        right = gains if losses is None else gains - losses
        start = np.broadcast_to(np.float64(0.0), (maybe.size,))
        solution = solver.solve(matrix, diagonal, right, start, work.following(maybe))
        _note(work, solver.name, solver.vectors, matrix, solution.iterations, solution.seconds)
        _refuse_infinite(what, solution, model.communicator)
        work.accept(what, solution)
        work.estimate(_next_change(matrix, diagonal, right, solution.values))
        work.products += 1
        return StateValues.exact(solution.values).without_bounds()
    if options.method == "auto":
        method = _in_device_block_rows(matrix, method)
        block_rows = _block_rows_of(matrix)
        if block_rows is not None:
            from hybrid.solvers.topological import Topological

            method = Topological(options.criterion, block_rows, method)
    slack = step_slack(matrix, row_entries(model.transitions)) + units * UNIT  # lemma: rounding

    # Gains and losses apart: bounds from below and above need right-hand sides without negative elements.
    if losses is None and model.communicator.any(extremes(gains)[0] < 0.0):
        gains, losses = xp.maximum(gains, 0.0), xp.maximum(-gains, 0.0)
    enclosed: list[BoundedSolution] = []
    for right in (gains,) if losses is None else (gains, losses):
        # Not held any longer than its solution: there may be another one.
        system = DirectedSystem(matrix, diagonal, right, slack, method.vectors)
        try:
            found = method.enclosed(system, upper_bound, work.following(maybe))
        except OutgrownError as many:
            _log.info("compiled kernels go on: %s", many)
            return solve_linear(
                model, maybe, b, upper_bound, options, work, what, own_losses, given, discount, False
            )
        name, vectors = found.solved_by or (method.name, method.vectors)
        _note(work, name, vectors + found.more_vectors, matrix, found.iterations, found.seconds)
        work.accept(what, found)
        enclosed.append(found)
    if losses is None:
        (only,) = enclosed
        return StateValues(only.values, only.lower, only.upper)
    gained, lost = enclosed
    # lemma: arithmetic
    return StateValues(
        gained.values - lost.values,
        xp.nextafter(gained.lower - lost.upper, -np.inf),
        xp.nextafter(gained.upper - lost.lower, np.inf),
    )


def _block_rows_of(matrix: Matrix) -> BlockRows | None:
    """Return the block rows of a matrix on the host that is written out, or whose groups promise a gain."""
    if csr_of(matrix) is not None:
        from hybrid.solvers.block_rows import SingleBlockRow

        return SingleBlockRow(matrix)
    found = _row_types(matrix)
    if found is None or matrix.place is not HOST:
        return None
    from hybrid.matrix.operators.matrix_block_rows import MatrixBlockRows

    return MatrixBlockRows.where_they_pay(*found)


def _in_device_block_rows(matrix: Matrix, method: BoundingMethod) -> BoundingMethod:
    """Return the method, of a matrix on a device with the device's block rows."""
    from hybrid.solvers.optimistic import Optimistic

    found = _row_types(matrix)
    if found is None or matrix.place is HOST or not isinstance(method, Optimistic):
        return method
    return replace(method, block_rows=lambda: _block_rows_with_room(*found))


def _row_types(matrix: Matrix) -> tuple[RowTypes, int] | None:
    """Return the first row types and level, where SciPy and compiled code may solve block rows."""
    if not (isinstance(matrix, HybridMatrix) and isinstance(matrix.curve, LevelCurve)):
        return None
    if matrix.backend == "reference":
        return None
    types, level = matrix.curve.typed.plain, matrix.level
    return types, level if types.reaches(level) else len(types) - 1


def _block_rows_with_room(types: RowTypes, level: int) -> DeviceBlockRows | None:
    """Return the block rows of a matrix on a device; None where they promise nothing, or have no room."""
    from hybrid.matrix.operators.matrix_block_rows import device_block_rows

    try:
        return device_block_rows(types, level)
    except MemoryError:
        return None


def _discounted(
    model: SymbolicModel, within: StateIndex, leaving: Vector, b: Vector, discount: Discount
) -> tuple[Vector, Vector]:
    """Return the diagonal and the right-hand side of ``x = d P x + b``, divided by d as P is.

    The diagonal is ``e/d - p`` for a row sum e with the entry p on the diagonal: ``(e - p + (1 - d) p) / d``,
    which takes nothing away and so keeps its digits.
    """
    if model.has_self_loops(within):
        leaving = leaving + discount.rest * model.self_loops(within)
    with np.errstate(over="ignore"):
        diagonal, right = leaving / discount.factor, b / discount.factor
    if not model.communicator.all(all(all_finite(array_module(x), x) for x in (diagonal, right))):
        raise PropertyError(
            f"expected rewards that are less than 1.79e308, the largest double, when they are divided by the "
            f"discount {discount.factor!r}; give a greater discount, or smaller rewards"
        )
    return diagonal, right


def solve_gain(
    model: SymbolicModel,
    component: StateIndex,
    rewards: Callable[[StateIndex], Vector],
    method: AverageReward,
    options: CheckOptions,
    work: SolveStatistics,
    what: str,
    is_light: bool = True,
) -> tuple[float, float, float]:
    """Return the long-run average of rewards in a bottom component of two states or more, with its bounds.

    `rewards` is given the component and returns a vector, shape (component.size,), float64, in the
    component's place, per step or unit of time. Where the matrix lies on a device, so do all vectors.
    `is_light` as for `solve_linear`.
    """
    entries = model.submatrix(component, component, diagonal=False)
    matrix = build_operator(entries, options, beside=True, is_light=is_light and work.checkpoint is None)
    there = component.at(matrix.place)
    space_of(matrix).reserve(_SET_UP_VECTORS, matrix.shape[0])
    # Nothing leaves a bottom component: its matrix has all entries of its rows.
    diagonal, shared = moving_rates(matrix, there)
    has_room = method.has_room(matrix)
    if not has_room:
        diagonal = there.place.compressed(diagonal)  # before the rewards are made
    earned = rewards(there)
    if has_room and not method.has_room(matrix):
        has_room, diagonal = False, there.place.compressed(diagonal)
    if not has_room:
        earned = there.place.compressed(earned)
    slack = step_slack(matrix, row_entries(model.transitions)) + shared * UNIT  # lemma: gain, rounding
    try:
        found = method.solve(matrix, diagonal, earned, slack, work.following(component))
    except OutgrownError as many:
        _log.info("compiled kernels go on: %s", many)
        return solve_gain(model, component, rewards, method, options, work, what, False)
    work.synchronisations += found.synchronisations
    work.products += found.products
    _note(work, method.name, method.vectors, matrix, found.iterations, found.seconds, nbytes=found.nbytes)
    if found.status not in (Status.CONVERGED, Status.INTERRUPTED):
        work.settle_for(NotConvergedError(what, found.status, found.iterations, found.difference), True)
    return found.value, found.lower, found.upper


def solve_stationary(
    model: SymbolicModel,
    component: StateIndex,
    options: CheckOptions,
    work: SolveStatistics,
    what: str,
    beside: bool = False,
) -> tuple[Vector, StateIndex]:
    """Return the stationary distribution of a bottom component, and the component in the same place.

    The distribution, shape (component.size,), float64, sums to 1; it lies on the host, or `beside` the
    matrix.
    """
    from gpu_kernels import CodedVector

    if component.total == 1:
        return np.ones(component.size), component
    entries = model.submatrix(component, component, diagonal=False, transposed=True)
    matrix = build_operator(entries, options, beside)
    there = component.at(matrix.place if beside else HOST)
    diagonal = there.place.compressed(leaving_rates(model, there, options).rates)
    solver = options.solver(steady=True)
    start = np.broadcast_to(np.float64(1.0 / component.total), (component.size,))
    solution = solver.solve(matrix, diagonal, None, start, work.following(component))
    # A diagonal by dictionary stands in the place of both operands.
    is_coded = isinstance(diagonal, CodedVector)
    own = (-OPERANDS, diagonal.nbytes) if is_coded else (0, 0)
    _note(work, solver.name, solver.vectors, matrix, solution.iterations, solution.seconds, *own)
    _refuse_infinite(what, solution, model.communicator)
    work.accept(what, solution)
    work.estimate(_next_change(matrix, diagonal, None, solution.values))
    work.products += 1
    distribution: Vector = solution.values
    distribution /= model.communicator.total([total(distribution)])[0]
    return distribution, there


def _refuse_infinite(what: str, solution: Solution, communicator: Communicator) -> None:
    """Refuse an estimate that is no finite number, or whose elements add up to none."""
    values = solution.values
    with np.errstate(over="ignore", invalid="ignore"):
        parts = (values[begin : begin + _SUMMED_AT_ONCE] for begin in range(0, values.size, _SUMMED_AT_ONCE))
        own = sum(float(np.abs(part).sum()) for part in parts)
    if not math.isfinite(float(communicator.total([own])[0])):
        raise NotConvergedError(what, Status.DIVERGED, solution.iterations, solution.difference)


def _next_change(matrix: Matrix, diagonal: Vector, b: Vector | None, x: Vector) -> float:
    """Return the greatest change of an element in one more step from x, relative to the element."""
    space = space_of(matrix)
    steps = space.system(diagonal, b).relaxation()
    steps.sweep((space.operand(x), space.xp.empty(x.size)), 0, 1)
    return space.read(steps.changes)[1]


def _note(
    work: SolveStatistics,
    name: str,
    vectors: int,
    matrix: Matrix,
    iterations: int,
    seconds: float,
    more_bytes: int = 0,
    nbytes: int | None = None,
) -> None:
    """Add one run of a method's iterations to the account, with the vectors that it held."""
    if nbytes is None:
        nbytes = 8 * vectors * matrix.shape[0] + more_bytes
    rows = csr_of(matrix)
    spare = 0 if rows is None else 8 * rows.spare_vectors * matrix.shape[0]
    work.note(name, matrix, iterations, seconds, nbytes + spare)

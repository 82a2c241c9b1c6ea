"""Systems over choices: built in the form that the engine asks for, solved between bounds, accounted for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.step_analysis import StepAnalysis, StepErrors
from hybrid.base.check_options import ENCLOSING, METHODS, advised
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.backends import FEW_EQUATIONS, Backend, choose_backend
from hybrid.matrix.injection.row_types import row_type_sums
from hybrid.matrix.operators.hybrid_matrix import operator_of
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import (
    LayerChoices,
    LayerMatrix,
    RewardOf,
    choice_slack,
    choice_totals,
    group_states,
    layer_matrices,
    leaving_choices,
)
from hybrid.matrix.operators.rounding import Discount, far_from_underflow
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import (
    BOUND_VECTORS,
    ChoiceOperator,
    ChoiceProblem,
    ChoiceSteps,
    Quotient,
)
from hybrid.matrix.space.direct import FEW
from hybrid.matrix.space.vector_space import Array
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex

if TYPE_CHECKING:
    from gpu_kernels import ChoiceRows
    from hybrid.matrix.operators.array_choices import ArrayChoices
    from hybrid.matrix.operators.device_choices import DeviceChoices, DeviceRows
    from hybrid.matrix.operators.hybrid_choices import HybridChoices
    from hybrid.solvers.block_rows import BlockRows
    from hybrid.solvers.bounding import BoundingMethod
    from mtbdd.graph.components import EndComponents

    HeldChoices = HybridChoices | ArrayChoices | DeviceRows | DeviceChoices


# Probabilities that the choices of a layer enter a set: sums of rows, or one product.

Vector = NDArray[np.float64]


def choice_flow(
    model: SymbolicModel,
    layer: int,
    rows: StateIndex,
    columns: StateIndex,
    options: CheckOptions,
    weights: Vector | None = None,
    work: SolveStatistics | None = None,
) -> Vector:
    """Return the probability that the choices of a layer enter a set, shape (rows.size,).

    The states that are entered may have weights. On the host: sums of rows, or one product where weights are
    given or `work` takes the account, of a product that is the answer and not a part of a system.
    Probabilities that add up to 1 only roughly are scaled to do so.
    """
    from mtbdd.offset.distributed import DistributedMTBDD

    if columns.total == 0 or rows.total == 0:
        return np.zeros(rows.size)
    matrix = model.submatrix(rows, columns, layer=layer)
    flow = None
    if not isinstance(matrix, DistributedMTBDD):
        if matrix.n_entries == 0:
            return np.zeros(rows.size)
        if weights is None and work is None:
            flow = row_type_sums(matrix)
    if flow is None:
        flow = _product(matrix, options, weights, work)
    totals = choice_totals(model, layer, rows)
    return flow if totals is None else flow / totals


def _product(
    matrix: OffsetMTBDD, options: CheckOptions, weights: Vector | None, work: SolveStatistics | None
) -> Vector:
    """Return the product with weights, or with ones, on the host."""
    from mtbdd.offset.distributed import DistributedMTBDD

    engine = options.matrix_backend(None if isinstance(matrix, DistributedMTBDD) else matrix.n_rows)
    if engine.name == "gpu" or (options.backend == "auto" and engine.name != "reference"):
        reason = "single products over the layers of an MDP are made on the host"
        engine = choose_backend("cpu").because(reason)
    held = inject(matrix, backend=engine, representation=options.representation) if matrix.n_entries else None
    operator = operator_of(matrix, held, engine if held is None else held.engine)
    clock = Clock(None)
    flow = operator.row_sums() if weights is None else operator.multiply(weights)
    if work is not None:
        work.note("steps", operator, 1, clock.seconds, 16 * len(flow), is_product=True)
    return flow


_LEAST_STATES = 1 << 14  # below, components and what finds them take longer to load than steps to make
_FEWEST_STATES = 1 << 12  # below, a step takes as long to call as to make, in whatever form
_MOST_LISTED = 1 << 18  # transitions of a process, up to which equations of policies are solved at once
_LISTED = 10  # times as many of those are few as of others
_MOST_LOST = 2.0**-20  # greatest relative error of entries that are written out


def choice_operator(
    model: SymbolicModel,
    unknown: StateIndex,
    gain: RewardOf,
    maximise: bool,
    options: CheckOptions,
    allowed: Sequence[Node] | None = None,
    components: EndComponents | None = None,
    stop: Vector | None = None,
    discount: Discount | None = None,
    steps: float = 0.0,
) -> ChoiceOperator:
    """Return the operator of a system, its matrices built; see `ChoiceMatrices` and `ChoiceMatrices.system`.

    By default all choices are allowed. End components become one state each, without the choices that stay
    inside.
    """
    own = [layer.enabled for layer in model.layers] if allowed is None else allowed
    groups: Quotient | None = None
    if components is not None:
        own = leaving_choices(model, own, components)
        groups = group_states(model, unknown, components)
    stops = None if stop is None else np.isfinite(stop)
    matrices = ChoiceMatrices(model, unknown, own, options, stops, discount, steps)
    return matrices.system(gain, maximise, groups, stop)


class ChoiceMatrices:
    """The matrices of what may be chosen, laid out once in the form that the engine asks for.

    Systems over them differ in what choices are worth, in their groups, and in the optimum; the first one
    lays the matrices out, and they are used one after the other. `allowed` has for every layer the states
    whose choice in it is allowed; stopping is one choice more where `stops` says so, shape (unknown.size,).
    The products with the matrices are multiplied with the discount.  `steps` says how many will follow, as
    far as that is known.
    """

    def __init__(
        self,
        model: SymbolicModel,
        unknown: StateIndex,
        allowed: Sequence[Node],
        options: CheckOptions,
        stops: NDArray[np.bool_] | None = None,
        discount: Discount | None = None,
        steps: float = 0.0,
    ) -> None:
        self._model, self._unknown, self._allowed = model, unknown, allowed
        self._options, self._stops, self._discount, self._steps = options, stops, discount, steps
        self._layers: tuple[bool, list[LayerMatrix]] | None = None
        self._built: HeldChoices | None = None
        layers = range(len(model.layers))
        least = (float(model.layer_transitions(i).values.min(initial=1.0)) for i in layers)
        self._least = min(least, default=1.0)
        self._lost = 0.0
        self._slack = choice_slack(model)  # lemma: rounding
        if discount is not None:
            # lemma: underflow
            self._lost = _digits_lost(discount.factor * model.communicator.least(self._least))
            # lemma: entry-units, rounding
            self._slack += (discount.units + 4.0) * UNIT
        if options.engine == "explicit":
            if self._lost > _MOST_LOST:
                raise UnsupportedError(
                    "R: the discount times the least probability is too small a double to be written out; "
                    "ask the hybrid engine, or give a greater discount"
                )
            # lemma: underflow
            self._slack += self._lost

    def system(
        self, gain: RewardOf, maximise: bool, groups: Quotient | None, stop: Vector | None = None
    ) -> ChoiceOperator:
        """Return the operator of a system.

        For `gain` see `hybrid.matrix.operators.layer_choices.layer_choices_of`. `stop`, shape
        (unknown.size,), float64, has what stopping is worth where it is a choice, and an infinity elsewhere.
        """
        from hybrid.matrix.explicit.operators import MOST_WRITTEN

        stops = None if stop is None else np.isfinite(stop)
        if not np.array_equal(() if stops is None else stops, () if self._stops is None else self._stops):
            raise ValueError("stop: expected a number for each state in which stopping is a choice, no other")
        alike, least = self._model.communicator, self._least

        def noted(layer: int, rows: StateIndex) -> Vector:
            nonlocal least
            own = gain(layer, rows)
            least = min(least, float(own.min(initial=1.0, where=own > 0.0)))
            return own

        def offers(whole: bool = False) -> list[LayerChoices]:
            if self._layers is None or self._layers[0] != whole:
                own = layer_matrices(self._model, self._unknown, self._allowed, whole)
                self._layers = whole, own
            found = [own.choices(noted, maximise) for own in self._layers[1]]
            if self._discount is not None:
                found = [_discounted(offer, self._discount) for offer in found]
            return found if stop is None else [*found, _stopping(self._model, stop)]

        problem = ChoiceProblem(self._unknown.size, maximise, groups, self._slack, alike)
        if self._built is None:
            alone = problem.size if alike.size == 1 else None
            # Processes with fewer states are written out on request, and then compiled.
            is_large = self._model.n_states > FEW_EQUATIONS
            is_light = is_large and self._steps == 0.0 and self._model.n_transitions <= _MOST_LISTED
            backend = self._options.matrix_backend(alone, self._steps, _LISTED if is_light else 1)
            self._built = found = _built(offers, problem, self._options, backend)
        else:
            assert self._layers is not None
            found = self._built.with_rewards(offers(self._layers[0]), problem)
            found.backend_reason = self._built.backend_reason
        if found.write is None and alike.size == 1:
            from hybrid.matrix.operators.hybrid_choices import HybridChoices
            from hybrid.matrix.space.host import HostSpace

            assert self._layers is not None
            whole, own = self._layers
            if isinstance(found, HybridChoices) and isinstance(found.space, HostSpace):
                held = found.layer_choices
                found.write = lambda: _written(held(), problem.size)
            else:
                found.write = lambda: _written(offers(whole), problem.size)
            entries = sum(layer.matrix.n_entries for layer in own if layer.matrix is not None)
            found.writable = entries if entries <= MOST_WRITTEN else None
        found.loses_digits = self._lost > 0.0
        factor = 1.0 if self._discount is None else self._discount.factor
        found.least_entry = alike.least(least) * factor
        return found


def _built(
    offers: Callable[[bool], list[LayerChoices]],
    problem: ChoiceProblem,
    options: CheckOptions,
    engine: Backend,
) -> HeldChoices:
    """Return the operator of a system in the form that the engine asks for.

    `offers` returns the choices of all layers, with a row for every unknown state if these are requested.
    """
    # Imported here: chains start quicker without, and few choices of the host without a device's.
    from hybrid.matrix.operators.hybrid_choices import hybrid_choices, why_ineligible

    if options.engine == "explicit":
        layer_choices = offers(False)
        written: DeviceRows | ArrayChoices
        if engine.name == "gpu":
            from hybrid.matrix.operators.device_choices import device_rows

            written = device_rows(layer_choices, problem)
        else:
            from hybrid.matrix.operators.explicit_choices import write_choices, written_choices

            rows = write_choices(layer_choices, problem.size)
            written = written_choices(rows, problem, engine.name, engine.reason)
        same = written.backend == engine.name
        written.backend_reason = engine.reason if same else options.matrix_backend().reason
        return written
    refusal = why_ineligible(engine, problem)
    if refusal is None and options.representation == "row-types":
        from hybrid.matrix.operators.device_choices import DeviceChoices, fused_choices

        found = fused_choices(offers(True), problem, engine, options.level)
        if isinstance(found, DeviceChoices):
            return found
        refusal = found
    return hybrid_choices(offers(False), problem, engine, options.level, options.representation, refusal)


def _written(layer_choices: list[LayerChoices], size: int) -> ChoiceRows:
    """Return the choices of all layers written out on the host."""
    from hybrid.matrix.operators.explicit_choices import write_choices

    return write_choices(layer_choices, size)


def _stopping(model: SymbolicModel, stop: Vector) -> LayerChoices:
    """Return stopping as the choice of a layer more."""
    return LayerChoices(len(model.layers), None, None, stop, None)


def _digits_lost(least: float) -> float:
    """Return the relative error of doubles that are written down, the least one given: next to underflow.

    Lemma: underflow (docs/bounds.md).
    """
    # lemma: underflow
    if least >= 2.0**-1021:
        return 0.0
    # lemma: underflow
    return 2.0**-1074 / least if least > 0.0 else math.inf


def _discounted(offer: LayerChoices, discount: Discount) -> LayerChoices:
    """Return a layer's choices with the discount in their factors."""
    factor = np.ones(len(offer.gain)) if offer.factor is None else offer.factor
    return replace(offer, factor=discount.factor * factor)


def solve_choices(
    system: ChoiceOperator,
    upper_bound: float | None,
    options: CheckOptions,
    work: SolveStatistics,
    what: str,
    states: StateIndex | None = None,
) -> StateValues:
    """Solve ``x = opt over i of (A_i x + b_i)`` over the unknown states.

    There are no bounds (NaN) if the method gives none. All values are at most `upper_bound`, if that is known
    beforehand; `what` is the quantity in words, for messages; `states` are the unknown ones, for checkpoints.
    """
    from hybrid.solvers.iteration import ValueIteration

    check_method(options)
    sound = options.bounding_method()
    if sound is None:
        plain = ValueIteration(options.criterion)
        solution = plain.solve(system, work.following(states))
        note_steps(work, plain.name, plain.vectors, system, solution.iterations, solution.seconds)
        work.accept(what, solution)
        system.improve(system.space.vector(solution.values), system.zeros())
        work.estimate(system.space.read(system.changes)[1])
        work.products += 1
        return StateValues.exact(solution.values).without_bounds()
    method: BoundingMethod = sound
    own, block_rows = system, None
    if options.method == "auto" and not system.loses_digits and system.backend in ("cpu", "reference"):
        if system.backend == "cpu" and system.size >= _LEAST_STATES:
            block_rows = _block_rows_of(system, states)
        elif system.size >= (_FEWEST_STATES if system.backend == "cpu" else FEW):
            from hybrid.matrix.operators.explicit_choices import as_explicit_choices

            own = as_explicit_choices(system)
    if block_rows is not None:
        from hybrid.solvers.topological import Topological

        method = Topological(options.criterion, block_rows, sound)
    found = method.bounds(own, upper_bound, work.following(states))
    name, _ = found.solved_by or (method.name, method.vectors)
    vectors = BOUND_VECTORS + found.more_vectors
    note_steps(work, name, vectors, system, found.iterations, found.seconds)
    work.accept(what, found)
    return StateValues(found.values, found.lower, found.upper)


def _block_rows_of(system: ChoiceOperator, states: StateIndex | None) -> BlockRows | None:
    """Return the block rows of choices on the host, where they may promise a gain."""
    if states is None or system.problem.communicator.size > 1:
        return None
    from hybrid.matrix.operators.choice_block_rows import ChoiceBlockRows
    from hybrid.matrix.operators.explicit_choices import ExplicitChoices
    from hybrid.matrix.operators.hybrid_choices import HybridChoices
    from hybrid.solvers.block_rows import SingleBlockRow

    block_rows: BlockRows | None = None
    if isinstance(system, ExplicitChoices):
        block_rows = SingleBlockRow(system.rows)
    elif isinstance(system, HybridChoices):
        block_rows = ChoiceBlockRows.where_they_pay(system, states)
    return None if block_rows is None or block_rows.nbytes > free_memory_bytes() // 4 else block_rows


def check_method(options: CheckOptions) -> None:
    """Refuse methods for linear systems, by name."""
    if not METHODS[options.method].choices:
        bounding = advised((n for n in ENCLOSING if n != "auto" and METHODS[n].choices), ", ")
        raise UnsupportedError(
            f"the method {options.method} solves linear systems, and an MDP has minima and maxima over "
            f"choices: choose {bounding} (with bounds), or jacobi (value iteration, without)"
        )


class ChoiceWindows(StepAnalysis):
    """Values a number of steps before given ones, the best choice taken in every state.

    Parameters
    ----------
    system : ChoiceOperator
        Of a step; what choices are worth is not negative.
    states : StateIndex
        The unknown ones, for records.

    Lemma: steps (docs/bounds.md).
    """

    def __init__(
        self, system: ChoiceOperator, states: StateIndex, options: CheckOptions, work: SolveStatistics
    ) -> None:
        super().__init__(system.space, states, options.criterion, work)
        self._system, self._steps, self._stride = system, ChoiceSteps(system, 1.0), system.stride
        # lemma: steps
        self._errors = StepErrors(system.slack, system.slack, system.underflow, system.space.communicator)

    def _account(self, steps: int, seconds: float) -> None:
        from hybrid.solvers.iteration import ValueIteration

        note_steps(self._work, "steps", ValueIteration.vectors, self._system, steps, seconds)
        self._work.products += steps

    def _is_far(self, start: Vector, steps: int) -> bool:
        least = self._system.least_entry
        return far_from_underflow(np.append(start, least), least, steps)

    def _spread(self) -> Callable[[Array, Array], None]:
        def step(inside: Array, out: Array) -> None:
            self._system.improve(inside, out)
            self._work.products += 1

        return step


def note_steps(
    work: SolveStatistics, method: str, vectors: int, system: ChoiceOperator, iterations: int, seconds: float
) -> None:
    """Add one run of iterations to the account; bytes are sums over the layers."""
    base = 8 * vectors * system.size + system.operand_bytes
    work.synchronisations += system.space.synchronisations
    work.note(method, system, iterations, seconds, base)

"""Statistics of an answer: method, backend, iterations, bytes, residuals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from hybrid.base.errors import NotConvergedError
from hybrid.matrix.space.base import Criterion, Solution, Status
from hybrid.matrix.space.bounded_solution import TINY, BoundedSolution
from mtbdd.base.records import Record
from mtbdd.offset.states import StateIndex

if TYPE_CHECKING:
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint
    from hybrid.matrix.explicit.operators import ExplicitOperator
    from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
    from hybrid.matrix.space.choice_operator import ChoiceOperator
    from hybrid.solvers.diagram_system import DiagramSystem

# Savings and costs of a quotient.


class Reduction(Record):
    """Reduction of a model to its quotient before a property was answered.

    Attributes
    ----------
    states, transitions : int
        Of the model.
    blocks : int
        States of its quotient; so many at least where it was made from diagrams and the model was checked.
    block_transitions : int or None
        Transitions of its quotient; None if so little was saved that the model itself was checked.
    rounds : int
        Of refinement.
    seconds : float
        Wall time of listing, refining, proving and compressing, without compiling kernels at their first use.
    made_from : "diagrams" or "list"
        Of the matrix, or of all its transitions.
    """

    states: int
    transitions: int
    blocks: int
    block_transitions: int | None
    rounds: int
    seconds: float
    made_from: str

    def record(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values."""
        return asdict(self)


_WITHOUT_SYSTEMS = {"uniformisation": "windows of time", "steps": "numbers of steps"}
"""Names of computations whose method no option chooses."""


class SolveStatistics(Record, frozen=False):
    """Statistics of solving one property, summed over its linear systems.

    Attributes
    ----------
    method, backend : str or None
        Of the last and of the largest system; None while none had to be solved.
    level : int or None
        Injection level of the largest system; None where its matrix was written out.
    storage : str or None
        In which format it was written out; where it was not, "tasks", or None for row types.
    iterations : int
        Of all systems.
    seconds : float
        Wall time of the iterations.
    base_bytes, representation_bytes : int
        Iteration vectors, diagonal and right-hand side; matrix (MemB and MemR of the largest system).
    residual : float
        Greatest residual of any system.
    component_residual : float or None
        Of estimates, the greatest change, relative to itself, that one more step would make to an element of
        any system; None where no system was solved by a method without bounds.
    synchronisations : int
        How often the host waited for a device in iterations; 0 on the CPU.
    products : int
        With the matrices of the systems, of decision processes sweeps over all choices.
    disk_bytes : int or None
        That long arrays had on a disk at most, of all that was done; None where memory has them.
    progress : callable or None
        Called with (iteration, difference) while iterations run.
    engine_reason : str or None
        Why the engine was chosen; None where it was requested.
    checkpoint : Checkpoint or None
        What keeps iterations for runs to come.
    most_results : int or None
        Of operations on diagrams, after which vectors are no longer diagrams; None where they stay so.
    settles : bool
        Whether bounds count that are not as close as they should be when the iterations are spent.
    unfinished : NotConvergedError or None
        Of which system that was first.
    warnings : list of str
        What the answer comes with: how the question was understood, and what of the options does not apply.
    """

    method: str | None = None
    backend: str | None = None
    level: int | None = None
    storage: str | None = None
    iterations: int = 0
    seconds: float = 0.0
    base_bytes: int = 0
    representation_bytes: int = 0
    residual: float = 0.0
    component_residual: float | None = None
    synchronisations: int = 0
    products: int = 0
    disk_bytes: int | None = None
    progress: Callable[[int, float], None] | None = field(default=None, repr=False)
    checkpoint: Checkpoint | None = field(default=None, repr=False)
    engine_reason: str | None = field(default=None, repr=False)
    most_results: int | None = field(default=None, repr=False)
    settles: bool = False
    unfinished: NotConvergedError | None = field(default=None, repr=False)
    warnings: list[str] = field(default_factory=list, repr=False)
    _methods: dict[str, None] = field(default_factory=dict, repr=False)
    _reasons: dict[str, str] = field(default_factory=dict, repr=False)
    _only_products: bool = field(default=False, repr=False)

    def following(self, states: StateIndex | None) -> Callable[[int, float], None] | None:
        """Return what follows the next solution, whose vectors are over some states; its record as well.

        To be called once a solution, in the order in which they are made.
        """
        if self.checkpoint is None or states is None:
            return self.progress
        return self.checkpoint.following(self.progress, states)

    @property
    def backend_reason(self) -> str | None:
        """The reason for the backend of the systems, in words; None while none was solved.

        If other parts of the work were done elsewhere, it says so, and why.
        """
        if self.backend is None:
            return None
        others = [
            f"other parts on {name}: {why}" for name, why in self._reasons.items() if name != self.backend
        ]
        return "; ".join([self._reasons[self.backend], *others])

    def note(
        self,
        method: str,
        operator: HybridMatrix | DistributedMatrix | ExplicitOperator | ChoiceOperator | DiagramSystem,
        iterations: int,
        seconds: float,
        base_bytes: int,
        is_product: bool = False,
    ) -> None:
        """Account for one run of iterations, or for single products, which count where nothing else does."""
        if is_product and self.method is not None and not self._only_products:
            self._reasons.setdefault(operator.backend, operator.backend_reason)
            return
        if self._only_products and not is_product:
            self._methods = {}
            self.iterations, self.seconds, self.base_bytes, self.representation_bytes = 0, 0.0, 0, 0
        self._only_products = is_product
        self._methods[method] = None
        self.method = method
        self.iterations += iterations
        self.seconds += seconds
        largest = base_bytes + operator.nbytes >= self.base_bytes + self.representation_bytes
        if largest:
            self.backend, self.level, self.storage = operator.backend, operator.level, operator.storage
            self.base_bytes, self.representation_bytes = base_bytes, operator.nbytes
        if largest or operator.backend not in self._reasons:
            self._reasons[operator.backend] = operator.backend_reason

    def warn_of_method(self, asked: str) -> None:
        """Warn that a requested method does not apply to some of the work."""
        for name in self._methods:
            if asked != "auto" and name in _WITHOUT_SYSTEMS:
                self.warnings.append(
                    f"the method {asked} does not apply to {_WITHOUT_SYSTEMS[name]}, where no system of "
                    f"equations is solved: the answer comes by {name}"
                )

    def warn_of_width(self, lower: float | None, upper: float | None, criterion: Criterion) -> None:
        """Warn that the bounds of an answer are further apart than the precision requested."""
        if lower is None or upper is None or lower == upper or not math.isfinite(upper - lower):
            return
        if abs(upper) <= TINY or self.method == "exact":
            return
        size = 1.0 if criterion.absolute else max(abs(lower), abs(upper))
        width = (upper - lower) / size
        if width > criterion.epsilon:
            of = "" if criterion.absolute else " of the value"
            self.warnings.append(
                f"the bounds are {width:.2g}{of} apart, further than epsilon {criterion.epsilon:g}: rounding "
                "of numbers to doubles, or a difference of much greater numbers, keeps them from being closer"
            )

    def settle_for(self, error: NotConvergedError, is_bounded: bool) -> None:
        """Keep why a system was left with the bounds that it had; raise it where that is not enough."""
        if error.status is not Status.MAX_ITERATIONS or not (is_bounded and self.settles):
            raise error
        self.unfinished = self.unfinished or error

    def estimate(self, relative: float) -> None:
        """Keep the change that one more step would make to some element, relative to it."""
        self.component_residual = max(self.component_residual or 0.0, relative)

    def accept(self, what: str, solution: Solution) -> None:
        """Keep a solution's residual and count of synchronisations; refuse one that did not converge.

        One that was ended before is kept: it has bounds.  So is one whose iterations are spent, if `settles`.
        """
        if solution.status not in (Status.CONVERGED, Status.INTERRUPTED):
            error = NotConvergedError(what, solution.status, solution.iterations, solution.difference)
            self.settle_for(error, isinstance(solution, BoundedSolution))
        self.residual = max(self.residual, solution.residual)
        self.products += solution.products
        self.synchronisations += solution.synchronisations

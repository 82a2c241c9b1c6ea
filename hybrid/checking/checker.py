"""Answers to properties: each operator is sent to its algorithm.

A formula yields one number or truth value for every reachable state. An answer is that value in the initial
states, or what a filter makes of the values. Sets of states that operators define become decision diagrams
again, so that operators nest to any depth.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.operator_values import Scope
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.check_options import OPTIONS
from hybrid.base.communicators import failure_of_all
from hybrid.base.errors import (
    HybridError,
    NotConvergedError,
    NotExactError,
    PropertyError,
    UnknownError,
    UnsupportedError,
)
from hybrid.base.option_types import CheckEngine
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.base.units import counted
from hybrid.checking.answer import Answer, EveryState
from hybrid.checking.filters import OF_ENDS, Summary, summarise, summarise_ends
from hybrid.checking.formulas import LOGIC, FormulaChecker
from hybrid.checking.in_parts import failure_of, refuse_options
from hybrid.matrix.backends import FEW_EQUATIONS
from hybrid.properties.tree import (
    Filter,
    MultiObjective,
    Probability,
    Property,
    Quantified,
    Quantile,
    Reward,
    SteadyState,
)
from mtbdd.base.budget import BudgetError
from mtbdd.base.errors import option
from mtbdd.base.memory import check_stored, free_memory_bytes, stored_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Binary, Expression, Unary

if TYPE_CHECKING:
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint
    from hybrid.base.option_types import CheckEngine
    from hybrid.checking.multi_objective import MultiObjectiveResult


# Which engine suits a model: diagrams above blocks, the matrix written out, or vectors that are diagrams.

_NODES = 0.25
"""Nodes an entry from which on a diagram saves too little: one takes 16 bytes, an entry written out 12."""

_ENTRY_BYTES, _ROW_BYTES = 12, 8

_SHARE = 0.5
"""Of the free memory that a matrix written out may take."""


def saves_little(nodes: int, entries: int) -> bool:
    """Return whether the diagram of a matrix with so many entries is about as large as their list."""
    return nodes >= _NODES * entries


_VECTORS = 5
"""Arrays of all states that iterations hold, at least."""

_SMALL_VECTORS = 1 << 30
"""Bytes of them for which there is always room."""


def why_no_vectors(model: SymbolicModel, share: float) -> str | None:
    """Return why arrays of all states cannot be held in a share of the free memory; None where they can."""
    if not model.is_numbered:
        return "there are more than 2^62 states or transitions, too many to be numbered"
    needed = 8 * _VECTORS * model.n_states
    if needed <= _SMALL_VECTORS or needed <= share * free_memory_bytes():
        return None
    return f"vectors of {model.n_states:,} states take {needed / 1e9:.3g} GB, and too little memory is free"


_MANY_STATES = 1 << 20
"""States from which on vectors that are diagrams are tried although there is room for arrays."""

_STATES_A_NODE = 64
"""States a node of the matrix, at least, where they are tried."""

_STATES_A_RESULT = 4
"""States a result of an operation on diagrams that a trial may make: small beside what arrays take."""


def results_of_trial(options: CheckOptions, model: SymbolicModel) -> int | None:
    """Return how many results of operations a trial of vectors that are diagrams may take; None for no trial.

    The values of a few steps do not tell whether it pays: protocols of many steps have few for long. So a
    trial is the answer itself, which ends at a number of results that takes little beside arrays.
    """
    is_plain = options.level == OPTIONS["level"].default and options.storage == OPTIONS["storage"].default
    if model.n_states < _MANY_STATES or not (is_plain and may_be_symbolic(options, model)):
        return None
    nodes = sum(model.manager.size(layer.matrix.node) for layer in model.layers)
    if _STATES_A_NODE * nodes > model.n_states or options.matrix_backend().name != "cpu":
        return None
    return int(model.n_states // _STATES_A_RESULT)


def with_engine(
    options: CheckOptions, model: SymbolicModel, needs_arrays: bool = False
) -> tuple[CheckOptions, str | None]:
    """Return the options with an engine chosen where that was left open, and why, else None.

    Where there is no room for vectors these are diagrams, unless the request `needs_arrays`; where states are
    many beside nodes that is tried, see `results_of_trial`. Few states stay compressed, for NumPy solves
    those at once. Of more the diagram of the transitions decides: lists of states without structure have
    about as many nodes as transitions, and then blocks of them are no smaller than the matrix, and take
    longer to find. A decision process of few transitions is written out as well: that takes less time than
    to choose a level. Time: O(levels), once the model is numbered.
    """
    if options.engine != "auto":
        return options, None
    reason = why_no_vectors(model, _SHARE)
    if reason is not None and not needs_arrays and may_be_symbolic(options, model):
        return replace(options, engine="symbolic"), reason
    if not model.is_numbered:
        return replace(options, engine="hybrid"), "what was asked for besides is its alone"
    if not needs_arrays and results_of_trial(options, model) is not None:
        return replace(options, engine="symbolic"), f"{model.n_states:,} states are many beside the nodes"
    if options.backend == options.method == "auto" and _has_few_equations(options, model):
        few = f"NumPy solves {counted(model.n_states, 'state')} before compiled kernels are loaded"
        if model.n_states > FEW_EQUATIONS:
            few = f"NumPy begins with {counted(model.n_states, 'state')} of few transitions"
        return replace(options, engine="hybrid"), few
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    entries = sum(matrix.n_entries for matrix in matrices)
    nodes = sum(level.low.size for matrix in matrices for level in matrix.levels)
    ratio = nodes / max(entries, 1)
    told = f"the diagram has {ratio:.2g} nodes a transition"
    needed = _ENTRY_BYTES * entries + _ROW_BYTES * sum(matrix.n_rows for matrix in matrices)
    why = f"{told}, and saves little"
    if not saves_little(nodes, entries):
        if not _is_soon_written(options, model, entries):
            return replace(options, engine="hybrid"), f"{told}, and saves memory"
        why = f"{counted(entries, 'transition')} of choices are written out before a level is chosen"
    if options.backend == "reference" or options.representation != "row-types":
        return replace(options, engine="hybrid"), "what was asked for besides is its alone"
    if needed > _SHARE * free_memory_bytes():
        return replace(options, engine="hybrid"), f"{told}, but there is no room for a list of {entries:,}"
    return replace(options, engine="explicit"), why


def _has_few_equations(options: CheckOptions, model: SymbolicModel) -> bool:
    """Whether NumPy solves the equations before compiled kernels are loaded."""
    is_few = model.n_states <= FEW_EQUATIONS
    return is_few or not model.is_mdp and options.begins_in_numpy(model.n_states, model.n_transitions)


def _is_soon_written(options: CheckOptions, model: SymbolicModel, entries: int) -> bool:
    """Whether the choices of a process are written out in less time than a level takes to choose."""
    from hybrid.matrix.explicit.operators import MOST_WRITTEN

    is_plain = options.level == OPTIONS["level"].default and model.communicator.size == 1
    is_few = model.is_mdp and entries <= MOST_WRITTEN
    return is_few and is_plain and options.matrix_backend().name == "cpu"


def may_be_symbolic(options: CheckOptions, model: SymbolicModel) -> bool:
    """Whether no other request keeps vectors from being diagrams."""
    is_plain = options.backend in ("auto", "cpu") and options.representation == "row-types"
    is_bounding = options.method == "auto" or options.bounding_method() is not None
    return is_plain and is_bounding and not options.exact and model.communicator.size == 1


_log = logging.getLogger(__name__)

_GIVES_WAY = UnsupportedError, MemoryError, OverflowError, NotConvergedError
"""Failures of an engine that was chosen, after which another one goes on."""

_FINE = 1e-12  # precision of the second attempt at a comparison that the first one left unknown


class Checker(FormulaChecker):
    """Checks properties of one model.

    Of `progress` and `values` see `FormulaChecker`. With `scheduler` answers about an MDP come with one, with
    `witness` answers to A and E with a path that shows them, where there is one. A `checkpoint` keeps
    iterations for runs to come, and has those of an earlier one; not those of several objectives and of
    quantiles. Raises OptionError where the options do not go with the kind of the model.
    """

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        progress: Callable[[int, float], None] | None = None,
        scheduler: bool = False,
        values: bool = False,
        witness: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        refuse_options(model, options, scheduler, checkpoint is not None)
        self._needs_arrays = scheduler or values or checkpoint is not None
        self._is_auto = options.engine == "auto"
        options, self._engine_reason = with_engine(options, model, self._needs_arrays)
        is_tried = self._is_auto and options.engine == "symbolic" and why_no_vectors(model, _SHARE) is None
        self._results_of_trial = results_of_trial(options, model) if is_tried else None
        super().__init__(model, options, progress, values)
        self._checkpoint = checkpoint
        self._with_scheduler = scheduler
        self._with_witness = witness
        self._several: MultiObjectiveResult | None = None
        if options.exact:
            from hybrid.analysis.exact.formulas import ExactFormulas

            self._exact = ExactFormulas(model, self.states, asked=True)

    def answer(self, prop: Property) -> Answer:
        """Return the answer to a resolved property; faults of the property are part of the answer.

        A comparison that bounds leave unknown is tried again with a smaller epsilon, and on small models
        decided in rational numbers if that does not help. Only failures that concern the property become its
        error; running out of memory, interrupts and defects of the program pass through. An answer whose
        iteration was ended by a `ProgressMonitor` has the bounds reached; where nothing is known then, what
        ended it is raised.
        """
        _log.info("checking %s", prop.text)
        start = time.perf_counter()
        self._unproven = False
        self._work = SolveStatistics(
            progress=self._progress, engine_reason=self._engine_reason, warnings=list(prop.warnings)
        )
        self._work.most_results = self._results_of_trial
        is_search = isinstance(prop.formula, (MultiObjective, Quantile))
        self._work.settles = not (self._with_scheduler or is_search)
        if self._checkpoint is not None and not is_search:
            self._work.checkpoint = self._checkpoint.begin(prop.text)
        self._scheduled = self._scheduler = self._whole = self._several = None
        summary, shown, exact = None, None, None
        failure: HybridError | None = None
        chosen = self.options
        try:
            if prop.error is not None:
                raise prop.error
            if self._with_scheduler and not isinstance(prop.formula, MultiObjective):
                self._scheduled = self._schedulable(prop.formula)
            try:
                summary = self._summary(prop.formula)
            except (UnknownError, *_GIVES_WAY) as fault:
                summary = self._otherwise(prop.formula, fault)
            if self._exact is not None and not isinstance(summary.value, bool):
                exact = self._exact.answer(prop.formula)
            if self._with_witness and isinstance(prop.formula, Quantified):
                from hybrid.analysis.ctl import witness as witness_of

                shown = witness_of(self.model, prop.formula, self.states)
            check_stored()
        except BudgetError:
            raise
        except NotExactError as fault:
            failure = NotExactError(f"{fault}; leave {option('exact')} out for a value between bounds")
        except HybridError as fault:
            failure = fault
        except MemoryError as fault:
            failure = failure_of(fault)
        except OverflowError as fault:
            failure = UnsupportedError(f"{fault}; choose {option('engine', 'hybrid')}")
        except RecursionError:
            failure = PropertyError("expected a property nested less deeply; split it with labels")
        failure = failure_of_all(self.model.communicator, failure)
        if failure is not None:
            summary = None
        seconds = time.perf_counter() - start
        engine, work = self.options.engine, self._work
        self.options = chosen
        work.disk_bytes = stored_bytes()
        work.warn_of_method(self.options.method)
        stopped = self._stopped()
        if stopped is not None and not _is_decided(summary):
            if summary is None or self._unproven or not summary.proven or summary.lower is None:
                raise stopped
            return Answer(
                prop.name, prop.text, None, summary.lower, summary.upper, str(stopped), work, seconds, engine,
                interrupted=True,
            )  # fmt: skip
        if summary is not None and work.unfinished is not None and not _is_decided(summary):
            failure = work.unfinished
            if self._unproven or not summary.proven or not _is_range(summary):
                summary = None
            else:
                return Answer(
                    prop.name, prop.text, None, summary.lower, summary.upper, str(failure), work, seconds,
                    engine, fault=failure,
                )  # fmt: skip
        if summary is None:
            error = str(failure)
            return Answer(prop.name, prop.text, None, None, None, error, work, seconds, engine, fault=failure)
        bounds, ends = (summary.lower, summary.upper), summary.range
        if self._unproven:
            bounds, ends = (None, None), None if ends is None else ends.without_bounds()
        elif not (is_search or isinstance(summary.value, bool) or ends is not None):
            work.warn_of_width(summary.lower, summary.upper, self.options.criterion)
        whole, self._whole = self._whole, None
        again: Callable[[], StateValues | StateTruth]
        again = partial(_every_state, self.model, self.options, self._top or prop.formula)
        return Answer(
            prop.name, prop.text, summary.value, *bounds, None, work, seconds, engine,
            () if summary.listing is None else summary.listing, self._scheduler, shown,
            summary.proven and not self._unproven, states=EveryState(self.model, whole, again),
            several=self._several, exact=exact, range=ends, pairs=summary.pairs,
        )  # fmt: skip

    def _otherwise(self, formula: Expression, fault: Exception) -> Summary:
        """Return the answer's value in another way.

        What bounds leave unknown is decided by closer ones or rational numbers. Where the engine that was
        chosen has failed another one goes on.
        """
        tried = [self.options.engine] if self._work.most_results is None else []
        while True:
            try:
                if isinstance(fault, UnknownError):
                    return self._patient_summary(formula, fault)
            except _GIVES_WAY as again:
                fault = again
            other = self._other_engine(fault)
            if other is None or other in tried:
                raise fault
            why = f"{self._work.engine_reason}, but the engine {self.options.engine} failed: {fault}"
            _log.info("going on with the engine %s: %s", other, why)
            self._work.engine_reason = why
            self.options, self._work.most_results = replace(self.options, engine=other), None
            tried.append(other)
            try:
                return self._summary(formula)
            except (UnknownError, *_GIVES_WAY) as again:
                fault = again

    def _other_engine(self, fault: Exception) -> CheckEngine | None:
        """Return the engine to go on with behind the one that was chosen; None where there is none."""
        if not self._is_auto or isinstance(fault, HybridError) and isinstance(fault, MemoryError):
            return None
        if isinstance(fault, NotConvergedError) and self._work.most_results is None:
            return None
        if self.options.engine == "symbolic":
            if why_no_vectors(self.model, 1.0) is not None:
                return None
            return with_engine(replace(self.options, engine="auto"), self.model, True)[0].engine
        if self.options.engine == "explicit":
            return "hybrid"
        if isinstance(fault, UnsupportedError) or self._needs_arrays:
            return None
        return "symbolic" if may_be_symbolic(self.options, self.model) else None

    def _schedulable(self, formula: Expression) -> Expression:
        """Return the operator that a scheduler is for: the property itself, or what a filter is about."""
        operand = formula.operand if isinstance(formula, Filter) else formula
        if not self.model.is_mdp or not isinstance(operand, (Probability, Reward, SteadyState)):
            raise UnsupportedError(
                "a scheduler is given for P, S and R on an MDP, alone or in a filter: ask without one"
            )
        return operand

    def every_state(self, formula: Expression) -> StateValues | StateTruth:
        """Return a resolved formula's value in every reachable state, in index order.

        Raises HybridError where there is none in some state.
        """
        self._unproven = False
        with self._within(Scope.every(self.model)):
            found = self.evaluate(formula)
        return found.without_bounds() if self._unproven else found

    # ------------------------------------------------------------------ top level

    def _patient_summary(self, formula: Expression, unknown: UnknownError) -> Summary:
        """Return the answer's value from better bounds or exact numbers, where the first leave it unknown."""
        coarse = self.options
        if self._work.unfinished is not None:
            raise self._work.unfinished from None
        if coarse.exact or coarse.bounding_method() is None or self._stopped() is not None:
            raise unknown
        is_divided = self.model.communicator.size > 1
        from hybrid.analysis.exact.formulas import ExactFormulas  # most runs never need it

        try:
            epsilon = min(coarse.criterion.epsilon, _FINE)
            self.options = replace(coarse, epsilon=epsilon)
            self._exact = None if is_divided else ExactFormulas(self.model, self.states)
            return self._summary(formula)
        finally:
            self.options, self._exact = coarse, None

    def _summary(self, formula: Expression) -> Summary:
        """Return the answer's value: a filter's result, or the value in the initial states."""
        on_diagrams = self.options.engine == "symbolic" and not self.options.exact
        if on_diagrams and isinstance(formula, (MultiObjective, Quantile)):
            raise UnsupportedError(
                "multi(...) and quantile(...) are not answered by the engine symbolic: choose "
                f"{option('engine', 'hybrid')}"
            )
        if isinstance(formula, MultiObjective):
            if self.options.exact:
                raise NotExactError("several objectives are not answered in rational numbers")
            from hybrid.checking.multi_objective import multi_objective_result

            summary, self._several = multi_objective_result(
                self.model, formula, self.states, self.options, self._work, self._with_scheduler
            )
            return summary
        if isinstance(formula, Quantile):
            from hybrid.checking.quantiles import QuantilePairs, quantile

            asked = self.model, formula, self.states, self.options, self._work, self._exact
            return quantile(*asked) if len(formula.names) == 1 else QuantilePairs(*asked).found()
        operator, operand, states = "initial", formula, self.model.initial
        if isinstance(formula, Filter):
            operator, operand, states = formula.operator, formula.operand, self._filtered(formula)
        self._top, self._whole = operand, None
        looked_at = states | self.model.initial if operator in ("print", "printall") else states
        if self.is_wide(looked_at):
            return self._wide_summary(operator, operand, states)
        scope = Scope.of(self.model, looked_at)
        scope.index.require_numbers()
        with self._within(scope):
            found = self.evaluate(operand)
        return summarise(self.model, operator, found, states, scope.index)

    def _wide_summary(self, operator: str, operand: Expression, states: Node) -> Summary:
        """Return the least, the greatest or the range of the values of many states, from their diagrams."""
        is_connective = isinstance(operand, (Unary, Binary)) and operand.operator in ("!", *LOGIC)
        if operator in OF_ENDS and (is_connective or isinstance(operand, Quantified)):
            holds, false = self.states(operand), self.model.manager.false
            outcomes = [truth for truth, part in ((True, holds), (False, ~holds)) if states & part != false]
            return summarise_ends(self.model, operator, StateTruth(np.array(outcomes)))
        if operator not in OF_ENDS or not isinstance(operand, (Probability, Reward)):
            if self.options.engine != "symbolic":
                self.model.index.require_numbers()
            raise UnsupportedError(
                f"the engine symbolic answers filters over more than {self.MANY:,} states for P, R and their "
                f"connectives, by {', '.join(OF_ENDS[1:])}: choose {option('engine', 'hybrid')}"
            )
        from hybrid.analysis.on_diagrams import diagram_values

        scope = Scope.every(self.model)
        found = diagram_values(self.model, operand, self.states, self.options, self._work, scope)
        ends: StateValues | StateTruth = found.extremes(states)
        if operand.comparison is not None:
            assert isinstance(ends, StateValues)
            ends = self._against_bound(operand, operand.comparison, ends, scope)
        return summarise_ends(self.model, operator, ends)


def _every_state(
    model: SymbolicModel, options: CheckOptions, formula: Expression
) -> StateValues | StateTruth:
    """Return a resolved formula's value in every reachable state, found from the beginning."""
    found, failure = None, None
    try:
        found = Checker(model, options).every_state(formula)
    except BudgetError:
        raise
    except HybridError as fault:
        failure = fault
    failure = failure_of_all(model.communicator, failure)
    if failure is not None:
        raise failure
    assert found is not None
    return found


def _is_range(summary: Summary) -> bool:
    """Return whether both bounds are given, and finite."""
    bounds = summary.lower, summary.upper
    return summary.listing is None and all(b is not None and math.isfinite(b) for b in bounds)


def _is_decided(summary: Summary | None) -> bool:
    """Return whether a value is certain although an iteration was ended: a truth value, or equal bounds."""
    if summary is None or summary.value is None or summary.lower is None or not summary.proven:
        return False
    return summary.lower == summary.upper and summary.listing is None

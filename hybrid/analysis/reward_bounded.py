"""Until within a budget of reward, budget after budget: each is one system over the steps that earn nothing.

Let ``v_k`` be the probability to reach the target for at most k units of reward.  A step that earns r leads
from ``v_k`` to ``v_{k-r}``, so that ``v_k = opt over i of (A_i0 v_k + sum over r > 0 of A_ir v_{k-r})``, A_ir
the entries of layer i that earn r ([AHK03], [HJKQ20]).  Only the last values are kept, as many as the
greatest reward.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hybrid.analysis.choice_systems import note_steps
from hybrid.analysis.operator_values import OperatorQuery, until_form
from hybrid.analysis.precomputation import end_components, never_reached
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import until_probabilities
from hybrid.base.check_options import ENCLOSING, advised
from hybrid.base.errors import UnsupportedError
from hybrid.base.operands import Halo
from hybrid.base.state_values import StateValues
from hybrid.matrix.backends import Backend, choose_backend
from hybrid.matrix.explicit.operators import ExplicitOperator, write_out
from hybrid.matrix.operators.hybrid_choices import EmptyMatrix
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import choice_totals, group_states, leaving_choices
from hybrid.matrix.operators.rewarded_choices import BufferedProduct, RewardedChoices, RewardedLayer
from hybrid.matrix.operators.rounding import TINIEST
from hybrid.matrix.space.base import Clock, ProgressMonitor
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import BOUND_VECTORS, ChoiceProblem, Quotient
from hybrid.matrix.space.distributed import DistributedHostSpace
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import Array, VectorSpace
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_reward
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import Expression, Literal
from mtbdd.offset.convert import entry_units
from mtbdd.offset.distributed import DistributedMTBDD
from mtbdd.offset.offset import OffsetMTBDD, row_entries
from mtbdd.offset.states import StateIndex, index_states

# The systems of all budgets of a reward: matrices by reward, and what the graph decides without a bound.
#
# Unknown are the states that the graph does not decide without the bound.  No scheduler stays among them for
# ever without earning: for a minimum it would never reach the target, and such states are decided; for a
# maximum end components of steps that earn nothing are one state, their inner choices left out.  So every
# system has one solution, and where such steps form no cycle a few sweeps find it.

# Steps with a reward from unknown states: to unknown states, into the target, and elsewhere.

# lemma: rounding
_NEAR = 8.0 * UNIT  # rows that add up to 1 so closely are left as they are


@dataclass(frozen=True, eq=False)
class Flow:
    """Entries of one layer that earn one reward, from the unknown states.

    `inner` leads to unknown states, None if nowhere; `target`, shape (n,), float64, says how likely, or at
    which rate, into the target; `lost`, shape (n,), bool, whether to states that never reach it.
    """

    inner: BufferedProduct | None
    target: Array
    lost: Array


class FlowBuilder:
    """Makes the flows of one model, all on one backend."""

    def __init__(
        self, model: SymbolicModel, unknown: StateIndex, target: Node, options: CheckOptions
    ) -> None:
        self._model, self._unknown, self._options = model, unknown, options
        self._target = index_states(model.manager, target)
        self._outside = index_states(model.manager, model.reachable & ~target & ~unknown.states)
        self.engine: Backend = options.matrix_backend(unknown.size if model.communicator.size == 1 else None)
        if self.engine.name == "gpu" and options.backend == "auto":
            reason = "the many small systems of a bound on a reward are solved on the host unless asked for"
            self.engine = choose_backend("cpu").because(reason)

    def flows(self, matrices: Sequence[SymbolicMatrix]) -> list[Flow]:
        """Return the flows of a matrix a layer."""
        own = [matrix.only(self._unknown.states) for matrix in matrices]
        inner = self._model.numbered_together(
            [self._between(m, self._unknown) for m in own], [self._unknown] * len(own), self._unknown
        )
        halo = next((self.engine.halo(m) for m in inner if isinstance(m, DistributedMTBDD)), None)
        found = []
        for matrix, among in zip(own, inner, strict=True):
            held = BufferedProduct(self._operator(among, halo)) if _has_entries(among) else None
            target, outside = (self._sums(matrix, columns) for columns in (self._target, self._outside))
            found.append(Flow(held, target, outside > 0.0))
        return found

    def factors(self) -> list[Array | None]:
        """Return what rows of every layer are multiplied with to be probabilities; None is 1."""
        model, unknown = self._model, self._unknown
        if not model.is_mdp:
            totals = model.exit_rates(unknown)
            near = bool((np.abs(totals - 1.0) <= _NEAR).all())
            return [None if near else 1.0 / totals]
        found: list[Array | None] = []
        for number, layer in enumerate(model.layers):
            inside = layer.enabled & unknown.states
            sums = choice_totals(model, number, index_states(model.manager, inside))
            if sums is None:
                found.append(None)
                continue
            factor = np.ones(unknown.size)
            factor[model.indicator(inside, unknown)] = 1.0 / sums
            found.append(factor)
        return found

    def _sums(self, matrix: SymbolicMatrix, columns: StateIndex) -> Array:
        """Return the sum of every row over some columns; nothing is received for it."""
        if columns.total == 0:
            return np.zeros(self._unknown.size)
        part = self._model.numbered(self._between(matrix, columns), self._unknown, columns)
        return np.zeros(self._unknown.size) if part.n_entries == 0 else self._held(part).row_sums()

    def _between(self, matrix: SymbolicMatrix, columns: StateIndex) -> SymbolicMatrix:
        return matrix.only(self._model.manager.to_columns(columns.states))

    def _operator(
        self, matrix: OffsetMTBDD, halo: Halo | None
    ) -> HybridMatrix | DistributedMatrix | ExplicitOperator:
        """Return a matrix as an operator, together with other processes where they share the states."""
        if not isinstance(matrix, DistributedMTBDD):
            return self._held(matrix)
        held = self._held(matrix) if matrix.n_entries else None
        assert not isinstance(held, ExplicitOperator)
        return DistributedMatrix(held, matrix, self.engine, halo)

    def _held(self, matrix: OffsetMTBDD) -> HybridMatrix | ExplicitOperator:
        """Return the own rows of a matrix on the engine and backend of all."""
        options = self._options
        if options.engine == "explicit":
            written = write_out(matrix, self.engine.name, options.storage)
            written.backend_reason = self.engine.reason
            return written
        return inject(matrix, options.level, self.engine, representation=options.representation).prepare()


def _has_entries(matrix: OffsetMTBDD) -> bool:
    """Return whether a matrix has an entry, in the rows of any process."""
    return matrix.has_entries if isinstance(matrix, DistributedMTBDD) else matrix.n_entries > 0


_MOST_SWEEPS = 64  # that steps without reward may take where they form no cycle
_ROUNDINGS = 80  # units behind factors, gains and sums; see `layer_choices.choice_slack`


class BudgetSystem:
    """The matrices and choices that all budgets share.

    Attributes
    ----------
    states : Node
        The unknown ones.
    inside : ndarray, shape (n_states,), bool
        Where they are among all states.
    known : ndarray, shape (n_states,), float64
        Ones in the target.
    greatest, n_rewards : int
        The greatest reward in units, and how many there are.
    operator : RewardedChoices
        Steps that earn nothing, and as gains all others; None without unknown states.
    missing : RewardedChoices
        The same for what misses the target: its least is sought where the greatest of the other is.
    sweeps : int or None
        How many steps without reward lead all gains where they go; None if there may be any number.
    slack : float
        Bound on the relative error of one step, gains included.
    """

    def __init__(
        self,
        model: SymbolicModel,
        split: RewardSplit,
        safe: Node,
        target: Node,
        maximise: bool,
        options: CheckOptions,
    ) -> None:
        self._model, self._split = model, split
        self.states = safe & ~target & ~never_reached(model, safe, target, maximise) & model.reachable
        self.unknown = index_states(model.manager, self.states)
        self.inside = model.indicator(self.states)
        self.known = model.indicator(target).astype(np.float64)
        self.greatest, self.n_rewards = max(split.parts), len(split.parts)
        if self.unknown.total == 0:
            return
        self._maker = FlowBuilder(model, self.unknown, target, options)
        nothing = tuple(layer.matrix.only(model.manager.false) for layer in model.layers)
        free = self._maker.flows(split.parts.get(0, nothing))
        self._waiting = {0: free}
        self.space = self._find_space()
        xp = self.space.xp
        self._flows: dict[int, list[Flow]] = {}
        self.factors = [None if f is None else xp.asarray(f) for f in self._maker.factors()]
        self.slack = self._slack_of()
        allowed, groups = self._allowed(maximise)
        layers = [
            RewardedLayer(flow.inner, factor, xp.asarray(inside))
            for flow, factor, inside in zip(free, self.factors, allowed, strict=True)
        ]
        is_greatest = maximise or not model.is_mdp
        problem = ChoiceProblem(self.unknown.size, is_greatest, groups, self.slack, model.communicator)
        self.operator = RewardedChoices(layers, problem, self.space, self._maker.engine)
        # On chains both are sums over the one layer.
        turned = problem if not model.is_mdp else replace(problem, maximise=not is_greatest)
        self.missing = RewardedChoices(layers, turned, self.space, self._maker.engine)
        probe = RewardedChoices(layers, replace(problem, maximise=True), self.space, self._maker.engine)
        self.sweeps = self._depth(probe)
        self.flows(0)

    def flows(self, reward: int) -> list[Flow]:
        """Return where the steps that earn a reward lead, by layer; matrices are built at the first call."""
        if reward not in self._flows:
            xp = self.space.xp
            made = self._waiting.pop(reward, None) or self._maker.flows(self._split.parts[reward])
            self._flows[reward] = [Flow(f.inner, xp.asarray(f.target), xp.asarray(f.lost)) for f in made]
            self.operator.hold(f.inner for f in made if f.inner is not None and reward > 0)
        return self._flows[reward]

    def gains(self, k: int, before: Callable[[int], Array]) -> list[Array]:
        """Return what choices are worth at once in budget k: into the target, and on to lesser budgets.

        One vector a layer, shape (n,), float64; `before` returns the values of a budget so much less.
        """
        found = []
        for layer in range(len(self._model.layers)):
            total = self.flows(0)[layer].target.copy()
            for reward in self._positive_rewards(k):
                flow = self.flows(reward)[layer]
                total += flow.target
                if flow.inner is not None:
                    total += flow.inner(before(reward))
            factor = self.factors[layer]
            found.append(total if factor is None else total * factor)
        return found

    def losses(self, k: int, before: Callable[[int], Array]) -> list[Array]:
        """Return which choices may miss the target at once: ones and zeros, one vector a layer."""
        xp = self.space.xp
        found = []
        for layer in range(len(self._model.layers)):
            bad = self.flows(0)[layer].lost.astype(np.float64)
            for reward in self._positive_rewards(k):
                flow = self.flows(reward)[layer]
                bad += flow.lost
                if flow.inner is not None:
                    bad += flow.inner(before(reward))
            for reward in self._split.parts:
                if reward > k:
                    bad += xp.asarray(self._taken(reward, layer))
            found.append(xp.where(bad > 0.0, 1.0, 0.0))
        return found

    # ------------------------------------------------------------------ parts

    def _positive_rewards(self, k: int) -> list[int]:
        return [reward for reward in self._split.parts if 0 < reward <= k]

    def _taken(self, reward: int, layer: int) -> Array:
        """Return where a layer may earn a reward."""
        columns, part = self._model.manager.columns, self._split.parts[reward][layer]
        rows = self._model.manager.exists(columns, part.only(self.states).support())
        return self._model.indicator(rows, self.unknown)

    def _find_space(self) -> VectorSpace:
        """Return where vectors live: beside the first matrix that has entries, else on the host."""
        for reward in self._split.parts:
            if reward not in self._waiting:
                self._waiting[reward] = self._maker.flows(self._split.parts[reward])
            for flow in self._waiting[reward]:
                if flow.inner is not None:
                    return flow.inner.space
        nothing, alike = EmptyMatrix(self.unknown.size), self._model.communicator
        space = HostSpace(nothing)
        return space if alike.size == 1 else DistributedHostSpace(nothing, space.passes, alike)

    def _allowed(self, maximise: bool) -> tuple[list[Array], Quotient | None]:
        """Return where every layer has a choice that may be taken, and which states are one.

        Lemma: end-components (docs/bounds.md).
        """
        model = self._model
        allowed: Sequence[Node] = [layer.enabled for layer in model.layers]
        groups = None
        if model.is_mdp and maximise and 0 in self._split.parts:
            rows = [m.support() for m in self._split.parts[0]]
            free = [model.manager.exists(model.manager.columns, part) & self.states for part in rows]
            components = end_components(model, self.states, free)
            allowed = leaving_choices(model, allowed, components)  # lemma: end-components
            groups = group_states(model, self.unknown, components)
        return [model.indicator(own, self.unknown) for own in allowed], groups

    def _depth(self, probe: RewardedChoices) -> int | None:
        """Return how many sweeps bring all gains where they go without earning; None if steps go round."""
        xp = self.space.xp
        probe.set_rewards([probe.zeros() for _ in self._model.layers])
        x = xp.ones(self.unknown.size)
        for made in range(1, _MOST_SWEEPS + 1):
            reached = probe.zeros()
            probe.improve(x, reached)
            x = xp.where(reached > 0.0, 1.0, 0.0)
            if self.space.read(self.space.greatest(x))[0] == 0.0:
                return made
        return None

    def _slack_of(self) -> float:
        """Return a bound on the relative error of one step, gains and operands included."""
        model, matrices = self._model, [m for own in self._split.parts.values() for m in own]
        entries = max(row_entries(model.layer_transitions(i)) for i in range(len(model.layers)))
        units = max([model.entry_units, *(entry_units(m) for m in matrices)])  # lemma: entry-units
        # lemma: entry-units, rounding
        exits = 0.0 if model.is_mdp else model.exit_units + entries
        # lemma: rounding
        slack = (2 * entries + 2 * units + exits + 4 * len(self._split.parts) + _ROUNDINGS) * UNIT
        return slack if math.isfinite(slack) else 0.5


_LEAST_EPSILON = 1e-14
_VECTORS = 12  # of bounds, gains and products beside those of the budgets


@dataclass(frozen=True, eq=False)
class BudgetValues:
    """Values of one budget in the unknown states; arrays of the vector space, shape (n,), float64.

    `lower` and `upper` bound the probability; `some` and `missed` are 1 where it is above 0, below 1; else 0.
    """

    lower: Array
    upper: Array
    some: Array
    missed: Array


class BudgetSweep:
    """Goes from budget to budget, from 0 to `most` where that is known.

    The bounds of one budget may be `epsilon` apart beyond what budgets before it leave; the options have a
    method that gives bounds. `made` budgets are done: the present one is one less. All budgets from the
    present one have its values once it is `settled`; where an iteration `ended` early, present bounds hold.

    Time of a budget: a product with every part of the matrix for each bound, and the sweeps of the part that
    earns nothing. Memory: four vectors for every unit of the greatest reward.
    """

    def __init__(
        self,
        model: SymbolicModel,
        split: RewardSplit,
        safe: Node,
        target: Node,
        maximise: bool,
        options: CheckOptions,
        work: SolveStatistics,
        epsilon: float,
        most: int | None = None,
    ) -> None:
        self._model, self._work = model, work
        self._all = BudgetSystem(model, split, safe, target, maximise, options)
        size, self._greatest = self._all.unknown.size, self._all.greatest
        kept = self._greatest if most is None else min(self._greatest, most)
        require_memory(
            8 * (4 * kept + BOUND_VECTORS + _VECTORS) * size,
            f"the last {kept} budgets of {size} states",
            "count the reward in greater units, or choose smaller constants",
        )
        self.made, self.settled, self.ended = 0, self._all.unknown.total == 0, False
        self._window: deque[BudgetValues] = deque(maxlen=self._greatest)
        self._same = self._same_missed = 0
        method = replace(options, epsilon=min(max(epsilon, _LEAST_EPSILON), 0.5)).bounding_method()
        assert method is not None
        self._method = method

    # ------------------------------------------------------------------ budgets

    @property
    def budget(self) -> int:
        """The present budget in units."""
        return self.made - 1

    def values(self) -> StateValues:
        """Return the probabilities of the present budget in every state."""
        if self._all.unknown.total == 0:
            return StateValues.exact(self._all.known)
        now, host = self._window[0], self._space.to_host
        lower, upper = np.array(host(now.lower)), np.array(host(now.upper))
        some, missed = host(now.some) > 0.0, host(now.missed) > 0.0
        inside = self._all.inside
        if not bool((some & missed).any()):
            return StateValues.exact(StateValues.exact(lower).spread(inside, self._all.known).values)
        below, above = some & (lower <= 0.0), missed & (upper >= 1.0)
        found = StateValues(
            0.5 * (lower + upper), lower, upper,
            below if bool(below.any()) else None, above if bool(above.any()) else None,
        )  # fmt: skip
        return found.spread(inside, self._all.known)

    def later(self) -> StateValues:
        """Return the bounds that this budget gives for all greater ones: probabilities only rise."""
        found = self.values()
        upper = np.where(self._all.inside & (found.lower < 1.0), 1.0, found.upper)
        return StateValues(0.5 * (found.lower + upper), found.lower, upper, found.open_lower)

    def advance(self) -> None:
        """Go to the next budget."""
        if self.settled or self.ended:
            self.made += 1
            return
        k, xp = self.made, self._space.xp
        leading = [g > 0.0 for g in self._gains(k, "some")]
        some, missed = self._positive(leading), self._missed(k)
        lower, upper = self._solved(k, some, leading)
        # Values that the graph decides are exact.
        lower = xp.where(missed > 0.0, xp.where(some > 0.0, lower, 0.0), 1.0)
        upper = xp.where(missed > 0.0, xp.where(some > 0.0, xp.minimum(upper, 1.0), 0.0), 1.0)
        now = BudgetValues(xp.minimum(lower, upper), upper, some, missed)
        if self._window:
            before = self._window[0]
            pairs = ((now.lower, before.lower), (now.upper, before.upper), (some, before.some))
            same = all(self._equal(a, b) for a, b in (*pairs, (missed, before.missed)))
            self._same = self._same + 1 if same else 0
        self._window.appendleft(now)
        self.made += 1
        # The same numbers in as many budgets as the greatest reward, and one more, come again for ever.
        self.settled = not self.ended and self._same >= self._greatest and k >= self._greatest

    @property
    def _system(self) -> RewardedChoices:
        return self._all.operator

    @property
    def _space(self) -> VectorSpace:
        return self._all.space

    def _equal(self, a: Array, b: Array) -> bool:
        return a is b or bool(self._space.read(self._space.all(a == b))[0])

    # ------------------------------------------------------------------ values that the graph decides

    def _positive(self, leading: Sequence[Array]) -> Array:
        """Return where a budget's probability is positive, as zeros and ones, from which gains are."""
        before = self._window[0].some if self._window else None
        xp = self._space.xp
        if before is not None and self._space.read(self._space.least(before))[0] > 0.0:
            return before
        self._system.set_rewards([xp.where(some_gain, 1.0, 0.0) for some_gain in leading])
        found = self._system.positive()
        return before if before is not None and self._equal(found, before) else found

    def _missed(self, k: int) -> Array:
        """Return where a budget has a probability of less than 1, as zeros and ones."""
        before = self._window[0].missed if self._window else None
        if before is not None and self._same_missed >= self._greatest and k > self._greatest:
            return before
        self._all.missing.set_rewards(self._all.losses(k, lambda less: self._window[less - 1].missed))
        found = self._all.missing.positive()
        if before is not None and self._equal(found, before):
            self._same_missed += 1
            return before
        self._same_missed = 0
        return found

    # ------------------------------------------------------------------ numbers

    def _gains(self, k: int, of: str) -> list[Array]:
        """Return what choices are worth at once, by some vector of lesser budgets."""
        self._work.products += 1
        return self._all.gains(k, lambda less: getattr(self._window[less - 1], of))

    def _solved(self, k: int, some: Array, leading: Sequence[Array]) -> tuple[Array, Array]:
        """Return bounds on a budget's probabilities."""
        xp = self._space.xp
        slack = self._all.slack
        share, tiny = 2.0 * slack, (self._all.n_rewards + 2) * TINIEST  # lemma: rounding, underflow
        low = [xp.maximum(g * (1.0 - share) - tiny, 0.0) for g in self._gains(k, "lower")]
        high = [
            xp.where(some_gain, g * (1.0 + share) + tiny, 0.0)
            for g, some_gain in zip(self._gains(k, "upper"), leading, strict=True)
        ]
        if self._all.sweeps is not None:
            # lemma: directed-steps
            return self._swept(low, 1.0 - slack, -1.0, some), self._swept(
                high, 1.0 / (1.0 - slack), 1.0, some
            )
        lower, _ = self._iterated(low)
        if self.ended:
            return lower, xp.ones(self._all.unknown.size)
        _, upper = self._iterated(high)
        return lower, upper

    def _swept(self, gains: Sequence[Array], factor: float, sign: float, some: Array) -> Array:
        """Return what as many sweeps as steps without reward may follow one another lead to."""
        system, sweeps, clock = self._system, self._all.sweeps, Clock(None)
        assert sweeps is not None
        system.set_rewards(gains)
        pair = system.zeros(), system.zeros()
        for made in range(sweeps):
            system.improve(pair[made % 2], pair[1 - made % 2], factor)
        self._work.products += sweeps
        note_steps(self._work, "steps", _VECTORS, system, sweeps, clock.seconds)
        found = pair[sweeps % 2] + sign * (sweeps + 1) * system.underflow * some  # lemma: underflow
        return self._space.xp.maximum(found, 0.0)

    def _iterated(self, gains: Sequence[Array]) -> tuple[Array, Array]:
        """Return bounds on the solution of the system with some gains."""
        self._system.set_rewards(gains)
        self._system.products = 0
        found = self._method.bounds(self._system, 1.0, self._work.progress)
        note_steps(
            self._work, self._method.name, BOUND_VECTORS, self._system, found.iterations, found.seconds
        )
        self._work.accept("until within a budget of reward", found)
        progress = self._work.progress
        self.ended = isinstance(progress, ProgressMonitor) and progress.stopped is not None
        upper = np.where(np.isfinite(found.upper), found.upper, 1.0)
        return self._space.vector(found.lower), self._space.vector(upper)


# Until within a bound on a reward: the budgets up to it, one after the other.


def reward_bounded_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a path operator with little enough earned before the end.

    Exact 0 and 1 where the graph decides. A method without bounds is refused, and a bound of more units than
    iterations are allowed. Time: that of a step a unit of the bound, fewer if values settle (`BudgetSweep`).
    """
    safe, target, complement = until_form(a.model, a.path, a.states)
    found = a.scope.of_values(_in_budget(a, safe, target, a.maximise != complement))
    return found.complement() if complement else found


def _in_budget(a: OperatorQuery, safe: Node, target: Node, maximise: bool) -> StateValues:
    """Return the probability of ``safe U target`` with little enough earned before the target."""
    model, bound, options, work = a.model, a.path.bound, a.options, a.work
    check_bounded_method(options)
    assert bound.index is not None and isinstance(bound.most, Literal)
    split = split_by_reward(model, bound.index)
    if max(split.parts, default=0) == 0:
        return until_probabilities(model, safe, target, maximise, options, work)
    budget = units_of(bound.most, split.unit, bound.is_strict)
    most = options.criterion.max_iterations
    if budget >= most:
        raise UnsupportedError(
            f"a bound of {bound.most.value} on a reward that comes in units of {split.unit} takes "
            f"{budget + 1} sweeps over the matrix, one for every unit, and {most} are allowed: raise "
            f"{option('max-iters')}, or count the reward in greater units"
        )
    epsilon = options.criterion.epsilon / (2.0 * (budget + 1))
    sweep = BudgetSweep(model, split, safe, target, maximise, options, work, epsilon, budget)
    clock = Clock(work.progress, steps=budget + 1)
    with clock.cancellable():
        while sweep.made <= budget:
            sweep.advance()
            if sweep.settled:
                return sweep.values()
            if sweep.ended or (sweep.made <= budget and clock.tick(sweep.made, math.inf)):
                return sweep.later()
    return sweep.values()


def check_bounded_method(options: CheckOptions) -> None:
    """Refuse methods without bounds, by name."""
    if options.bounding_method() is None:
        raise UnsupportedError(
            f"the method {options.method} gives no bounds, and bounds on rewards go from one budget to the "
            f"next by them: choose {advised(ENCLOSING)}"
        )


def units_of(bound: Expression | None, unit: Fraction, is_strict: bool) -> int:
    """Return the greatest number of units that an upper bound allows."""
    assert isinstance(bound, Literal)
    exact = real_of(bound.value)
    if not isinstance(exact, (int, Fraction)):
        raise UnsupportedError("a bound on a reward must be a rational number; write it as a decimal")
    units = Fraction(exact) / unit
    return math.ceil(units) - 1 if is_strict else math.floor(units)

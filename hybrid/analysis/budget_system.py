"""The systems of all budgets of a reward: matrices by reward, and what the graph decides without a bound.

Unknown are the states that the graph does not decide without the bound.  No scheduler stays among them for
ever without earning: for a minimum it would never reach the target, and such states are decided; for a
maximum end components of steps that earn nothing are one state, their inner choices left out.  So every
system has one solution, and where such steps form no cycle a few sweeps find it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybrid.analysis.precomputation import end_components, never_reached
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.halo import Halo
from hybrid.matrix.backends import Backend, choose_backend
from hybrid.matrix.explicit.operators import ExplicitOperator, write_out
from hybrid.matrix.operators.gained_choices import GainedChoices, GainedLayer, Multiplied
from hybrid.matrix.operators.hybrid_choices import NoMatrix
from hybrid.matrix.operators.hybrid_matrix import DividedMatrix, HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import choice_totals, group_states, leaving_choices
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import ChoiceProblem, Quotient
from hybrid.matrix.space.host import HostWorkspace
from hybrid.matrix.space.together import TogetherWorkspace
from hybrid.matrix.space.workspace import Array, Workspace
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.convert import entry_units
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD, row_entries
from mtbdd.offset.states import StateIndex, index_states

# Where steps that earn a reward lead from unknown states: among them, into the target, and elsewhere.

# lemma: rounding
_NEAR = 8.0 * UNIT  # rows that add up to 1 so closely are left as they are


@dataclass(frozen=True, eq=False)
class Flow:
    """Where the entries of one layer that earn one reward lead from the unknown states.

    `inner` leads to unknown states, None if nowhere; `target`, shape (n,), float64, says how likely, or at
    which rate, into the target; `lost`, shape (n,), bool, whether to states that never reach it.
    """

    inner: Multiplied | None
    target: Array
    lost: Array


class FlowMaker:
    """Makes the flows of one model, all on one backend."""

    def __init__(
        self, model: SymbolicModel, unknown: StateIndex, target: Node, options: CheckOptions
    ) -> None:
        self._model, self._unknown, self._options = model, unknown, options
        self._target = index_states(model.manager, target)
        self._outside = index_states(model.manager, model.reachable & ~target & ~unknown.states)
        self.engine: Backend = options.matrix_backend()
        if self.engine.name == "gpu" and options.backend == "auto":
            reason = "the many small systems of a bound on a reward are solved on the host unless asked for"
            self.engine = choose_backend("cpu").because(reason)

    def flows(self, matrices: Sequence[SymbolicMatrix]) -> list[Flow]:
        """Return the flows of a matrix a layer."""
        own = [matrix.only(self._unknown.states) for matrix in matrices]
        inner = self._model.numbered_together(
            [self._between(m, self._unknown) for m in own], [self._unknown] * len(own), self._unknown
        )
        halo = next((self.engine.halo(m) for m in inner if isinstance(m, DividedMTBDD)), None)
        found = []
        for matrix, among in zip(own, inner, strict=True):
            held = Multiplied(self._operator(among, halo)) if _has_entries(among) else None
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
    ) -> HybridMatrix | DividedMatrix | ExplicitOperator:
        """Return a matrix as an operator, together with other processes where they share the states."""
        if not isinstance(matrix, DividedMTBDD):
            return self._held(matrix)
        held = self._held(matrix) if matrix.n_entries else None
        assert not isinstance(held, ExplicitOperator)
        return DividedMatrix(held, matrix, self.engine, halo)

    def _held(self, matrix: OffsetMTBDD) -> HybridMatrix | ExplicitOperator:
        """Return the own rows of a matrix on the engine and backend of all."""
        options = self._options
        if options.engine == "explicit":
            written = write_out(matrix, self.engine.name, options.storage)
            written.backend_reason = self.engine.reason
            return written
        return inject(matrix, options.level, self.engine, representation=options.representation).prepare()


def _has_entries(matrix: OffsetMTBDD) -> bool:
    """Whether a matrix has an entry, in the rows of any process."""
    return matrix.has_entries if isinstance(matrix, DividedMTBDD) else matrix.n_entries > 0


_MOST_SWEEPS = 64  # that steps without reward may take where they form no cycle
_ROUNDINGS = (
    80  # units behind factors, gains and sums; see `hybrid.matrix.operators.layer_choices.choice_slack`
)


class BudgetSystem:
    """The matrices and choices that all budgets share.

    Parameters
    ----------
    split : RewardSplit
        With some reward above 0.
    maximise : bool
        Of an MDP.

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
    operator : GainedChoices
        Steps that earn nothing, and as gains all others; None without unknown states.
    missing : GainedChoices
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
        self._maker = FlowMaker(model, self.unknown, target, options)
        nothing = tuple(layer.matrix.only(model.manager.false) for layer in model.layers)
        free = self._maker.flows(split.parts.get(0, nothing))
        self._waiting = {0: free}
        self.space = self._find_space()
        xp: Any = self.space.xp
        self._flows: dict[int, list[Flow]] = {}
        self.factors = [None if f is None else xp.asarray(f) for f in self._maker.factors()]
        self.slack = self._slack_of()
        allowed, groups = self._allowed(maximise)
        layers = [
            GainedLayer(flow.inner, factor, xp.asarray(inside))
            for flow, factor, inside in zip(free, self.factors, allowed, strict=True)
        ]
        is_greatest = maximise or not model.is_mdp
        problem = ChoiceProblem(self.unknown.size, is_greatest, groups, self.slack, model.communicator)
        self.operator = GainedChoices(layers, problem, self.space, self._maker.engine)
        # On chains both are sums over the one layer.
        turned = problem if not model.is_mdp else replace(problem, maximise=not is_greatest)
        self.missing = GainedChoices(layers, turned, self.space, self._maker.engine)
        probe = GainedChoices(layers, replace(problem, maximise=True), self.space, self._maker.engine)
        self.sweeps = self._depth(probe)
        self.flows(0)

    def flows(self, reward: int) -> list[Flow]:
        """Return where the steps that earn a reward lead, by layer; matrices are built at the first call."""
        if reward not in self._flows:
            xp: Any = self.space.xp
            made = self._waiting.pop(reward, None) or self._maker.flows(self._split.parts[reward])
            self._flows[reward] = [Flow(f.inner, xp.asarray(f.target), xp.asarray(f.lost)) for f in made]
            self.operator.hold(f.inner for f in made if f.inner is not None and reward > 0)
        return self._flows[reward]

    def gains(self, k: int, before: Callable[[int], Array]) -> list[Array]:
        """Return what choices are worth at once in budget k: into the target, and on to lesser budgets.

        One vector a layer, shape (n,), float64; `before` returns the values of the budget that is so much
        less.
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
        xp: Any = self.space.xp
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

    def _find_space(self) -> Workspace:
        """Return where vectors live: beside the first matrix that has entries, else on the host."""
        for reward in self._split.parts:
            if reward not in self._waiting:
                self._waiting[reward] = self._maker.flows(self._split.parts[reward])
            for flow in self._waiting[reward]:
                if flow.inner is not None:
                    return flow.inner.space
        space = HostWorkspace(NoMatrix(self.unknown.size))
        alike = self._model.communicator
        return (
            space if alike.size == 1 else TogetherWorkspace(NoMatrix(self.unknown.size), space.passes, alike)
        )

    def _allowed(self, maximise: bool) -> tuple[list[Array], Quotient | None]:
        """Return where every layer has a choice that may be taken, and which states are one."""
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

    def _depth(self, probe: GainedChoices) -> int | None:
        """Return how many sweeps bring all gains where they go without earning; None if steps go round."""
        xp: Any = self.space.xp
        probe.regain([probe.zeros() for _ in self._model.layers])
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

"""The quotient of a model: one state a block, with a proof that every state of a block does the same.

Blocks are found with hashes and with numbers taken for fractions. The result does not rest on that. At the
end the sums of the doubles of all states into all blocks are compared with those of the block's first state.
Their difference is part of the error of the quotient's entries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.analysis.run.statistics import Reduction
from hybrid.base.errors import HybridError
from hybrid.matrix.space.base import Clock
from hybrid.models.interchange.compressing import compressed, with_loops
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Numbers,
    StateVariable,
    Vector,
)
from hybrid.models.interchange.write_out import listed_reward
from hybrid.models.lumping.partition import (
    Blocks,
    WrittenChoices,
    classes_of,
    common_refinement,
    distinct_choices,
)
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_diagram, for_users, some_states
from mtbdd.diagrams.manager import Node
from mtbdd.graph.bisimulation import CoarseningError, TooManyBlocksError
from mtbdd.language.syntax import ModelType

_log = logging.getLogger(__name__)

_SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0)
_GRID = 2.0**40  # multiples of its inverse below 2^12 add up without rounding
_UP = 1 + 2.0**-40  # lemma: state-by-state
_MOST_APART = 64.0  # of their own errors that numbers of one class may be apart


@dataclass(frozen=True, eq=False)
class ModelQuotient:
    """A model whose states are blocks of another's, or that other itself where too little is saved.

    Attributes
    ----------
    model : SymbolicModel
        Of the same type; the label `labels[k]` is the k-th set that it was made for.  Its reward structures
        have the places that they have in the original, those that were not requested are 0.
    labels : tuple of str
    reduction : Reduction
        Sizes and seconds.
    """

    model: SymbolicModel
    labels: tuple[str, ...]
    reduction: Reduction
    _blocks: Callable[[], Numbers]

    @cached_property
    def block_of(self) -> Numbers:
        """The state of `model` by index that each state of the original, by index, belongs to.

        Shape (n_states,), int64; found at the first request.
        """
        return self._blocks()


class _AccidentError(Exception):
    """States of one block do different things: two hashes were equal by accident."""


@dataclass(frozen=True, eq=False)
class _Earned:
    """A reward structure over all states and choices; `rates` are choices', in a CTMC in a unit of time."""

    number: int
    reward: ExplicitReward
    rates: Vector | None
    units: float


def quotient_by_sets(
    model: SymbolicModel,
    sets: Sequence[Node],
    rewards: Sequence[int] = (),
    *,
    labels: Sequence[str] | None = None,
    keep_loops: bool = True,
    written: Callable[[], WrittenChoices] | None = None,
    share: float = 1.0,
    listed: int = 0,
) -> ModelQuotient:
    """Return the quotient of a model by the coarsest strong bisimulation that distinguishes some sets.

    Parameters
    ----------
    model : SymbolicModel
    sets : sequence of Node
        Sets of reachable states.
    rewards : sequence of int
        Places of reward structures that count.
    labels : sequence of str, optional
        Names of the sets in the quotient.
    keep_loops : bool
        Whether rates from a block to itself count, where the model is a CTMC: questions about steps need
        them, questions about time do not.
    written : callable, optional
        Returns the model written out, where a list of it is kept.
    share : float
        Blocks a state from which no quotient is made, and the model itself returned: its diagrams have a
        structure that those of blocks may lack.  With 1 a quotient is made wherever two states are alike.
    listed : int
        States up to which a quotient is made from the list of the transitions, not from the diagrams.

    Returns
    -------
    ModelQuotient

    Raises
    ------
    MemoryError
        The list of the transitions does not fit; with its size in bytes.
    BudgetError

    Notes
    -----
    Two states are alike if they lie in the same sets, earn the same, and have the same sum of probabilities,
    or rates, into each block; states of a decision process if the sets of their choices' sums and rewards are
    the same.  Sums are of rational numbers: the simplest fractions that the doubles may stand for.

    Time: O(transitions log states), compiled; then that of compressing the quotient.  Memory: some 50 bytes a
    transition, 60 a choice and 100 a state.
    """
    clock = Clock(None)
    names = tuple(labels if labels is not None else (f"set {k + 1}" for k in range(len(sets))))
    if model.n_states > listed:
        found = _of_diagrams(model, sets, rewards, names, keep_loops, share, clock)
        if found is not None:
            return found
    rows = WrittenChoices(model) if written is None else written()
    return _of_list(model, rows, sets, rewards, names, keep_loops, share, clock)


def _of_diagrams(
    model: SymbolicModel,
    sets: Sequence[Node],
    rewards: Sequence[int],
    labels: tuple[str, ...],
    keep_loops: bool,
    share: float,
    clock: Clock,
) -> ModelQuotient | None:
    """Return the quotient of a model by its diagrams; None where a list may do better."""
    from hybrid.models.lumping.partition import listed_quotient

    try:
        listed, blocks = listed_quotient(model, sets, rewards, labels, keep_loops, share * model.n_states)
    except TooManyBlocksError as fault:
        found = Reduction(
            model.n_states, model.n_transitions, fault.blocks, None, fault.rounds,
            clock.seconds, "diagrams",
        )  # fmt: skip
        return _the_model(model, found)
    except (CoarseningError, MemoryError) as fault:
        _log.info("the quotient is made from a list: %s", fault)
        return None
    made = compressed(listed)

    def block_of() -> Numbers:
        require_memory(
            24 * model.n_states, f"the blocks of {model.n_states} states", "ask for the initial states alone"
        )
        found = blocks.of_states(model.index)
        return found if made.numbering is None else made.numbering[found]

    seconds = clock.seconds
    reduction = Reduction(
        model.n_states, model.n_transitions, blocks.count, made.n_transitions, blocks.rounds, seconds,
        "diagrams",
    )  # fmt: skip
    return ModelQuotient(made, labels, reduction, block_of)


def _the_model(model: SymbolicModel, reduction: Reduction) -> ModelQuotient:
    """Return the model itself."""
    return ModelQuotient(model, (), reduction, lambda: np.arange(model.n_states))


def _of_list(
    model: SymbolicModel,
    written: WrittenChoices,
    sets: Sequence[Node],
    rewards: Sequence[int],
    names: tuple[str, ...],
    keep_loops: bool,
    share: float,
    clock: Clock,
) -> ModelQuotient:
    """Return the quotient of a model that is written out."""
    skip_own = model.type is ModelType.CTMC and not keep_loops
    masks = [for_users(model, model.indicator(states)) for states in sets]
    earned = [_earned(model, written, number) for number in rewards]
    of_states = [classes_of(e.reward.states, e.reward.units) for e in earned if e.reward.states is not None]
    of_choices = [classes_of(e.rates, e.units) for e in earned if e.rates is not None]
    if not model.is_mdp:
        of_states, of_choices = [*of_states, *of_choices], []
    states = common_refinement(written.n_states, [*masks, *of_states])
    choices = common_refinement(written.n_choices if model.is_mdp else 0, of_choices)
    for seed in _SEEDS:
        blocks = written.stable(states, choices, skip_own, seed)
        if blocks.count >= share * model.n_states:
            return _the_model(model, _reduction(model, blocks, None, clock))
        try:
            listed = _listed(model, written, blocks, choices, masks, names, earned, skip_own)
            break
        except _AccidentError:
            continue
    else:
        raise HybridError(
            "the blocks of the bisimulation quotient could not be proved; check without it, and tell the "
            "authors of this program"
        )
    made = compressed(listed)
    block_of = for_diagram(model, blocks.of_state)
    if made.numbering is not None:
        block_of = made.numbering[block_of]
    return ModelQuotient(made, names, _reduction(model, blocks, made, clock), lambda: block_of)


def _reduction(model: SymbolicModel, blocks: Blocks, made: SymbolicModel | None, clock: Clock) -> Reduction:
    """Return what became of a model; `made` is its quotient, if there is one."""
    transitions = None if made is None else made.n_transitions
    seconds = clock.seconds
    return Reduction(
        model.n_states, model.n_transitions, blocks.count, transitions, blocks.rounds, seconds, "list"
    )


def _earned(model: SymbolicModel, written: WrittenChoices, number: int) -> _Earned:
    """Return a reward structure over all states and choices."""
    reward = listed_reward(model, number, written.listed)
    rates, units = reward.choices, reward.units
    if rates is not None and model.type is ModelType.CTMC:
        rates = rates * written.row_sums
        # lemma: state-by-state, entry-units
        units += written.units + float(np.diff(written.listed.starts).max()) + 1.0
    return _Earned(number, reward, rates, units * _UP)  # lemma: state-by-state


def _listed(
    model: SymbolicModel,
    written: WrittenChoices,
    blocks: Blocks,
    choices: Numbers,
    masks: Sequence[NDArray[np.bool_]],
    names: Sequence[str],
    earned: Sequence[_Earned],
    skip_own: bool,
) -> ExplicitModel:
    """Return the quotient written out, and prove it on the way.

    Raises _AccidentError: it is none.
    """
    members, classes, starts = distinct_choices(written, blocks)
    _require_all_choices(written, blocks, members, classes, starts)
    if (
        len(choices)
        and (choices[members] != np.repeat(choices[members[classes[:-1]]], np.diff(classes))).any()
    ):
        raise _AccidentError
    row_starts, columns, values, units = _rows(written, blocks, members, classes, skip_own)
    first = np.full(blocks.count, written.n_states, dtype=np.int64)
    np.minimum.at(first, blocks.of_state, np.arange(written.n_states))
    initial = np.zeros(blocks.count, dtype=np.bool_)
    initial[blocks.of_state[for_users(model, model.indicator(model.initial))]] = True
    shown = model.encoding.shown
    table = some_states(model.index, shown, model.numbering, first)
    found = ExplicitModel(
        model.type,
        blocks.count,
        row_starts,
        columns,
        values,
        initial,
        starts if model.is_mdp else None,
        variables=tuple(StateVariable(v.name, v.low, v.high, v.is_bool) for v in shown),
        valuations={v.name: _typed(table[v.name], v.is_bool) for v in shown},
        labels={name: mask[first] for name, mask in zip(names, masks, strict=True)},
        value_units=units,
        source=model.source.file,
    )
    found, _ = with_loops(found)
    held = {e.number: _reward(found, blocks, members, classes, e) for e in earned}
    rewards = (held.get(k, ExplicitReward(r.name)) for k, r in enumerate(model.source.rewards))
    return replace(found, rewards=tuple(rewards))


def _typed(column: NDArray[Any], is_bool: bool) -> NDArray[Any]:
    return column.astype(np.bool_ if is_bool else np.int64)


def _require_all_choices(
    written: WrittenChoices, blocks: Blocks, members: Numbers, classes: Numbers, starts: Numbers
) -> None:
    """Require that every state has all choices of its block."""
    if written.listed.choice_starts is None:
        return
    from hybrid.models.lumping.kernels import have_all_choices

    kinds = np.empty(len(members), dtype=np.int64)
    kinds[members] = np.repeat(np.arange(len(classes) - 1), np.diff(classes))
    if not have_all_choices(written.choice_starts, kinds, blocks.of_state, np.diff(starts)):
        raise _AccidentError


def _rows(
    written: WrittenChoices, blocks: Blocks, members: Numbers, classes: Numbers, skip_own: bool
) -> tuple[Numbers, Numbers, Vector, float]:
    """Return the rows of the quotient, and a bound on the relative error of what all members do, in units."""
    from hybrid.models.lumping.kernels import sums_over_blocks

    listed, firsts = written.listed, members[classes[:-1]]
    most = int(np.diff(listed.starts)[firsts].sum())
    lengths = np.zeros(len(firsts), dtype=np.int64)
    targets, sums, spread = np.empty(most, dtype=np.int64), np.empty(most), np.zeros(2)
    entries = sums_over_blocks(
        listed.starts, listed.columns, listed.values, blocks.of_state, classes, members, written.owners,
        skip_own, blocks.count, lengths, targets, sums, spread,
    )  # fmt: skip
    apart, terms = float(spread[0]) * 2.0**53, float(spread[1])
    if entries < 0 or apart > _MOST_APART * (written.units + terms):  # lemma: blocks
        raise _AccidentError
    grid = written.distinct * _GRID
    rounds = bool((grid != np.floor(grid)).any()) or float(written.row_sums.max()) >= 2.0**12
    # lemma: state-by-state
    units = (written.units + apart + (max(terms - 1.0, 0.0) if rounds else 0.0)) * _UP
    starts, values = pointers(np, lengths), sums[:entries].copy()
    return starts, targets[:entries].copy(), values, units


def _reward(
    found: ExplicitModel, blocks: Blocks, members: Numbers, classes: Numbers, earned: _Earned
) -> ExplicitReward:
    """Return a reward structure of the quotient, and prove that all members of a block earn it.

    Lemma: state-by-state (docs/lumping.md).
    """
    states, choices, units = None, None, earned.reward.units
    if earned.reward.states is not None:
        order = np.argsort(blocks.of_state, kind="stable")
        starts = pointers(np, np.bincount(blocks.of_state, minlength=blocks.count))
        states, apart = _agreed(earned.reward.states[order], starts, units)
        # lemma: state-by-state
        units += apart
    if earned.rates is not None:
        choices, apart = _agreed(earned.rates[members], classes, earned.units)
        units = max(units, earned.units + apart)  # lemma: state-by-state
        if found.type is ModelType.CTMC:
            with np.errstate(over="ignore"):
                choices = choices / found.row_sums
            # lemma: state-by-state, entry-units
            units += found.value_units + float(np.diff(found.row_starts).max()) + 1.0
    name = earned.reward.name
    return ExplicitReward(name, states, choices, units * _UP)  # lemma: state-by-state


def _agreed(values: Vector, starts: Numbers, units: float) -> tuple[Vector, float]:
    """Return the first number of each class, and how far the others are from it, in units of 2^-53.

    Lemma: blocks (docs/lumping.md).
    """
    first = values[starts[:-1]]
    wanted = np.repeat(first, np.diff(starts))
    distance = np.abs(values - wanted)
    if (distance[wanted == 0] != 0).any():
        raise _AccidentError
    apart = float((distance / np.where(wanted == 0, 1.0, np.abs(wanted))).max(initial=0.0)) * 2.0**53
    # lemma: blocks
    if apart > _MOST_APART * max(units, 1.0):
        raise _AccidentError
    return first, apart * _UP

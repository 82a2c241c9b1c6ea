"""Reward structures as vectors: what a state earns a step (DTMC), a time unit (CTMC) or a choice (MDP)."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import BuildError, Fault, format_state
from mtbdd.language.reals import Enclosure
from mtbdd.language.syntax import ELAPSED, Expression, LabelReference, RewardItem
from mtbdd.language.walk import expression_variables, walk
from mtbdd.offset.expansion import absorbed, written_out
from mtbdd.offset.states import HOST, StateIndex, all_finite, is_any

if TYPE_CHECKING:
    from mtbdd.build.diagram_parts import DiagramReward
    from mtbdd.diagrams.value_diagrams import ValueDiagrams

# Sums of rewards: exact as long as they are sets by value, with a bound on their error as vectors.

_UNIT = Fraction(1, 2**53)  # lemma: entry-units
_UP = 1 + 2.0**-40  # lemma: interval-sum
_BLOCK = 1 << 14
_LEAST_SHARED = 2.0**-900
"""A unit in the last place of a greater number is no subnormal one."""

Vector = NDArray[np.float64]
Enclosed = tuple[Vector, Vector | None]
"""Numbers, and a bound on their absolute errors; None if they are exact."""


class Amount(Record):
    """A number known up to an absolute error."""

    value: Fraction
    error: Fraction

    @classmethod
    def of(cls, number: Any) -> Amount:
        """Return an integer or a real as an amount."""
        if isinstance(number, Enclosure):
            middle = (number.low + number.high) / 2
            return cls(middle, number.high - middle)
        return cls(Fraction(number), Fraction(0))

    @classmethod
    def of_carrier(cls, units: float) -> Callable[[float, Amount], Amount]:
        """Return the product of a double, off by some units of 2^-53, with an amount."""
        relative = Fraction(units) * _UNIT  # lemma: entry-units

        def product(often: float, amount: Amount) -> Amount:
            factor = Fraction(often)
            error = amount.error + relative * (abs(amount.value) + amount.error)  # lemma: entry-units
            return cls(factor * amount.value, factor * error)  # lemma: entry-units

        return product

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.value + other.value, self.error + other.error)  # lemma: interval-sum

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    @property
    def double(self) -> float:
        """The double next to the number."""
        try:
            return self.value.numerator / self.value.denominator
        except OverflowError:
            return math.inf if self.value > 0 else -math.inf

    @property
    def distance(self) -> float:
        """A bound on the error of that double."""
        if not math.isfinite(self.double):
            return math.inf
        error = abs(self.value - Fraction(self.double)) + self.error  # lemma: interval-sum
        return math.nextafter(float(error), math.inf) if error else 0.0  # lemma: interval-sum


def added_up(parts: Sequence[Partition], vectors: Sequence[Enclosed], index: StateIndex) -> Enclosed:
    """Return the sum of functions of the states.

    `parts`: by `Amount`. `vectors`: each of shape (index.size,). Returns `values`: ndarray of float64, shape
    (index.size,). `error`: ndarray of float64, shape (index.size,), or None.

    Functions with few values are added as sets first, exactly; the rest meet as vectors, whose sums carry
    what is rounded off (compensated summation). Sets are cut to the states last of all, when they are read
    out. Time: O(n) for every function that is not absorbed.
    """
    found = [*vectors, *(_expanded(part, index) for part in absorbed(parts, index))]
    if not found:
        return index.place.xp.zeros(index.size), None
    if len(found) == 1:
        return found[0]
    return _sum(found, index)


def _expanded(part: Partition, index: StateIndex) -> Enclosed:
    """Return a function of amounts as vectors.

    All errors are that share of the value which the worst of them has: one product, and no second diagram.
    """
    values = written_out(part.map(lambda amount: amount.double), index, unite=False)
    pairs = [(abs(amount.double), amount.distance) for amount in part.pieces if amount.distance]
    if not pairs:
        return values, None
    if all(_LEAST_SHARED < size < math.inf and distance <= size for size, distance in pairs):
        share = max(Fraction(distance) / Fraction(size) for size, distance in pairs)
        xp, factor = index.place.xp, math.nextafter(float(share), math.inf) * _UP  # lemma: entry-units
        error = xp.abs(values)
        return values, xp.multiply(error, factor, out=error)
    return values, written_out(part.map(lambda amount: amount.distance), index, unite=False)


def _sum(found: Sequence[Enclosed], index: StateIndex) -> Enclosed:
    """Return the sum of vectors: what additions round off is added up, too."""
    first, xp = found[0][0], index.place.xp
    with np.errstate(all="ignore"):
        if index.place is not HOST:
            total, error = _summed_block(xp, found)
        else:
            # So much at a time as stays in the caches with what is met on the way.
            total, error = np.empty_like(first), np.empty_like(first)
            for begin in range(0, total.size, _BLOCK):
                part = slice(begin, begin + _BLOCK)
                cut = [(values[part], None if own is None else own[part]) for values, own in found]
                total[part], error[part] = _summed_block(xp, cut)
    return total, error if is_any(xp.greater(error, 0.0)) else None


def _summed_block(xp: Any, found: Sequence[Enclosed]) -> tuple[Vector, Vector]:
    """Return the sum of parts of vectors, and a bound on its error.

    Lemma: interval-sum (docs/bounds.md).
    """
    total, rest = found[0][0], np.zeros_like(found[0][0])
    error = np.zeros_like(total)
    for values, _ in found[1:]:
        total, lost = _two_sum(total, values)
        rest, second = _two_sum(rest, lost)
        # lemma: interval-sum
        error += xp.abs(second)
    for _, own in found:
        if own is not None:
            # lemma: interval-sum
            error += own
    total, lost = _two_sum(total, rest)
    error = xp.multiply(error + xp.abs(lost), _UP)  # lemma: interval-sum
    return total, xp.where(xp.isfinite(error), error, np.inf)


def _two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Return a sum and its rounding error, exactly (Knuth)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def scaled(values: Vector, error: Vector | None, often: Partition, index: StateIndex) -> Enclosed:
    """Return numbers times a function of the states, off by its units."""
    factor = written_out(often, index, unite=False)
    product = values * factor
    exact = (values == 0) | (factor == 0) | (factor == 1)
    size = np.abs(product)
    # lemma: entry-units
    bound = size * (often.units * 2.0**-53) + np.where(exact, 0.0, size * 2.0**-53 + 2.0**-1074)
    if error is not None:
        bound += error * factor * (1 + often.units * 2.0**-53)  # lemma: entry-units
    bound *= _UP
    return product, bound if bound.any() else None


_SYMBOLIC_BITS = 12  # expressions over more bits take too many values to be worth a set each
_FEW_BITS, _STATES_A_SET = 6, 8  # over more bits than few, sets are worth it where so many states share one


def enclosed_rewards(
    model: SymbolicModel,
    structure: int,
    within: StateIndex,
    layer: int | None = None,
    *,
    states: bool = True,
    moves: bool = True,
) -> tuple[Vector, Vector | None]:
    """Return the expected reward that each state earns a step or a time unit, and a bound on its error.

    State rewards plus, for every transition reward, its value times the probability or
    rate of the transitions that carry it.  Probabilities are those of the scaled row.

    Parameters
    ----------
    model : SymbolicModel
    structure : int
        Position among the model's reward structures, or `ELAPSED`.
    within : StateIndex
        Subset of the reachable states.
    layer : int, optional
        In an MDP, the layer of choices whose transition rewards count: those of a state's choice
        in it, nothing where the layer has no choice.
    states, moves : bool
        Whether state rewards count, and transition rewards.

    Returns
    -------
    rewards : ndarray of float64, shape (within.size,)
        In the place of `within`. Zero, or of the right sign, wherever the exact number is.
    error : ndarray of float64, shape (within.size,), or None
        Bound on the distance from the numbers that the text means; None if all rewards are exact.

    Raises
    ------
    BuildError
        A reward of one of these states is not a finite number, or rewards of both signs cancel so far that it
        is not known whether anything is left.
    ValueError
        Transition rewards of an MDP are requested without a layer.

    Notes
    -----
    Time: O(n) for every item with a wide expression; items with few values are added as sets.
    """
    from mtbdd.build.state_order import in_order

    if structure == ELAPSED:
        if moves:
            model.layer(layer)
        return within.place.xp.full(within.size, 1.0 if states else 0.0), None
    if model.given is not None:
        if moves:
            model.layer(layer)
        found = model.given.rewards[structure].values(
            within.at(HOST), states, (layer or 0) if moves else None
        )
        return _moved(found, within)
    parts, vectors = _item_rewards(model, structure, within, layer, states, moves)
    total, error = added_up(parts, vectors, within)
    place = model.source.rewards[structure].position
    if not all_finite(within.place.xp, total):
        wrong = np.flatnonzero(~np.isfinite(HOST.array(total)))
        state = format_state(model.describe(in_order(model, wrong, within)[:1], within)[0])
        message = f"expected rewards that add up to less than 1.79e308, the largest double, in state {state}"
        raise BuildError([Fault(place, message)])
    if error is not None:
        xp = within.place.xp
        is_unsure = xp.greater(error, 0.0) & (xp.abs(total) <= error)  # lemma: interval-sum
        if is_any(is_unsure):
            unsure = np.flatnonzero(HOST.array(is_unsure))
            state = format_state(model.describe(in_order(model, unsure, within)[:1], within)[0])
            message = (
                "rewards of both signs cancel, or are too small for doubles, so that it is not known whether "
                "anything is left"
            )
            raise BuildError([Fault(place, f"{message}, in state {state}; write them as one item")])
    return total, error


def reward_rates(
    model: SymbolicModel, structure: int, within: StateIndex, layer: int | None = None
) -> Vector:
    """Return `enclosed_rewards` without the bound on their error, shape (within.size,)."""
    return enclosed_rewards(model, structure, within, layer)[0]


def state_rewards(model: SymbolicModel, structure: int, within: StateIndex) -> Vector:
    """Return the state rewards of `enclosed_rewards` alone, shape (within.size,)."""
    return enclosed_rewards(model, structure, within, moves=False)[0]


def action_rewards(
    model: SymbolicModel, structure: int, within: StateIndex, layer: int | None = None
) -> Vector:
    """Return the transition rewards of `enclosed_rewards` alone, shape (within.size,)."""
    return enclosed_rewards(model, structure, within, layer, states=False)[0]


def relative_units(rewards: Vector, error: Vector | None) -> float:
    """Return the greatest relative error of rewards in units of 2^-53, from their absolute errors."""
    if error is None:
        return 0.0
    earning = rewards != 0.0
    share = error[earning] / np.abs(rewards[earning])  # lemma: entry-units
    return (float(share.max()) if len(share) else 0.0) * 2.0**53 * (1.0 + 2.0**-50)  # lemma: entry-units


Carriers = list[tuple[str | None, Partition]]


def carriers_of(model: SymbolicModel, structure: int, layer: int | None) -> Carriers:
    """Return what transition rewards are multiplied with: an action and how often it is taken, by state.

    A choice of an MDP is taken once, also if its probabilities in the text do not add up to 1.
    """
    parts = model.layer(layer).parts
    if not any(item.is_transition for item in model.source.rewards[structure].items):
        return []
    if model.is_mdp:
        return [(p.action, Partition(model.manager, {1: p.states})) for p in parts if p.event is not None]
    return [(event.action, model.event_rates(event)) for event in model.events]


def _item_rewards(
    model: SymbolicModel, structure: int, within: StateIndex, layer: int | None, own: bool, moves: bool
) -> tuple[list[Partition], list[tuple[Vector, Vector | None]]]:
    """Return what the items of a structure earn: by amount, or as vectors where an expression is wide."""
    carriers = carriers_of(model, structure, layer) if moves else []
    faults: list[Fault] = []
    what = f"a reward vector of {within.size} states"
    within.place.require(16 * within.size, what, "choose smaller constants")
    parts: list[Partition] = []
    vectors: list[tuple[Vector, Vector | None]] = []
    for item in model.source.rewards[structure].items:
        exits = [often for action, often in carriers if action == item.action]
        if not (exits if item.is_transition else own):
            continue
        model.translator.require_value(item.guard, within.states)
        guard = model.translator.states(item.guard)
        states = guard & within.states
        if item.is_transition:
            states = states & model.manager.disjunction(e.support for e in exits)
        if states == model.manager.false:
            continue
        bits = len(model.encoding.bits_of(expression_variables(item.value)))
        if bits > _SYMBOLIC_BITS or (bits > _FEW_BITS and within.total < _STATES_A_SET << bits):
            wide = _wide(model, item, states, exits, within.at(HOST), faults)
            vectors += [_moved(vector, within) for vector in wide]
            continue
        value = model.translator.reals(item.value)
        taken = value.met(states)
        faults += _infinite(model, item, taken, states)
        if faults:
            continue
        # Of the values that states take; where no state is, they need not be cut to any.
        amounts = Partition(model.manager, {v: where & guard for v, where in taken}).map(Amount.of)
        parts.extend(
            e.combine(amounts, Amount.of_carrier(e.units)) for e in exits
        ) if item.is_transition else (parts.append(amounts))
    if faults:
        raise BuildError(faults)
    return parts, vectors


def _moved(found: tuple[Vector, Vector | None], within: StateIndex) -> tuple[Vector, Vector | None]:
    """Return vectors of the host in the place of an index."""
    values, error = found
    return within.place.array(values), None if error is None else within.place.array(error)


def _wide(
    model: SymbolicModel,
    item: RewardItem,
    states: Node,
    exits: list[Partition],
    within: StateIndex,
    faults: list[Fault],
) -> list[tuple[Vector, Vector | None]]:
    """Evaluate one item state by state, with numpy."""
    from mtbdd.build.state_order import in_order

    inside = model.indicator(states, within)
    values, error = expression_enclosure(model, item.value, within)
    values = np.where(inside, values, 0.0)
    error = None if error is None else np.where(inside, error, 0.0)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        first = in_order(model, wrong, within)[0]
        state = model.describe(np.array([first]), within)[0]
        faults.append(_fault(item, float(values[first]), state))
        return []
    if not item.is_transition:
        return [(values, error)]
    return [scaled(values, error, often, within) for often in exits]


def expression_enclosure(
    model: SymbolicModel, expression: Expression, within: StateIndex
) -> tuple[Vector, Vector | None]:
    """Return a numeric expression's value in every state of a set, and a bound on its error.

    Returns `values` (ndarray of float64, shape (within.size,)): NaN where the expression has no value.
    `error` (ndarray of float64, shape (within.size,), or None): distance from the number that the text means;
    None if all values are exact. Time: O(n) for every bit of the variables that occur.
    """
    environment: dict[str, NDArray[Any]] = {}
    for name in sorted(expression_variables(expression)):
        variable = model.encoding.by_name[name]
        stored = np.zeros(within.size, dtype=np.int64)
        for bit in model.encoding.row_names(variable):
            stored = 2 * stored + model.indicator(model.manager.bdd.var(bit), within)
        environment[name] = stored.astype(bool) if variable.is_bool else stored + variable.low
    for node in walk(expression):
        if isinstance(node, LabelReference):
            states = model.translator.labels[node.name]
            environment[f'"{node.name}"'] = model.indicator(states, within)
    found = enclose(expression, environment, (within.size,))
    if found.values.dtype.kind != "i":
        return found.values.astype(np.float64, copy=False), found.error
    values = found.values.astype(np.float64)
    size = np.abs(values)
    return values, np.spacing(size) if size.size and size.max() >= 2.0**53 else None


def _infinite(
    model: SymbolicModel, item: RewardItem, values: Partition, within: Node | None = None
) -> Iterator[Fault]:
    """Yield a fault for every value that is no finite number, with a state that takes it."""
    for number, where in values:
        if isinstance(number, float) or (isinstance(number, Fraction) and abs(number) > sys.float_info.max):
            state = model.encoding.pick(where if within is None else where & within)
            yield _fault(item, number if isinstance(number, float) else math.inf, state)


def _fault(item: RewardItem, number: float, state: dict[str, bool | int]) -> Fault:
    return Fault(
        item.position, f"the reward is {number} in state {format_state(state)}, expected a finite number"
    )


# Reward structures as functions of the states.

_LISTED = 1 << 20  # states up to which rewards are worked out state by state
_MOST_SHARE = 2.0**-10  # relative error of a reward; sums that cancel further have no digits


def symbolic_reward(model: SymbolicModel, structure: int) -> DiagramReward:
    """Return a reward structure as diagrams: what states earn, and the choice of every layer.

    `structure`: position among the model's reward structures. Raises BuildError: a reward of a reachable
    state is not a finite number, or sums of both signs cancel too far. Raises LanguageError: in a model with
    more than a million states: an item takes more values than the limits allow.

    Time: up to a million states, O(states) for every item and bit; beyond, one set for every value that an
    item takes.
    """
    from mtbdd.build.diagram_parts import DiagramReward

    if model.given is not None:
        return model.given.rewards[structure]
    items = model.source.rewards[structure].items
    listed = model.n_states <= _LISTED
    states: SymbolicMatrix | None = None
    if any(not item.is_transition for item in items):
        everywhere = [(None, Partition(model.manager, {1: model.reachable}))]
        if listed:
            states = _from_vectors(model, *enclosed_rewards(model, structure, model.index, 0, moves=False))
        else:
            states = _summed(model, structure, everywhere, moves=False)
    choices: list[SymbolicMatrix | None] = [None] * len(model.layers)
    if any(item.is_transition for item in items):
        for number in range(len(model.layers)):
            if listed:
                found = enclosed_rewards(model, structure, model.index, number, states=False)
                choices[number] = _from_vectors(model, *found)
            else:
                carriers = carriers_of(model, structure, number)
                choices[number] = _summed(model, structure, carriers, moves=True)
    return DiagramReward(model.source.rewards[structure].name, states, tuple(choices), model.is_mdp)


# ------------------------------------------------------------------ state by state


def _from_vectors(model: SymbolicModel, values: Vector, error: Vector | None) -> SymbolicMatrix:
    """Return the function of the reachable states that takes some values, off by some error."""
    from mtbdd.diagrams.value_diagrams import ValueDiagrams

    work = ValueDiagrams(model.manager.index_level)
    root = from_vector(work, model.index, values)
    return work.store(model.manager, root, relative_units(values, error))


def from_vector(work: ValueDiagrams, index: StateIndex, values: Vector) -> int:
    """Return the function of row bits that takes given values in the states of a set, and 0 elsewhere.

    `values`: ndarray of float64, shape (index.size,). Time: O(states) a bit; memory: two bytes a state and
    bit.
    """
    from mtbdd.diagrams.value_diagrams import ZERO

    if not index.size:
        return ZERO
    node = np.zeros(1, dtype=np.int64)
    present: list[NDArray[np.bool_]] = []
    for bit in range(index.n_bits):
        children = np.stack([index.low[bit][node], index.high[bit][node]], axis=1).reshape(-1)
        present.append(children >= 0)
        node = children[present[-1]].astype(np.int64)
    # Every path that is left is a state, in index order.
    found = work.leaves(values)
    for bit in reversed(range(index.n_bits)):
        ids = np.zeros(present[bit].size, dtype=np.int64)
        ids[present[bit]] = found
        found = work.nodes(3 * bit, ids[::2], ids[1::2])
    return int(found[0])


# ------------------------------------------------------------------ value by value


def _summed(
    model: SymbolicModel, structure: int, carriers: Sequence[tuple[str | None, Partition]], moves: bool
) -> SymbolicMatrix:
    """Return the sum of state rewards, or of transition rewards times how often their action is taken."""
    from mtbdd.diagrams.arithmetic import add

    parts = [
        item_amounts(model, item, often)
        for item in model.source.rewards[structure].items
        if item.is_transition == moves
        for action, often in carriers
        if not moves or action == item.action
    ]
    signs = {amount.value > 0 for part in parts for amount, _ in part if amount.value}
    if len(signs) < 2:  # sums of doubles of one sign lose a unit each
        terms = [_doubles(model, structure, part) for part in parts]
        nothing = SymbolicMatrix(model.manager, model.manager.false, np.zeros(0))
        return functools.reduce(add, terms) if terms else nothing
    return _doubles(model, structure, Partition.total(model.manager, parts))


def item_amounts(model: SymbolicModel, item: RewardItem, often: Partition) -> Partition:
    """Return what an item earns in every state, times how often it is taken there."""
    often = often.only(model.reachable).nonzero()
    model.translator.require_value(item.guard, often.support)
    states = model.translator.states(item.guard) & often.support
    value = model.translator.reals(item.value).only(states)
    for fault in _infinite(model, item, value):
        raise BuildError([fault])
    return often.combine(value.map(Amount.of), Amount.of_carrier(often.units))


def _doubles(model: SymbolicModel, structure: int, total: Partition) -> SymbolicMatrix:
    """Return amounts as doubles."""
    units = 0.0
    for amount, where in total:
        if amount.double == 0 and amount.distance == 0:
            continue
        share = amount.distance / abs(amount.double) if amount.double else math.inf
        if not math.isfinite(amount.double) or not share < _MOST_SHARE:
            state = format_state(model.encoding.pick(where))
            message = f"expected rewards that add up to a normal double, got {amount.double} in state {state}"
            raise BuildError([Fault(model.source.rewards[structure].position, message)])
        units = max(units, share * 2.0**53 * (1 + 2.0**-40))  # lemma: entry-units
    return SymbolicMatrix.from_partition(total.map(lambda amount: amount.double, units), unite=False)

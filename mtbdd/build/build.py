"""From a checked model text to its decision diagrams: events, reachable states, checks, matrices."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property

import numpy as np

from mtbdd.base.budget import GrownError, check_budget, ended_beyond
from mtbdd.base.errors import either
from mtbdd.base.records import Record
from mtbdd.build.choices import ChoiceLayer, ChoicePart, pack_choices, translate_choices
from mtbdd.build.events import Event, Suspect, probability_suspects, translate_events
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.order import Order, order_variables
from mtbdd.build.reachable import reachable_states
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.errors import BuildError, Fault, format_state
from mtbdd.language.syntax import ModelType, Position, ResolvedModel
from mtbdd.offset.states import index_states

# The transition matrix of a model from its events: identities, overlaps, normalisation, deadlocks.

# lemma: entry-units
_NEAR = 2.0**-50  # of 1: probabilities that add up so closely only have rounding errors
_NEAR_UNITS = 9.0  # the same in units of 2^-53, its own computation included


def enabled_choices(events: Sequence[Event], states: Node) -> Partition:
    """Return the number of command combinations enabled in each of the given states."""
    return Partition.total(events[0].rates.manager, (event.choices.only(states) for event in events))


def row_divisors(events: Sequence[Event], states: Node) -> Partition:
    """Return what every row of a DTMC is divided by, so that its probabilities add up to 1.

    This is the number of enabled choices, or, where their probabilities add up to 1 only roughly, what they
    add up to.
    """
    choices = enabled_choices(events, states)
    totals = Partition(choices.manager)
    for event in events:
        totals = totals.plus(event.exits.only(states))
    pairs = choices.combine(totals, lambda count, total: (count, total))
    exact = totals.units == 0 and all(count == total for (count, total), _ in pairs)
    units = 0.0 if exact else totals.units + _NEAR_UNITS  # lemma: entry-units
    return pairs.map(lambda pair: pair[0] if abs(pair[1] / pair[0] - 1) <= _NEAR else pair[1], units)


def assemble(
    encoding: Encoding, events: Sequence[Event], reachable: Node, loops: Node, divisors: Partition | None
) -> SymbolicMatrix:
    """Return the matrix of all events over reachable states.

    `reachable`: the reachable states; all rows outside are zero. `loops`: states without an event that get a
    self-loop of weight 1. `divisors`: what to divide every row by (see `row_divisors`), if anything.

    Everything is put together over all potential states, where the diagrams are small, and cut to the
    reachable ones once at the end. Where two events share an entry their rates add up; such events are found
    by one conjunction a pair of events.
    """
    manager = encoding.manager
    parts = _disjoint([_Part.of(encoding, event) for event in events])
    if divisors is not None and any(divisor != 1 for divisor, _ in divisors):
        parts = [_Part(p.rates.divided(divisors), p.frame) for p in parts]
    if loops != manager.false:
        parts.append(_Part(Partition(manager, {1.0: loops}), manager.equal_bits(range(encoding.n_bits))))
    return SymbolicMatrix.from_disjoint(manager, [(p.rates, p.frame) for p in parts]).only(reachable)


class _Part(Record):
    """Rates and the frame that keeps the variables they do not touch."""

    rates: Partition
    frame: Node

    @classmethod
    def of(cls, encoding: Encoding, event: Event) -> _Part:
        """Return an event's part."""
        return cls(event.rates, encoding.manager.equal_but(encoding.bits_of(event.touched)))

    @cached_property
    def support(self) -> Node:
        """The non-zero entries."""
        return self.rates.support & self.frame

    def plus(self, other: _Part) -> _Part:
        """Return the sum of two parts, frames worked in."""
        rates = self.rates.only(self.frame).plus(other.rates.only(other.frame))
        return _Part(rates, self.rates.manager.true)


def _disjoint(parts: Sequence[_Part]) -> list[_Part]:
    """Add up the parts whose supports meet, so that all that are left are pairwise disjoint."""
    result: list[_Part] = []
    union: Node | None = None
    for part in parts:
        check_budget()
        false = part.rates.manager.false
        meets = union is not None and union & part.support != false
        union = part.support if union is None else union | part.support
        if not meets:
            result.append(part)
            continue
        apart: list[_Part] = []
        meeting: list[_Part] = []
        for other in result:
            (apart if other.support & part.support == false else meeting).append(other)
        for other in meeting:
            part = part.plus(other)
        result = [*apart, part]
    return result


# Faults of a model that are found on its diagrams: each fault with its place and a reachable state.

_LEAST_NORMAL = 2.0**-1022  # below, doubles lose digits


def model_fault(source: ResolvedModel, message: str) -> Fault:
    """Return a fault of the model as a whole."""
    return Fault(Position(source.file, 1, 1), message)


def initial_states(source: ResolvedModel, encoding: Encoding, translator: ExpressionTranslator) -> Node:
    """Return the set of initial states: the variables' initial values, or `init ... endinit`."""
    if source.initial is None:
        return encoding.state({v.name: int(v.initial) for v in source.variables})
    translator.require_value(source.initial, encoding.valid)
    states = translator.states(source.initial) & encoding.valid
    if states == encoding.manager.false:
        message = "no state satisfies init ... endinit: the model has no initial state"
        raise BuildError([Fault(source.initial.position, message)])
    return states


def suspects_of(
    source: ResolvedModel, translator: ExpressionTranslator, events: Sequence[Event]
) -> list[Suspect]:
    """Gather everything that must not be reachable."""
    potential_errors = [s for event in events for s in event.potential_errors]
    if source.type is not ModelType.CTMC:
        potential_errors += probability_suspects(source, translator)
    return potential_errors


def refuse(encoding: Encoding, found: Node, potential_errors: Sequence[Suspect]) -> None:
    """Raise for every suspect that is reachable, once a place and message."""
    faults: dict[tuple[Position, str], Fault] = {}
    for suspect in potential_errors:
        hit = suspect.states & found
        key = (suspect.position, suspect.message)
        if hit != encoding.manager.false and key not in faults:
            state = format_state(encoding.pick(hit))
            faults[key] = Fault(suspect.position, f"{suspect.message}, in reachable state {state}")
    if faults:
        raise BuildError(sorted(faults.values(), key=lambda f: (f.position.line, f.position.column)))


def refuse_infinite(source: ResolvedModel, encoding: Encoding, matrix: SymbolicMatrix) -> None:
    """Raise for an entry beyond normal doubles: finite rates may multiply and add up to more or to less."""
    size = np.abs(matrix.terminals)
    for k in np.flatnonzero(~np.isfinite(size) | (size < _LEAST_NORMAL)).tolist():
        entries = matrix.node & encoding.manager.cube(matrix.index_bits, k)
        if entries != encoding.manager.false:
            state = format_state(encoding.pick(entries))
            message = "expected rates that multiply and add up to less than 1.79e308, the largest double"
            got = "more"
            if size[k] < 1:
                message = "expected rates and probabilities that multiply to at least 2.23e-308 or to zero"
                got = "less"
            raise BuildError([model_fault(source, f"{message}, got {got} in reachable state {state}")])


def deadlock_warnings(source: ResolvedModel, encoding: Encoding, deadlocks: Node, fix: bool) -> list[str]:
    """Name a deadlock state: as a warning if they were fixed, as an error otherwise."""
    if deadlocks == encoding.manager.false:
        return []
    count = index_states(encoding.manager, deadlocks).size
    text = format_state(encoding.pick(deadlocks))
    many = f"{count} states have" if count > 1 else "1 state has"
    if not fix:
        build = either("without --no-fix-deadlocks", "with fix_deadlocks=True")
        hint = f"give it a transition or build {build}"
        raise BuildError([model_fault(source, f"{many} no outgoing transition, for example {text}: {hint}")])
    return [f"{many} no outgoing transition and got a self-loop, for example {text}"]


_GROWN, _TRIED = 4, 50_000
"""Another order is given up beyond so many times the nodes of the first, and so many nodes."""

_LARGE = 10_000  # nodes of all events' relations together from which other variable orders are tried


def build_model(
    source: ResolvedModel,
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: Order = "auto",
    progress: Callable[[str], None] | None = None,
) -> SymbolicModel:
    """Build the decision diagrams of a DTMC, CTMC or MDP.

    Parameters
    ----------
    source : ResolvedModel
        From `mtbdd.language.resolve`.
    fix_deadlocks : bool
        Give states without successors a self-loop (with a warning); otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        `dd` back end.
    order : {"auto", "model", "reversed", "force"}, or tuple of str
        Variable order, see `mtbdd.build.order.order_variables`.  "auto" is the model's, unless the events'
        relations are large in it (over 10,000 nodes) and at most half as large in another: the first
        other one in which they are not large, else the smallest.
    progress : callable, optional
        Called with a line of text at every stage.

    Returns
    -------
    SymbolicModel

    Raises
    ------
    BuildError
        Probabilities that do not add up to 1, updates that leave a range, negative or infinite
        rates, no initial state, or deadlocks that must not be: all faults found, each with its
        place in the text and a reachable state.  Also for models too large to be numbered.
    """
    try:
        return _build(source, fix_deadlocks, package, order, progress or (lambda text: None))
    except OverflowError as error:
        raise BuildError([model_fault(source, str(error))]) from None
    except RecursionError:
        message = "expected expressions nested less deeply; split them with formulas"
        raise BuildError([model_fault(source, message)]) from None


class _Translated(Record):
    """A model's commands as diagrams in some variable order."""

    translator: ExpressionTranslator
    events: list[Event]
    relations: list[Relation]
    size: int  # nodes of all relations together


def _translate(
    source: ResolvedModel, order: Order, package: str, most: int = sys.maxsize, largest: int = sys.maxsize
) -> _Translated:
    """Translate a model's commands in a given variable order.

    Raises `GrownError` beyond `most` nodes in all, or beyond `largest` of the events' relations.
    """
    encoding = Encoding(order_variables(source, order), package, [v.name for v in source.variables])
    translator = ExpressionTranslator(encoding)
    is_mdp = source.type is ModelType.MDP
    found = translate_choices(source, translator) if is_mdp else translate_events(source, translator)
    events: list[Event] = []
    relations: list[Relation] = []
    size = 0
    is_limited = most < sys.maxsize
    with ended_beyond(most, lambda: len(encoding.manager.bdd)) if is_limited else nullcontext():
        for event in found:
            events.append(event)
            relation = Relation.of(encoding, event.touched, event.rates.support)
            if relation.node != encoding.manager.false:
                relations.append(relation)
                size += encoding.manager.size(relation.node)
            if size > largest:
                raise GrownError
    return _Translated(translator, events, relations, size)


def _smaller(source: ResolvedModel, package: str, given: _Translated) -> _Translated:
    """Return the translation in the best other order if it is at most half as large, else the given one."""
    best, largest = given, given.size // 2
    most = max(_GROWN * len(given.translator.encoding.manager.bdd), _TRIED)
    for order in ("reversed", "force"):
        try:
            best = _translate(source, order, package, most, largest)
        except GrownError:
            continue
        if best.size <= _LARGE:
            break  # no longer large: a further order is not worth its translation
        largest = best.size - 1
    return best


def _build(
    source: ResolvedModel, fix_deadlocks: bool, package: str, order: Order, say: Callable[[str], None]
) -> SymbolicModel:
    """Build the model, stage by stage."""
    started = time.perf_counter()
    say("translating commands")
    translated = _translate(source, "model" if order == "auto" else order, package)
    if order == "auto" and translated.size > _LARGE:
        say("translating commands in other variable orders")
        translated = _smaller(source, package, translated)
    translator, events, relations = translated.translator, translated.events, translated.relations
    encoding = translator.encoding
    is_mdp = source.type is ModelType.MDP
    initial = initial_states(source, encoding, translator)
    say("reachable states")
    manager = encoding.manager
    found = reachable_states(encoding, initial, relations, say)
    index_states(manager, found)  # more states than can be numbered are reported before matrices are made
    refuse(encoding, found, suspects_of(source, translator, events))
    divisors = row_divisors(events, found) if source.type is ModelType.DTMC and events else None
    deadlocks = found & ~manager.disjunction(e.exits.support for e in events)
    warnings = deadlock_warnings(source, encoding, deadlocks, fix_deadlocks)
    say("transition matrix")
    if is_mdp:
        layers = pack_choices(encoding, events, found, deadlocks)
    else:
        matrix = assemble(encoding, events, found, deadlocks, divisors)
        parts = [ChoicePart(e.action, e.exits.support & found, e) for e in events]
        parts.append(ChoicePart(None, deadlocks, None))
        parts = [part for part in parts if part.states != manager.false]
        layers = [ChoiceLayer(matrix, found, tuple(parts))]
    for layer in layers:
        refuse_infinite(source, encoding, layer.matrix)
    model = SymbolicModel(
        source, encoding, translator, events, relations, initial, found, deadlocks, divisors, layers, warnings
    )
    say("offset labels")
    if not model.is_numbered:
        say("more states than can be numbered")
    model.build_seconds = time.perf_counter() - started
    return model

"""From a checked model text to its decision diagrams: events, reachable states, checks, matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mtbdd.build.assemble import assemble, row_divisors
from mtbdd.base.budget import check_budget
from mtbdd.build.choices import ChoiceLayer, ChoicePart, pack_choices, translate_choices
from mtbdd.diagrams.encoding import Encoding
from mtbdd.build.events import Event, translate_events
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.language.faults import BuildError
from mtbdd.language.model_syntax import ResolvedModel
from mtbdd.language.syntax import ModelType
from mtbdd.build.model import SymbolicModel
from mtbdd.build.order import Order, order_variables
from mtbdd.build.reachable import reachable_states
from mtbdd.build.refusals import (
    deadlock_warnings,
    initial_states,
    model_fault,
    refuse,
    refuse_infinite,
    suspects_of,
)
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import index_states

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


@dataclass(frozen=True)
class _Translated:
    """A model's commands as diagrams in some variable order."""

    translator: ExpressionTranslator
    events: list[Event]
    relations: list[Relation]
    size: int  # nodes of all relations together


def _translate(source: ResolvedModel, order: Order, package: str) -> _Translated:
    """Translate a model's commands in a given variable order."""
    encoding = Encoding(order_variables(source, order), package, [v.name for v in source.variables])
    translator = ExpressionTranslator(encoding)
    is_mdp = source.type is ModelType.MDP
    events = translate_choices(source, translator) if is_mdp else translate_events(source, translator)
    relations = [Relation.of(encoding, e.touched, e.rates.support) for e in events]
    relations = [t for t in relations if t.node != encoding.manager.false]
    return _Translated(translator, events, relations, sum(encoding.manager.size(t.node) for t in relations))


def _smaller(source: ResolvedModel, package: str, given: _Translated) -> _Translated:
    """Return the translation in the best other order if it is at most half as large, else the given one."""
    best: _Translated | None = None
    for order in ("reversed", "force"):
        other = _translate(source, order, package)
        if best is None or other.size < best.size:
            best = other
        if best.size <= min(_LARGE, given.size // 2):
            return best  # no longer large: a further order is not worth its translation
    return best if best is not None and 2 * best.size <= given.size else given


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
    index_states(manager, found)  # more states than can be numbered are told before matrices are made
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
        source,
        encoding,
        translator,
        events,
        relations,
        initial,
        found,
        deadlocks,
        divisors,
        layers,
        warnings,
    )
    say("offset labels")
    for number in range(len(layers)):
        check_budget()
        model.layer_transitions(number)
    model.build_seconds = time.perf_counter() - started
    return model

"""What a model is refused for, found on its diagrams: each fault with its place and a reachable state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtbdd.diagrams.encoding import Encoding
from mtbdd.build.events import Event, Suspect, probability_suspects
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.language.faults import BuildError, format_state
from mtbdd.language.errors import Fault
from mtbdd.language.model_syntax import ResolvedModel
from mtbdd.language.syntax import ModelType, Position
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.states import index_states
from mtbdd.base.wording import either

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

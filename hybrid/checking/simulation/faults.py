"""What is wrong in a state that a path came to, told as the engine tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from hybrid.checking.simulation.functions import MISSING, TRUE, Columns, Ints, Number, condition
from hybrid.checking.simulation.rules import Rules, SimulatedEvent
from mtbdd.build.expressions import NO_VALUE
from mtbdd.language.errors import BuildError, EvaluationError, Fault
from mtbdd.language.evaluate import evaluate
from mtbdd.language.model_syntax import Command
from mtbdd.language.syntax import Expression, Literal, ModelType, Position


def refuse_state(rules: Rules, state: Ints) -> NoReturn:
    """Raise for a state in which the rates of events are no finite numbers.

    Parameters
    ----------
    rules : Rules
    state : ndarray of int64, shape (variables,)

    Raises
    ------
    BuildError
        With the first fault of every event.
    """
    columns = Columns(state.reshape(-1, 1))
    where = f"in reachable state {rules.variables.text(state)}"
    faults = []
    for event in rules.events:
        if np.isfinite(event.rate(columns)[0]):
            continue
        own = [
            f for c in event.components for command in c.commands for f in _faults(rules, command, columns)
        ]
        faults += own[:1]
    if not faults:
        message = (
            "expected rates that multiply and add up to less than 1.79e308, the largest double, got more"
        )
        faults.append(Fault(Position(rules.model.file, 1, 1), message))
    raise BuildError(Fault(f.position, f"{f.message}, {where}") for f in faults)


def _faults(rules: Rules, command: Command, columns: Columns) -> Iterator[Fault]:
    """Yield what is wrong with a command's guard and weights in a state."""
    variables = rules.variables
    code = condition(variables, command.guard)(columns)[0]
    if code == MISSING:
        yield Fault(command.guard.position, f"the guard of a command has no value ({NO_VALUE})")
    if code != TRUE:
        return
    total = 0.0
    for update in command.updates:
        weight = Literal(update.position, 1) if update.weight is None else update.weight
        value = float(Number(variables, weight)(columns)[0])
        if np.isnan(value):
            yield Fault(weight.position, f"the weight of an update has no finite value ({NO_VALUE})")
        elif value < 0:
            yield Fault(update.position, f"the weight of an update is {value}")
        total += value
    if rules.type is not ModelType.CTMC:
        yield Fault(command.position, f"the probabilities of a command add up to {total}, expected 1")


def refuse_update(rules: Rules, event: SimulatedEvent, row: int, state: Ints) -> NoReturn:
    """Raise for an event whose update gives a variable a value that it cannot have.

    Parameters
    ----------
    rules : Rules
    event : SimulatedEvent
    row : int
        The variable's.
    state : ndarray of int64, shape (variables,)
    """
    variables, columns = rules.variables, Columns(state.reshape(-1, 1))
    name, low, high = variables.names[row], variables.low[row], variables.high[row]
    faults = []
    for component in event.components:
        for alternative in component.alternatives:
            if not alternative.weight(columns)[0] > 0:
                continue
            for assignment in alternative.update.assignments:
                value = _value(rules, assignment.expression, columns)
                text = f"the update sets {name} to {value}, outside its range [{low}..{high}]"
                if value is None:
                    text = f"the value assigned to {name} does not exist ({NO_VALUE})"
                if assignment.variable == name and (value is None or not low <= value <= high):
                    where = f"in reachable state {variables.text(state)}"
                    faults.append(Fault(assignment.position, f"{text}, {where}"))
    raise BuildError(faults)


def _value(rules: Rules, expression: Expression, columns: Columns) -> int | None:
    """Return the value of an assigned expression in one state, None if it has none."""
    variables = rules.variables
    environment = columns.environment(variables, range(len(variables.names)))
    try:
        return int(evaluate(expression, {name: values[0] for name, values in environment.items()}))
    except EvaluationError:
        return None

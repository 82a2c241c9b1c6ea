"""Codes of states, their transitions by a text, programs for expressions, and what a search has found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import NO_INTEGER, Columns, Ints, Variables
from hybrid.checking.simulation.rules import Alternative, Rules, SimulatedEvent, refuse_state, refuse_update
from mtbdd.base.errors import option
from mtbdd.language.enclosing import RunningErrors
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.limits import current, raised
from mtbdd.language.reals import Rounded
from mtbdd.language.syntax import (
    Binary,
    Call,
    Command,
    Conditional,
    Expression,
    Literal,
    ModelType,
    Name,
    Unary,
)
from mtbdd.language.walk import Interner

# Expressions compiled to programs of the stack machine (`hybrid.models.exploration.search_kernel`).

# Instructions: a program is a list of them in postfix form.  An integer or a truth stands on the stack as an
# integer, another number as a double with a bound on its error, as in `mtbdd.language.enclosing`.
# What stands behind the name is the instruction's argument.
INTEGER = 0  # place among the integers
DOUBLE = 1  # place among the doubles
LOAD = 2  # row of a variable
TO_DOUBLE = 3  # how far below the top
SKIP_FALSE, SKIP_TRUE = 4, 5  # where to go on, the top staying; else the top goes
JUMP, JUMP_FALSE = 6, 7  # where to go on; the second takes the top away
NOT = 8
NEGATE, ADD, SUBTRACT, MULTIPLY = 10, 11, 12, 13
EQUAL, UNEQUAL, LESS, AT_MOST = 14, 15, 16, 17
LEAST, GREATEST, MODULO, POWER = 18, 19, 20, 21
# The same of doubles, 20 beyond.
OF_DOUBLES = 20
DIVIDE, LOGARITHM = 42, 43
FLOOR, CEILING, ROUND = 44, 45, 46

MOST_INSTRUCTIONS = 1 << 22
"""Of all programs together: shared parts of expressions are written out."""

_ARITHMETIC = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY}
_COMPARISONS = {
    "=": (EQUAL, False),
    "<=>": (EQUAL, False),
    "!=": (UNEQUAL, False),
    "<": (LESS, False),
    "<=": (AT_MOST, False),
    ">": (LESS, True),
    ">=": (AT_MOST, True),
}
_CALLS = {"min": LEAST, "max": GREATEST, "pow": POWER, "mod": MODULO}
_ROUNDINGS = {"floor": FLOOR, "ceil": CEILING, "round": ROUND}


class UnsuitableError(Exception):
    """An expression that the machine does not take."""


class Code(NamedTuple):
    """All programs of a model."""

    instructions: NDArray[np.int64]  # int64, shape (m, 2); instruction and argument
    starts: NDArray[np.int64]  # int64, shape (programs + 1,)
    kinds: NDArray[np.int64]  # int64, shape (programs,); 1 where a program ends with a double, else 0
    integers: NDArray[np.int64]
    doubles: NDArray[np.float64]  # float64, shape (k, 2); values and errors
    depth: int  # places that a stack needs


class Programs:
    """Compiles expressions; equal ones become one program.

    `takes_all`: whether what the machine does not take becomes a program that gives up in every state.
    """

    def __init__(self, variables: Variables, takes_all: bool = False) -> None:
        self._variables, self._takes_all = variables, takes_all
        self.interner = Interner()
        self._numbers: dict[object, int] = {}
        self._lines: list[tuple[int, int]] = []
        self._starts = [0]
        self._kinds: list[int] = []
        self._integers: dict[int, int] = {}
        self._doubles: dict[tuple[float, float], int] = {}
        self._height = self._depth = 0

    def number(self, expression: Expression) -> int:
        """Return the number of an expression's program.

        Raises UnsuitableError: there are more instructions than `MOST_INSTRUCTIONS`, or the expression needs
        more than the state; not where all are taken. Time: O(nodes), those that are shared counted as often
        as they occur.
        """
        # Texts that programs write hold integers by the hundred thousand.
        key: object
        if isinstance(expression, Literal) and type(expression.value) is int:
            key = "integer", expression.value
        else:
            key = self.interner.number(expression)
        known = self._numbers.get(key)
        if known is None:
            self._height = 0
            try:
                kind = self._of(expression)
            except UnsuitableError:
                if not self._takes_all:
                    raise
                kind = self._none()
            self._kinds.append(int(kind))
            known = self._numbers[key] = len(self._starts) - 1
            self._starts.append(len(self._lines))
        return known

    def code(self) -> Code:
        """Return all programs so far."""
        return Code(
            np.array(self._lines, dtype=np.int64).reshape(-1, 2),
            np.array(self._starts, dtype=np.int64),
            np.array(self._kinds, dtype=np.int64),
            np.array(list(self._integers), dtype=np.int64),
            np.array(list(self._doubles), dtype=np.float64).reshape(-1, 2),
            self._depth,
        )

    def _none(self) -> bool:
        """Put a program that gives up in the place of one begun: a sum beyond the integers of the machine."""
        del self._lines[self._starts[-1] :]
        great = self._integers.setdefault(1 << 62, len(self._integers))
        self._lines += [(INTEGER, great), (INTEGER, great), (ADD, 0)]
        self._depth = max(self._depth, 2)
        return False

    def _emit(self, instruction: int, argument: int = 0, grows: int = 0) -> int:
        """Add an instruction that makes the stack higher by so much; return its place."""
        if len(self._lines) >= MOST_INSTRUCTIONS:
            raise UnsuitableError
        self._lines.append((instruction, argument))
        self._height += grows
        self._depth = max(self._depth, self._height)
        return len(self._lines) - 1

    def _land(self, place: int) -> None:
        """Set the target of the jump at a place: the next instruction."""
        self._lines[place] = self._lines[place][0], len(self._lines)

    def _of(self, e: Expression) -> bool:
        """Emit the instructions that push an expression's value; return whether it is a double."""
        if isinstance(e, Literal):
            return self._literal(e)
        if isinstance(e, Name):
            self._emit(LOAD, self._variables.place[e.name], 1)
            return False
        if isinstance(e, Unary):
            is_double = self._of(e.operand)
            self._emit(NOT if e.operator == "!" else NEGATE + OF_DOUBLES * is_double)
            return is_double
        if isinstance(e, Binary):
            return self._binary(e)
        if isinstance(e, Conditional):
            return self._conditional(e)
        if isinstance(e, Call):
            return self._call(e)
        raise UnsuitableError

    def _literal(self, e: Literal) -> bool:
        value = e.value
        if isinstance(value, float):
            held = float(value), float(RunningErrors({})(e).error)
            self._emit(DOUBLE, self._doubles.setdefault(held, len(self._doubles)), 1)
            return True
        if not -(1 << 63) <= value < 1 << 63:
            raise UnsuitableError
        self._emit(INTEGER, self._integers.setdefault(int(value), len(self._integers)), 1)
        return False

    def _binary(self, e: Binary) -> bool:
        """Emit a chain of operators; it is left-nested, and may be thousands deep, too deep for recursion."""
        chain = [e]
        while isinstance(chain[-1].left, Binary):
            chain.append(chain[-1].left)
        is_double = self._of(chain[-1].left)
        skips: list[int] = []
        for place in reversed(range(len(chain))):
            node = chain[place]
            if node.operator not in ("&", "|", "=>"):
                is_double = self._step(node, is_double)
                continue
            if node.operator == "=>":
                self._emit(NOT)
            skips.append(self._emit(SKIP_FALSE if node.operator == "&" else SKIP_TRUE, 0, -1))
            self._of(node.right)
            # In a run of one operator every operand that decides it jumps to the end of the run.
            if place == 0 or chain[place - 1].operator != node.operator or node.operator == "=>":
                for skip in skips:
                    self._land(skip)
                skips = []
        return is_double

    def _step(self, node: Binary, is_double: bool) -> bool:
        """Emit an operator whose left operand is on the stack."""
        right = self._of(node.right)
        both = node.operator == "/" or is_double or right
        if both:
            self._to_doubles(is_double, right)
        further = OF_DOUBLES * both
        if node.operator == "/":
            self._emit(DIVIDE, 0, -1)
        elif node.operator in _ARITHMETIC:
            self._emit(_ARITHMETIC[node.operator] + further, 0, -1)
        else:
            instruction, is_swapped = _COMPARISONS[node.operator]
            self._emit(instruction + further, int(is_swapped), -1)
            return False
        return both

    def _to_doubles(self, left: bool, right: bool) -> None:
        if not left:
            self._emit(TO_DOUBLE, 1)
        if not right:
            self._emit(TO_DOUBLE, 0)

    def _conditional(self, e: Conditional) -> bool:
        self._of(e.condition)
        other = self._emit(JUMP_FALSE, 0, -1)
        begun = len(self._lines)
        then = self._of(e.then)
        end = self._emit(JUMP, 0, -1)
        self._land(other)
        otherwise = self._of(e.otherwise)
        if then != otherwise:
            if otherwise:
                # The first side has to be made a double: write both again with that.
                del self._lines[begun:]
                self._height -= 1
                self._of(e.then)
                self._emit(TO_DOUBLE, 0)
                end = self._emit(JUMP, 0, -1)
                self._land(other)
                self._of(e.otherwise)
            else:
                self._emit(TO_DOUBLE, 0)
        self._land(end)
        return then or otherwise

    def _call(self, e: Call) -> bool:
        if e.function in _ROUNDINGS:
            if self._of(e.arguments[0]):
                self._emit(_ROUNDINGS[e.function])
            return False
        if e.function not in (*_CALLS, "log"):
            raise UnsuitableError
        is_double = self._of(e.arguments[0])
        for argument in e.arguments[1:]:
            right = self._of(argument)
            both = e.function == "log" or is_double or right
            if both:
                self._to_doubles(is_double, right)
            instruction = LOGARITHM if e.function == "log" else _CALLS[e.function] + OF_DOUBLES * both
            self._emit(instruction, 0, -1)
            is_double = both
        return is_double


# Codes of states, the transitions that a text gives some states, and what a search has found.

_WORD = 62
"""Bits of a word, an int64 that is not negative."""


class StateCodes:
    """Codes of states: the values of all variables, the first one leading.

    A code has a word for every 62 bits. `places`: for every variable its word, and how many bits of it are
    below. `widths`: bits of every variable.
    """

    def __init__(self, variables: Variables) -> None:
        self._low = variables.low
        self.widths = [
            (high - low).bit_length() for low, high in zip(variables.low, variables.high, strict=True)
        ]
        # Every variable lies in one word; words are filled from the first variable on.
        ends: list[tuple[int, int]] = []
        words: list[int] = [0]
        for width in self.widths:
            if words[-1] + width > _WORD:
                words.append(0)
            words[-1] += width
            ends.append((len(words) - 1, words[-1]))
        self.places = [(word, words[word] - end) for word, end in ends]
        self.words = len(words)

    def unpacked(self, words: Ints) -> Ints:
        """Return the matrix of states whose codes are given as words, shape (words, count)."""
        found = np.empty((len(self.places), words.shape[1]), dtype=np.int64)
        for row, (word, shift) in enumerate(self.places):
            found[row] = ((words[word] >> shift) & ((1 << self.widths[row]) - 1)) + self._low[row]
        return found


MOST_UNITS = 32.0
"""Relative error of a weight that depends on the state, in units of 2^-53 (`mtbdd.language.enclosing`)."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class EventTransitions:
    """Transitions that some states have in common."""

    event: int  # number of the event
    choice: int  # number of the choice among those of the event, for decision processes; 0 in chains
    sources: Ints  # int64, shape (count,); numbers of columns
    targets: Ints  # int64, shape (variables, count)
    weights: Vector  # float64, shape (count,); positive


class Successors:
    """The transitions of a model's states.

    Raises BuildError: events can be taken in more ways than the limits allow. `units`: bound on the relative
    error of every weight, in units of 2^-53.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._is_mdp = rules.type is ModelType.MDP
        for event in rules.events:
            _check_ways(event)
        self._ways = [list(_ways(event, self._is_mdp)) for event in rules.events]
        self.units = max((_units(way, self._is_mdp) for ways in self._ways for _, way in ways), default=0.0)

    def of(self, states: Ints) -> Iterator[EventTransitions]:
        """Yield all transitions of some states, shape (variables, count), event by event.

        Raises BuildError: the text gives a state no rate, or an update leads out of a variable's range. Time:
        some operations on arrays for every event, and for every way to take one that happens anywhere.
        """
        whole = Columns(states)
        for number, event in enumerate(self._rules.events):
            rate = event.rate(whole)
            wrong = np.flatnonzero(~np.isfinite(rate))
            if wrong.size:
                refuse_state(self._rules, states[:, wrong[0]])
            where = np.flatnonzero(rate > 0)
            if not where.size:
                continue
            columns = Columns(states, where)
            for choice, way in self._ways[number]:
                weights = np.ones(where.size)
                for alternative in way:
                    weights = weights * alternative.weight(columns)
                happens = np.flatnonzero(weights > 0)
                if happens.size:
                    own = where if happens.size == where.size else where[happens]
                    targets = self._targets(event, way, states, own)
                    yield EventTransitions(number, choice, own, targets, weights[happens])

    def _targets(
        self, event: SimulatedEvent, way: tuple[Alternative, ...], states: Ints, where: Ints
    ) -> Ints:
        """Return where one way to take an event leads."""
        columns = Columns(states, where)
        targets = states[:, where]
        for alternative in way:
            for row, value in alternative.assignments:
                found = value(columns)
                wrong = np.flatnonzero(found == NO_INTEGER)
                if wrong.size:
                    refuse_update(self._rules, event, row, states[:, where[wrong[0]]])
                targets[row] = found
        return targets


def _check_ways(event: SimulatedEvent) -> None:
    """Refuse an event that can be taken in more ways than are listed."""
    count = math.prod(len(component.alternatives) for component in event.components)
    most = current().combinations
    if count > most:
        message = (
            f"expected at most {most} ways to take the action '{event.action}' where states are listed, got "
            f"{count}; choose {option('build', 'symbolic')}, or {raised('combinations', count)}"
        )
        raise BuildError([Fault(event.components[0].commands[0].position, message)])


def _ways(event: SimulatedEvent, is_mdp: bool) -> Iterator[tuple[int, tuple[Alternative, ...]]]:
    """Yield the combinations of updates, one of every component, and the number of the choice of each."""
    if not is_mdp:
        for way in product(*(component.alternatives for component in event.components)):
            yield 0, way
        return
    by_command = [
        [[a for a in component.alternatives if a.command is command] for command in component.commands]
        for component in event.components
    ]
    for choice, commands in enumerate(product(*by_command)):
        for way in product(*commands):
            yield choice, way


def _units(way: tuple[Alternative, ...], is_mdp: bool) -> float:
    """Return a bound on the relative error of a product of weights, in units."""
    total = 0.0
    for alternative in way:
        total += _update_units(alternative.update.weight)
        if is_mdp:
            # Divided by the sum of the command's weights.
            updates = alternative.command.updates
            total += max(_update_units(u.weight) for u in updates) + len(updates)
    return (total + len(way) - 1) * (1 + 2.0**-40)


def _update_units(weight: object) -> float:
    """Return a bound on the relative error of a weight in the text, in units."""
    if weight is None:
        return 0.0
    if isinstance(weight, Literal):
        exact = not isinstance(weight.value, Rounded) and (
            isinstance(weight.value, float) or abs(int(weight.value)) <= 1 << 53
        )
        return 0.0 if exact else 1.0
    return MOST_UNITS


@dataclass(frozen=True)
class Explored:
    """Reachable states in the order of the text, and their transitions in no order."""

    states: Ints  # int64, shape (variables, n)
    initial: Ints  # int64; numbers of the initial states
    # sources and targets: int64, shape (entries,); numbers of states
    sources: Ints
    targets: Ints
    weights: NDArray[np.float64]  # float64, shape (entries,)
    # events and choices: int32, shape (entries,); the event of each entry, and in decision processes the
    # choice among those of the event
    events: NDArray[np.int32]
    choices: NDArray[np.int32]
    units: float  # bound on the relative error of every weight, in units of 2^-53
    variables: Variables
    actions: tuple[str | None, ...]  # of every event
    # of every event the commands of each module that takes part: the digits of a choice are places in them
    commands: tuple[Sequence[Sequence[Command]], ...]

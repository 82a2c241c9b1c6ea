"""The compiled search: states in the order in which they are met, their transitions one after another.

Importing it needs Numba.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.models.exploration.explore import (
    ADD,
    AT_MOST,
    CEILING,
    DIVIDE,
    DOUBLE,
    EQUAL,
    GREATEST,
    INTEGER,
    JUMP,
    JUMP_FALSE,
    LEAST,
    LESS,
    LOAD,
    LOGARITHM,
    MODULO,
    MULTIPLY,
    NEGATE,
    NOT,
    OF_DOUBLES,
    POWER,
    ROUND,
    SKIP_FALSE,
    SKIP_TRUE,
    SUBTRACT,
    TO_DOUBLE,
    UNEQUAL,
)
from mtbdd.base.compiled import njit

# The machine that works out an expression in one state, compiled; importing it needs Numba.
#
# Values and errors are those of `mtbdd.language.enclosing`. Where they leave a comparison open, or a number
# has no value, the machine gives up. The caller then uses the engine's own evaluation.

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
_TINY = 2.0**-1074
_NORMAL = 2.0**-1022
_WHOLE = 2.0**53
_LIMIT = 2.0**62
_LIBRARY = 16.0 * 2.0**-53
_SHORT = 16.0


@njit(cache=True, nogil=True, error_model="numpy")
def run_program(program, code, state, integers, doubles, errors):  # type: ignore[no-untyped-def]
    """Work out a program.

    `state`: ndarray of int64, shape (variables,). `integers`, `doubles`, `errors` (ndarray, shape
    (code.depth,) each): room; the result stands in the first place. Returns bool: whether there is a result
    that is certain. Time: some nanoseconds an instruction.
    """
    place, end, top = code.starts[program], code.starts[program + 1], -1
    while place < end:
        instruction, argument = code.instructions[place, 0], code.instructions[place, 1]
        place += 1
        if instruction == LOAD:
            top += 1
            integers[top] = state[argument]
        elif instruction == INTEGER:
            top += 1
            integers[top] = code.integers[argument]
        elif instruction == DOUBLE:
            top += 1
            doubles[top], errors[top] = code.doubles[argument, 0], code.doubles[argument, 1]
        elif instruction == SKIP_FALSE:
            if integers[top] == 0:
                place = argument
            else:
                top -= 1
        elif instruction == SKIP_TRUE:
            if integers[top] != 0:
                place = argument
            else:
                top -= 1
        elif instruction == JUMP:
            place = argument
        elif instruction == JUMP_FALSE:
            if integers[top] == 0:
                place = argument
            top -= 1
        elif instruction == NOT:
            integers[top] = 1 - integers[top]
        elif instruction == TO_DOUBLE:
            own = top - argument
            value = float(integers[own])
            doubles[own] = value
            errors[own] = abs(value) * (2.0 * _UNIT) if abs(value) >= _WHOLE else 0.0
        elif instruction == NEGATE:
            integers[top] = -integers[top]
        elif instruction == NEGATE + OF_DOUBLES:
            doubles[top] = -doubles[top]
        elif instruction < NEGATE + OF_DOUBLES:
            top -= 1
            if not _of_integers(instruction, argument, integers, top):
                return False
        elif instruction <= LOGARITHM:
            top -= 1
            if EQUAL + OF_DOUBLES <= instruction <= AT_MOST + OF_DOUBLES:
                if not _compared(instruction - OF_DOUBLES, argument, integers, doubles, errors, top):
                    return False
            elif not _of_doubles(instruction, doubles, errors, top):
                return False
        elif not _rounded(instruction, integers, doubles, errors, top):
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _of_integers(instruction, is_swapped, integers, top):  # type: ignore[no-untyped-def]
    """Put the result of two integers in place of the first one."""
    a, b = integers[top], integers[top + 1]
    if instruction == ADD:
        integers[top] = a + b
        return abs(float(a) + float(b)) < _LIMIT
    if instruction == SUBTRACT:
        integers[top] = a - b
        return abs(float(a) - float(b)) < _LIMIT
    if instruction == MULTIPLY:
        integers[top] = a * b
        return abs(float(a) * float(b)) < _LIMIT
    if instruction == EQUAL:
        integers[top] = a == b
    elif instruction == UNEQUAL:
        integers[top] = a != b
    elif instruction == LESS:
        integers[top] = b < a if is_swapped else a < b
    elif instruction == AT_MOST:
        integers[top] = b <= a if is_swapped else a <= b
    elif instruction == LEAST:
        integers[top] = min(a, b)
    elif instruction == GREATEST:
        integers[top] = max(a, b)
    elif instruction == MODULO:
        if b <= 0:
            return False
        integers[top] = a % b
    elif instruction == POWER:
        if b < 0 or not abs(float(a) ** float(b)) < _LIMIT:
            return False
        result = 1
        while b > 0:
            if b & 1:
                result *= a
            b >>= 1
            if b > 0:
                a *= a
        integers[top] = result
    else:
        return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _compared(instruction, is_swapped, integers, doubles, errors, top):  # type: ignore[no-untyped-def]
    """Put what a comparison of two doubles says in place of the first one."""
    x, y = doubles[top], doubles[top + 1]
    margin = (errors[top] + errors[top + 1]) * _UP
    if np.isnan(x) or np.isnan(y) or not margin < np.inf:
        return False
    if margin != 0.0 and not abs(x - y) > margin * _UP:
        return False
    if is_swapped:
        x, y = y, x
    if instruction == EQUAL:
        integers[top] = x == y
    elif instruction == UNEQUAL:
        integers[top] = x != y
    elif instruction == LESS:
        integers[top] = x < y
    else:
        integers[top] = x <= y
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _is_power_of_two(value):  # type: ignore[no-untyped-def]
    return abs(math.frexp(value)[0]) == 0.5


@njit(cache=True, nogil=True, error_model="numpy")
def _of_doubles(instruction, doubles, errors, top):  # type: ignore[no-untyped-def]
    """Put the result of two doubles in place of the first one, with its error."""
    x, y, dx, dy = doubles[top], doubles[top + 1], errors[top], errors[top + 1]
    exact = dx == 0.0 and dy == 0.0
    if instruction == LEAST + OF_DOUBLES or instruction == GREATEST + OF_DOUBLES:
        doubles[top] = min(x, y) if instruction == LEAST + OF_DOUBLES else max(x, y)
        errors[top] = max(dx, dy)
    elif instruction == ADD + OF_DOUBLES or instruction == SUBTRACT + OF_DOUBLES:
        value = x + y if instruction == ADD + OF_DOUBLES else x - y
        error = dx + dy + abs(value) * _UNIT
        if exact and np.trunc(x) == x and np.trunc(y) == y and abs(x) + abs(y) < _WHOLE:
            error = 0.0
        doubles[top], errors[top] = value, error * _UP
    elif instruction == MULTIPLY + OF_DOUBLES:
        value = x * y
        size = abs(value)
        error = abs(x) * dy + abs(y) * dx + dx * dy + size * _UNIT + _TINY
        if (x == 0.0 and dx == 0.0) or (y == 0.0 and dy == 0.0):
            error = 0.0
        elif exact:
            if abs(x) == 1.0 or abs(y) == 1.0:
                error = 0.0
            elif np.trunc(x) == x and np.trunc(y) == y and size < _WHOLE:
                error = 0.0
            elif (_is_power_of_two(x) or _is_power_of_two(y)) and size >= _NORMAL:
                error = 0.0
        doubles[top], errors[top] = value, error * _UP
    elif instruction == DIVIDE:
        value = x / y
        left = abs(y) - dy
        error = np.inf
        if left > 0.0:
            error = (dx + abs(value) * dy) / (left * (1.0 - _UNIT)) + abs(value) * _UNIT + _TINY
        if exact and y != 0.0:
            whole = np.trunc(x) == x and np.trunc(y) == y and np.trunc(value) == value
            if x == 0.0 or abs(y) == 1.0 or (whole and abs(x) < 0.5 * _WHOLE and value * y == x):
                error = 0.0
        doubles[top], errors[top] = value, error * _UP
    elif instruction == POWER + OF_DOUBLES:
        value = x**y
        if exact and (x == 1.0 or y == 0.0 or (x == 0.0 and y > 0.0)):
            doubles[top], errors[top] = value, 0.0
            return True
        if dy == 0.0 and y == np.trunc(y) and 0.0 < y <= _SHORT:
            # As many products, each with an error of its own: better than what is granted to the library.
            value = x
            for _ in range(1, int(y)):
                value *= x
            relative = (dx / abs(x) + _UNIT) * y * 1.01
            if not (x != 0.0 and relative < 0.01 and abs(value) >= _NORMAL):
                return False
            doubles[top], errors[top] = value, dx if y == 1.0 else abs(value) * relative * _UP
            return True
        relative = np.inf
        if x != 0.0:
            relative = (abs(y) * dx / abs(x) + abs(np.log(abs(x))) * dy) * 1.01
        if not relative < 0.01:
            return False
        doubles[top], errors[top] = value, abs(value) * (relative + _LIBRARY) * _UP + _TINY
    elif instruction == LOGARITHM:
        if not (x > 0.0 and y > 0.0 and y != 1.0 and x != 1.0):
            return False
        left, right = np.log(x), np.log(y)
        relative = (dx / x / abs(left) + dy / y / abs(right)) * 1.01
        if not relative < 0.01:
            return False
        doubles[top] = left / right
        errors[top] = abs(doubles[top]) * (relative + _LIBRARY) * _UP + _TINY
    else:
        return False
    return not np.isnan(doubles[top])


@njit(cache=True, nogil=True, error_model="numpy")
def _rounded(instruction, integers, doubles, errors, top):  # type: ignore[no-untyped-def]
    """Put a double's integer part in its place."""
    x = doubles[top] + 0.5 if instruction == ROUND else doubles[top]
    margin = (errors[top] + (abs(x) * _UNIT if instruction == ROUND else 0.0)) * _UP
    if not abs(x) <= _WHOLE or not margin < 1.0:
        return False
    if margin != 0.0 and not abs(x - np.rint(x)) > margin * _UP:
        return False
    integers[top] = np.int64(np.ceil(x) if instruction == CEILING else np.floor(x))
    return True


DONE, FULL, TROUBLE = 0, 1, 2
"""Reasons for the end of a search: all states explored; no room left; a state that the machine has not."""

_SURELY_NEAR = 0.9999e-5  # beyond, the text is asked what weights add up to


class Room(NamedTuple):
    """Memory that a state is worked out in."""

    # integers, doubles and errors: shape (depth,); a stack
    integers: NDArray[np.int64]
    doubles: NDArray[np.float64]
    errors: NDArray[np.float64]
    # state and target: int64, shape (variables,)
    state: NDArray[np.int64]
    target: NDArray[np.int64]
    words: NDArray[np.int64]  # int64, shape (words,)
    nodes: NDArray[np.int64]  # int64; nodes of a tree that are left
    # chances and units: float64, shape (updates,); weights of the updates of an event's enabled commands, and
    # their relative errors
    chances: NDArray[np.float64]
    units: NDArray[np.float64]
    # int64, shape (updates, 3); update, place of its command in the component, place of its values (-1 where
    # one is out of range)
    chosen: NDArray[np.int64]
    values: NDArray[np.int64]  # int64, shape (values,)
    # ends and at: int64, shape (components + 1,); where each component's part of `chosen` begins, and which
    # of them is taken
    ends: NDArray[np.int64]
    at: NDArray[np.int64]


@njit(cache=True, nogil=True)
def place_of(codes, slots, words):  # type: ignore[no-untyped-def]
    """Return where a code stands in the table of states, or where it belongs."""
    mask = len(slots) - 1
    mixed = np.uint64(0)
    for word in words:
        mixed = (mixed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    place = np.int64(mixed >> np.uint64(3)) & mask
    while slots[place] >= 0:
        number, same = slots[place], True
        for k in range(len(words)):
            if codes[number, k] != words[k]:
                same = False
                break
        if same:
            break
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True)
def insert_codes(codes, count, slots):  # type: ignore[no-untyped-def]
    """Put distinct codes into an empty table, a power of two of places, all -1."""
    for number in range(count):
        slots[place_of(codes, slots, codes[number])] = number


@njit(cache=True, nogil=True)
def _pack(values, tables, words):  # type: ignore[no-untyped-def]
    words[:] = 0
    for row in range(len(values)):
        words[tables.words[row]] |= (values[row] - tables.low[row]) << tables.shifts[row]


@njit(cache=True, nogil=True)
def _number(values, tables, words, codes, slots, ends):  # type: ignore[no-untyped-def]
    """Return the number of a state, -1 if it is new and there is no room."""
    _pack(values, tables, words)
    place = place_of(codes, slots, words)
    if slots[place] < 0:
        if ends[1] == len(codes):
            return -1
        codes[ends[1]] = words
        slots[place] = ends[1]
        ends[1] += 1
    return slots[place]


@njit(cache=True, nogil=True)
def add_states(states, tables, words, codes, slots, ends, out_numbers):  # type: ignore[no-untyped-def]
    """Look up the numbers of states, shape (count, variables), new ones at the end; there must be room."""
    for k in range(len(states)):
        out_numbers[k] = _number(states[k], tables, words, codes, slots, ends)


@njit(cache=True, nogil=True, error_model="numpy")
def _component(number, first, used, tables, code, room, is_chain, is_probability, most_units):  # type: ignore[no-untyped-def]
    """Gather the updates of a component's enabled commands from place `first` on.

    Returns the place behind the last, how many values there are, and whether all was certain.
    """
    begin = tables.component_starts[number]
    room.nodes[0], height = tables.roots[number], 1
    found = first
    while height > 0:
        height -= 1
        node = room.nodes[height]
        row = tables.nodes[node, 0]
        if row >= 0:
            place = tables.nodes[node, 3]
            value = room.state[row] - tables.nodes[node, 1]
            if tables.children[place] >= 0:
                room.nodes[height] = tables.children[place]
                height += 1
            if 0 <= value < tables.nodes[node, 2] and tables.children[place + 1 + value] >= 0:
                room.nodes[height] = tables.children[place + 1 + value]
                height += 1
            continue
        for leaf in range(tables.nodes[node, 1], tables.nodes[node, 2]):
            command = tables.leaves[leaf]
            enabled = True
            for k in range(tables.equal_starts[command], tables.equal_starts[command + 1]):
                if room.state[tables.equals[k, 0]] != tables.equals[k, 1]:
                    enabled = False
                    break
            if enabled and tables.guards[command] >= 0:
                if not run_program(
                    tables.guards[command], code, room.state, room.integers, room.doubles, room.errors
                ):
                    return found, used, False
                enabled = room.integers[0] != 0
            if not enabled:
                continue
            begun, total, worst = found, 0.0, 0.0
            for update in range(tables.update_starts[command], tables.update_starts[command + 1]):
                weight, units = 1.0, 0.0
                if tables.weights[update] >= 0:
                    program = tables.weights[update]
                    if not run_program(program, code, room.state, room.integers, room.doubles, room.errors):
                        return found, used, False
                    if code.kinds[program] == 0:
                        weight = float(room.integers[0])
                        units = 2.0 if weight > 2.0**53 else 0.0
                    else:
                        weight, error = room.doubles[0], room.errors[0]
                        if error > 0.0:
                            units = error / abs(weight) / _UNIT
                    if not (weight >= 0.0 and weight < np.inf and units <= most_units):
                        return found, used, False
                total += weight
                if weight == 0.0:
                    continue
                worst = max(worst, units)
                room.chances[found], room.units[found] = weight, units
                room.chosen[found, 0], room.chosen[found, 1] = update, command - begin
                room.chosen[found, 2] = used
                for k in range(tables.assignment_starts[update], tables.assignment_starts[update + 1]):
                    row, program = tables.assignments[k]
                    if not run_program(program, code, room.state, room.integers, room.doubles, room.errors):
                        return found, used, False
                    value = room.integers[0]
                    if not tables.low[row] <= value <= tables.high[row]:
                        room.chosen[found, 2] = -1
                    room.values[used] = value
                    used += 1
                found += 1
            if is_probability and not (tables.adds_up[command] or abs(total - 1.0) <= _SURELY_NEAR):
                return found, used, False
            if not is_chain:
                updates = tables.update_starts[command + 1] - tables.update_starts[command]
                for k in range(begun, found):
                    room.chances[k] /= total
                    room.units[k] += worst + updates
    return found, used, True


@njit(cache=True, nogil=True, error_model="numpy")
def search(  # type: ignore[no-untyped-def]
    tables,
    code,
    room,
    is_chain,
    is_probability,
    most_units,
    codes,
    slots,
    ends,
    out_ends,
    out_targets,
    out_weights,
    out_events,
    out_choices,
    out_units,
):
    """Explore states until all are explored or there is no room.

    Returns int: DONE, FULL (states or transitions; the state at hand is explored again by the next call) or
    TROUBLE: the machine gives up on state ``ends[0]``. Time: O(instructions) a state and command that its
    tree leaves, O(variables) a transition.

    Parameters
    ----------
    is_chain, is_probability : bool
        A decision process has choices, whose weights are divided by their sum; weights add up to 1.
    most_units : float
        Relative error of a weight, in units, beyond which the machine gives up.
    codes : ndarray of int64, shape (states, words)
        The codes of the states met, in the order in which they were met.
    slots : ndarray of int64, shape (places,)
        Table of them, a power of two of places, more than states.
    ends : ndarray of int64, shape (3,)
        States explored, states met, and transitions.
    out_ends : ndarray of int64, shape (states,)
        Transitions so far behind each explored state, from the call's first one on.
    out_targets, out_weights, out_events, out_choices : ndarray, shape (transitions,)
        Choices may be empty, for chains.
    out_units : ndarray of float64, shape (2,)
        Greatest relative error of a weight, in units of 2^-53; and how many transitions the state at hand
        has at least, where there is no room for them.
    """
    entry = ends[2]
    while ends[0] < ends[1]:
        for row in range(len(tables.low)):
            field = codes[ends[0], tables.words[row]] >> tables.shifts[row]
            room.state[row] = (field & tables.masks[row]) + tables.low[row]
        for event in range(len(tables.event_starts) - 1):
            parts = tables.event_starts[event + 1] - tables.event_starts[event]
            used, live, sure = 0, True, True
            room.ends[0] = 0
            for part in range(parts):
                number = tables.event_components[tables.event_starts[event] + part]
                found, used, certain = _component(
                    number, room.ends[part], used, tables, code, room, is_chain, is_probability, most_units
                )
                sure = sure and certain
                room.ends[part + 1], room.at[part] = found, room.ends[part]
                if certain and found == room.ends[part]:
                    live = False
                    break
            if not live:
                continue
            if not sure:
                return TROUBLE
            ways = 1.0
            for part in range(parts):
                ways *= room.ends[part + 1] - room.at[part]
            if entry + ways > len(out_targets):
                out_units[1] = entry - ends[2] + ways
                return FULL
            while True:
                weight, units, choice = 1.0, parts - 1.0, np.int64(0)
                room.target[:] = room.state
                for part in range(parts):
                    item = room.at[part]
                    number = tables.event_components[tables.event_starts[event] + part]
                    weight *= room.chances[item]
                    units += room.units[item]
                    size = tables.component_starts[number + 1] - tables.component_starts[number]
                    choice = choice * size + room.chosen[item, 1]
                    update, place = room.chosen[item, 0], room.chosen[item, 2]
                    if place < 0:
                        return TROUBLE
                    for k in range(tables.assignment_starts[update], tables.assignment_starts[update + 1]):
                        room.target[tables.assignments[k, 0]] = room.values[place]
                        place += 1
                if not (weight > 0.0 and weight < np.inf):
                    return TROUBLE
                target = _number(room.target, tables, room.words, codes, slots, ends)
                if target < 0:
                    return FULL
                out_targets[entry], out_weights[entry], out_events[entry] = target, weight, event
                if len(out_choices) > 0:
                    out_choices[entry] = choice
                out_units[0] = max(out_units[0], units)
                entry += 1
                part = parts - 1
                while part >= 0:
                    room.at[part] += 1
                    if room.at[part] < room.ends[part + 1]:
                        break
                    room.at[part] = room.ends[part]
                    part -= 1
                if part < 0:
                    break
        out_ends[ends[0]] = entry
        ends[0] += 1
        ends[2] = entry
    return DONE

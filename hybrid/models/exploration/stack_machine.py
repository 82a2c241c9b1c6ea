"""The machine that works out an expression in one state, compiled; importing it needs Numba.

Values and errors are those of `mtbdd.language.enclosing`. Where they leave a comparison open, or a number has
no value, the machine gives up. The caller then uses the engine's own evaluation.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from hybrid.models.exploration.programs import (
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

    Parameters
    ----------
    program : int
    code : Code
    state : ndarray of int64, shape (variables,)
    integers, doubles, errors : ndarray, shape (code.depth,) each
        Room; the result stands in the first place.

    Returns
    -------
    bool
        Whether there is a result that is certain.

    Notes
    -----
    Time: some nanoseconds an instruction.
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

"""Instructions of the machine that works out expressions (`hybrid.exploration.machine`).

A program is a list of them in postfix form.  An integer or a truth stands on the stack as an integer, another
number as a double with a bound on its error, as in `mtbdd.language.running_errors`.
"""

from __future__ import annotations

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

"""The typed syntax tree of the PRISM language: expressions, positions, kinds of models.

Every node is a frozen dataclass and carries the `Position` it was read from, so that
any later stage can name file, line and column.  Nodes compare by structure; positions
are left out of comparisons.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from mtbdd.base.records import Record
from mtbdd.language.reals import real_of


class Position(Record):
    """A place in a source text; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Type(Enum):
    """The three types of PRISM expressions."""

    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"


class ModelType(Enum):
    """The kinds of model that the language knows here."""

    DTMC = "dtmc"
    CTMC = "ctmc"
    MDP = "mdp"


# ------------------------------------------------------------------ expressions


class Expression(Record):
    """Base of all expressions; `type` is set by the type checker."""

    position: Position = field(compare=False, repr=False)


class Literal(Expression):
    """A constant: bool, int or float.

    Literals of different types differ: Python takes 1, 1.0 and True for equal, the language does not.
    Floats are equal if they stand for the same real number, see `mtbdd.language.reals`.
    """

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        mine, theirs = self.value, other.value
        if mine != theirs or _kind(mine) is not _kind(theirs):
            return False
        return not isinstance(mine, float) or real_of(mine) == real_of(theirs)

    def __hash__(self) -> int:
        return hash((_kind(self.value), self.value))


def _kind(value: bool | int | float) -> type:
    """Return a value's type; what a double was rounded from is no part of it."""
    return float if isinstance(value, float) else type(value)


class Name(Expression):
    """A constant, formula or variable, by its name."""

    name: str


class Unary(Expression):
    """`operator` is "-" or "!"."""

    operator: str
    operand: Expression


class Binary(Expression):
    """`operator` is one of + - * / & | => <=> = != < <= > >=."""

    operator: str
    left: Expression
    right: Expression


class Conditional(Expression):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Call(Expression):
    """A built-in function: min max floor ceil round pow mod log."""

    function: str
    arguments: tuple[Expression, ...]


class LabelReference(Expression):
    """A label in quotes ("init" and "deadlock" are built in, and known in properties and labels only)."""

    name: str


# ------------------------------------------------------------------ model parts

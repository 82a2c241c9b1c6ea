"""The typed syntax tree of the PRISM language: expressions, positions, models and their kinds.

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


# The syntax tree of models: declarations, modules, rewards, composition; resolved models.


class Constant(Record):
    """`const type name = value;`, the value may be missing."""

    name: str
    type: Type
    value: Expression | None
    position: Position = field(compare=False, repr=False)


class Formula(Record):
    """`formula name = expression;`."""

    name: str
    expression: Expression
    position: Position = field(compare=False, repr=False)


class Label(Record):
    """`label "name" = expression;`."""

    name: str
    expression: Expression
    position: Position = field(compare=False, repr=False)


class Variable(Record):
    """A bounded integer (`low` and `high` set) or a boolean (both None)."""

    name: str
    low: Expression | None
    high: Expression | None
    initial: Expression | None
    position: Position = field(compare=False, repr=False)

    @property
    def is_bool(self) -> bool:
        """Whether the variable is a boolean."""
        return self.low is None


class Assignment(Record):
    """`(variable' = expression)`."""

    variable: str
    expression: Expression
    position: Position = field(compare=False, repr=False)


class Update(Record):
    """`weight : assignments`; weight None means 1; no assignments means `true`."""

    weight: Expression | None
    assignments: tuple[Assignment, ...]
    position: Position = field(compare=False, repr=False)


class Command(Record):
    """`[action] guard -> updates;`; action None stands for `[]`."""

    action: str | None
    guard: Expression
    updates: tuple[Update, ...]
    position: Position = field(compare=False, repr=False)


class Module(Record):
    """A module, renamings already carried out."""

    name: str
    variables: tuple[Variable, ...]
    commands: tuple[Command, ...]
    position: Position = field(compare=False, repr=False)


ELAPSED = -1
"""In place of a reward structure: one a step, in a CTMC one a unit of time."""


class RewardItem(Record):
    """`guard : value;` (state reward) or `[action] guard : value;` (transition reward)."""

    is_transition: bool
    action: str | None
    guard: Expression
    value: Expression
    position: Position = field(compare=False, repr=False)


class RewardStructure(Record):
    """`rewards "name" ... endrewards`; the name may be missing."""

    name: str | None
    items: tuple[RewardItem, ...]
    position: Position = field(compare=False, repr=False)


# ------------------------------------------------------------------ composition of modules


class Composition(Record):
    """Base of the expressions between `system` and `endsystem`."""

    position: Position = field(compare=False, repr=False)


class ModuleReference(Composition):
    """A module, by its name."""

    module: str


class SystemReference(Composition):
    """Another system block, by its name in quotes; expanded in a resolved model."""

    name: str


class Parallel(Composition):
    """Operands side by side; `operator` says which actions they take together.

    "||": those that both sides have; "|||": none; "|[]|": `actions`, and a side that does not have one
    of them blocks it.
    """

    operator: str
    operands: tuple[Composition, ...]
    actions: tuple[str, ...] = ()


class Hiding(Composition):
    """`operand / {a, b}`: commands with these actions become unlabelled."""

    operand: Composition
    actions: tuple[str, ...]


class ActionRenaming(Composition):
    """`operand {a<-b, c<-d}`: action a becomes b and c becomes d, all at once."""

    operand: Composition
    pairs: tuple[tuple[str, str], ...]


class SystemBlock(Record):
    """`system ... endsystem` or `system "name" ... endsystem`."""

    name: str | None
    composition: Composition
    position: Position = field(compare=False, repr=False)


class ModelSyntax(Record):
    """A whole model file as written (renamed modules written out)."""

    file: str
    type: ModelType
    constants: tuple[Constant, ...]
    formulas: tuple[Formula, ...]
    labels: tuple[Label, ...]
    variables: tuple[Variable, ...]  # globals
    modules: tuple[Module, ...]
    rewards: tuple[RewardStructure, ...]
    initial: Expression | None  # init ... endinit
    systems: tuple[SystemBlock, ...] = ()


# ------------------------------------------------------------------ after constants are known


class ResolvedVariable(Record):
    """A variable with its bounds as numbers; booleans have 0 and 1."""

    name: str
    low: int
    high: int
    initial: int
    is_bool: bool
    module: str | None  # None: global
    position: Position = field(compare=False, repr=False)


class ResolvedModel(Record):
    """A checked model: constants folded in, formulas expanded, every expression typed.

    In expressions only literals, variables and operators are left.  `variables` is in
    model order: globals first, then the modules' in order.  `system` None stands for all modules
    side by side, `m1 || m2 || ...`; references to other system blocks are expanded in it.
    `settled` None stands for the whole model; in states that satisfy it no command of the text is enabled.
    """

    file: str
    type: ModelType
    constants: dict[str, bool | int | float]
    variables: tuple[ResolvedVariable, ...]
    modules: tuple[Module, ...]
    labels: tuple[Label, ...]
    rewards: tuple[RewardStructure, ...]
    formulas: tuple[Formula, ...]
    initial: Expression | None
    system: Composition | None = None
    settled: Expression | None = None

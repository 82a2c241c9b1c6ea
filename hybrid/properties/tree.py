"""The property tree: PCTL, CSL and CTL operators beside the expressions of the model language.

Properties are expressions with a few nodes more, so that operators nest freely.
`"hungry" => P>=1 [ F "eat" ]` is a `Binary` of a `LabelReference` and a `Probability`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from mtbdd.base.records import Record
from mtbdd.language.errors import Fault, LanguageError, listed, suggestion
from mtbdd.language.syntax import Constant, Expression, Formula, Label, Position
from mtbdd.language.walk import expression_variables

# ------------------------------------------------------------------ operators


class Probability(Expression):
    """`P=? [ path ]`, `Pmax=? [ path ]` or `P>=0.9 [ path ]`.

    `optimum` is "min", "max" or None; `comparison` is one of < <= > >= with a `threshold`, or None for `=?`;
    `path` is a `Path`, in LTL an expression over several, an `AutomatonPath`, or a `ConditionalPath`.
    """

    optimum: str | None
    comparison: str | None
    threshold: Expression | None
    path: Expression

    @property
    def letter(self) -> str:
        """Return how the operator is written."""
        return "P"


class SteadyState(Expression):
    """`S=? [ states ]` or `S>=0.9 [ states ]`, or the same with `LRA` for `S`.

    `states` is a state formula; `optimum`, `comparison` and `threshold` are as for `Probability`.
    """

    comparison: str | None
    threshold: Expression | None
    states: Expression
    optimum: str | None = None

    @property
    def letter(self) -> str:
        """Return how the operator is written."""
        return "S"


class Elapsed(Expression):
    """Elapsed time, the reward `T` in place of a reward structure: steps, in a CTMC units of time."""


class Reward(Expression):
    """`R{"name"}=? [ target ]`, `T=? [ path ]` and their like.

    `optimum`, `comparison` and `threshold` are as for `Probability`.
    `structure` is the name in quotes, an expression for a number from 1, None for the first structure, or
    `Elapsed` in the operator T; `index` is its place among the model's structures from 0 (of `Elapsed`
    `mtbdd.language.syntax.ELAPSED`), set when the property is resolved.
    `discount` is what a step leaves of a reward's worth, None if everything.
    `target` is a `Path` (reachability reward), `Cumulative`, `Instantaneous` or `LongRun`.
    """

    structure: str | Expression | None
    optimum: str | None
    comparison: str | None
    threshold: Expression | None
    target: Expression
    index: int | None = None
    discount: Expression | None = None

    @property
    def letter(self) -> str:
        """Return how the operator is written."""
        return "T" if isinstance(self.structure, Elapsed) else "R"

    @property
    def place(self) -> int:
        """Return the place of the reward structure of a resolved property."""
        assert self.index is not None
        return self.index


class Quantified(Expression):
    """`A [ path ]`, all paths, or `E [ path ]`, some path; `quantifier` is "A" or "E", `path` a `Path`."""

    quantifier: str
    path: Expression


class AutomatonPath(Expression):
    """`HOA: {"file", "name" <- states, ...}` as the path formula of P: the runs that an automaton accepts.

    `file` is the path to read, `names` are propositions of the automaton and `states` the state formulas that
    they stand for; the others stand for labels.
    """

    file: str
    names: tuple[str, ...]
    states: tuple[Expression, ...]


class ConditionalPath(Expression):
    """`path || condition` as the path formula of P: a path formula under the condition of another one."""

    path: Expression
    condition: Expression


class Filter(Expression):
    """`filter(operator, operand, states)`: `operand` is a property; `states` None means all states.

    `operator` is one of min max argmin argmax count sum avg first range forall exists print printall state.
    The old forms `P=? [ path {states}{min} ]` are read as filters, too.
    """

    operator: str
    operand: Expression
    states: Expression | None


class MultiObjective(Expression):
    """`multi(P>=0.5 [ F a ], R{"x"}min=? [ C ])`: several objectives that one scheduler meets.

    `objectives` are `Probability` and `Reward`, `texts` their source texts.
    """

    objectives: tuple[Expression, ...]
    texts: tuple[str, ...]


class Quantile(Expression):
    """`quantile(min B, P>=p [ F{"x"}<=B states ])`: the least or greatest bound for which P holds.

    Of `quantile(min M, min N, P>=p [ F{"x"}<=M,{"y"}<=N states ])` the least pairs of bounds. `optimum` is
    "min" or "max"; `probability` is a `Probability` with a comparison, whose path has a `RewardBound` without
    ends for each of the `names`: they are what is requested.
    """

    optimum: str
    probability: Expression
    names: tuple[str, ...]


STATE_OPERATORS = (Probability, SteadyState, Reward, Quantified, Filter, MultiObjective, Quantile)
"""Operators that make a state formula of their operands."""

# ------------------------------------------------------------------ paths and rewards


class TimeBound(Expression):
    """The bound of a path operator: `<=k`, `<k`, `>=k`, `>k`, `=k` or `[a,b]`.

    An end, `lower` or `upper`, is None where it is missing; `=k` has both ends equal. `lower_strict` and
    `upper_strict` say that the end itself is left out.
    """

    lower: Expression | None
    upper: Expression | None
    lower_strict: bool
    upper_strict: bool


class RewardBound(Expression):
    """A path operator's bound on the reward gathered on the way: `{"x"}<=b`.

    `structure` and `index` are as for `Reward`. `most` is None where the bound is what a `Quantile` asks for,
    by the name `asked`, or a lower one alone; `is_strict` says that `most` itself is left out, `is_open` that
    `least` is.
    """

    structure: str | Expression | None
    most: Expression | None
    is_strict: bool
    index: int | None = None
    least: Expression | None = None
    is_open: bool = False
    asked: str | None = None


class RewardBounds(Expression):
    """Several `bounds` on rewards at once, `{"x"}<=b,{"y"}>=c`, or a single one that is no upper bound."""

    bounds: tuple[RewardBound, ...]


class Path(Expression):
    """`operator` is X, F or G, with `left` None, or one of U, W, R, between `left` and `right`.

    `bound` is None where there is none. Operands are state formulas in PCTL and CSL; in LTL they may be path
    formulas again.
    """

    operator: str
    left: Expression | None
    right: Expression
    bound: TimeBound | RewardBound | RewardBounds | None


PATH_OPERATORS = (Path, AutomatonPath, ConditionalPath)
"""Path formulas, inside of a state formula."""

OPERATORS = (*STATE_OPERATORS, *PATH_OPERATORS, RewardBound, RewardBounds)
"""Nodes that no expression of a model has."""


class Cumulative(Expression):
    """`C<=t`, or `C` (`time` None): the reward gathered up to a time, or in total.

    `discount` is that of `Cdiscount=d`; a resolved property has it in the `Reward`.
    """

    time: Expression | None
    discount: Expression | None = None


class Instantaneous(Expression):
    """`I=t`: the state reward at the time `time`."""

    time: Expression


class Divisor(Expression):
    """The reward structure that another one is divided by, `/{"x"}`; attributes are as for `Reward`."""

    structure: str | Expression | None
    index: int | None = None

    @property
    def place(self) -> int:
        """Return the place of the reward structure of a resolved property."""
        assert self.index is not None
        return self.index


class LongRun(Expression):
    """`S` or `LRA`: the reward per unit of time in the long run, or per unit of the reward `divisor`."""

    divisor: Divisor | None = None


# ------------------------------------------------------------------ files


class Property(Record):
    """One property.

    Attributes
    ----------
    name : str or None
        From `"name": ...`.
    formula : Expression
        The property.
    text : str
        Its source text on one line, without name and comments.
    position : Position
        Where the formula begins.
    error : LanguageError or None
        Why it cannot be answered: it asks for what is not supported (set by the parser; the formula is then a
        stand-in), or it cannot be resolved (if faults are kept).
    warnings : tuple of str
        What the answer comes with: how the question was understood.
    """

    name: str | None
    formula: Expression
    text: str
    position: Position = field(compare=False, repr=False)
    error: LanguageError | None = field(default=None, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)


class Properties(Record):
    """A properties file, as parsed or resolved.

    Attributes
    ----------
    file : str
        Its name.
    constants, formulas, labels : tuple
        Its declarations; empty once resolved.
    properties : tuple of Property
        In the order of the text.
    values : dict of str to bool, int or float
        Of the constants declared here; empty before they are resolved.
    """

    file: str
    constants: tuple[Constant, ...]
    formulas: tuple[Formula, ...]
    labels: tuple[Label, ...]
    properties: tuple[Property, ...]
    values: dict[str, bool | int | float] = field(default_factory=dict)

    def undeclared(self) -> frozenset[str]:
        """Return the names that are mentioned here and not declared here; the model may declare them.

        Notes
        -----
        Time: O(size of the properties).
        """
        texts: list[Expression] = [p.formula for p in self.properties]
        texts += [formula.expression for formula in self.formulas]
        texts += [label.expression for label in self.labels]
        texts += [constant.value for constant in self.constants if constant.value is not None]
        named: frozenset[str] = frozenset().union(*map(expression_variables, texts))
        return named - {c.name for c in self.constants} - {f.name for f in self.formulas}

    def select(self, keys: Iterable[str | int]) -> Properties:
        """Return these properties with some of them only.

        Parameters
        ----------
        keys : iterable of str or int
            Names, or places in the file counted from 0 (as ints or as text), in the order wanted.

        Returns
        -------
        Properties
            The declarations stay.

        Raises
        ------
        LanguageError
            If a key is neither; the message lists the names.

        Notes
        -----
        Selecting before resolving leaves no property for references by name to the others.
        """
        by_key: dict[str, Property] = {str(i): p for i, p in enumerate(self.properties)}
        names: dict[str, Property] = {}
        for p in self.properties:
            if p.name is not None:
                names.setdefault(p.name, p)
        by_key.update(names)
        chosen = []
        faults = []
        for key in keys:
            found = by_key.get(str(key))
            if found is None:
                known = (
                    f"a place from 0 to {len(self.properties) - 1}"
                    if self.properties
                    else "none (no properties)"
                )
                if names:
                    known += " or a name of " + listed(list(names))
                hint = suggestion(str(key), names)
                message = f"expected a property, {known}, got '{key}'{hint}"
                faults.append(Fault(Position(self.file, 1, 1), message))
            else:
                chosen.append(found)
        if faults:
            raise LanguageError(faults)
        return replace(self, properties=tuple(chosen))

"""The registry of quantities: the kinds of question that operators of properties ask.

A quantity is one record in `QUANTITIES`: its name in messages, its operator, how it is read, and the types of
its parts. What a part of the package does with quantities is a `Capability`: a table of functions by
quantity, filled beside the functions. A quantity that is in no table is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from hybrid.properties.path_parser import ADDITIVE, PathParser
from hybrid.properties.tree import (
    OPERATORS,
    PATH_OPERATORS,
    STATE_OPERATORS,
    AutomatonPath,
    ConditionalPath,
    Cumulative,
    Divisor,
    Elapsed,
    Filter,
    Instantaneous,
    LongRun,
    MultiObjective,
    Path,
    Probability,
    Quantified,
    Quantile,
    Reward,
    RewardBound,
    RewardBounds,
    SteadyState,
    TimeBound,
)
from mtbdd.base.records import Record
from mtbdd.language.errors import FaultCollector, UsageFault, listed, suggestion
from mtbdd.language.expression_parser import short_text
from mtbdd.language.syntax import Expression, LabelReference, ModelType, Position, Type, Unary
from mtbdd.language.types import TypeChecker
from mtbdd.language.walk import children, walk

Found = TypeVar("Found")
Function = TypeVar("Function", bound=Callable[..., Any])

Part = tuple[Expression | None, Type | None, str]
"""Quantity of an operator, its type (None: that of a time), and its name in messages."""


class PropertyQuantity(Record, eq=False):
    """A kind of question.

    `name`: as messages write it. `operator`: the node of the property tree that asks for it. `asks`: whether
    an operator of that type asks for it, where none of the quantities before it is requested. `part`: returns
    the part of P, S or R in brackets that has a type. `read`: reads what stands in the brackets of R, or
    returns None where something else stands there.
    """

    name: str
    operator: type[Expression]
    asks: Callable[[Any], bool] = lambda e: True
    part: Callable[[Any], Part] = lambda e: (None, None, "")
    read: Callable[[PathParser, Position], Expression | None] | None = None


def asked_quantity(formula: Expression) -> PropertyQuantity | None:
    """Return what an operator asks for; None for an expression that is no operator."""
    for quantity in QUANTITIES:
        if isinstance(formula, quantity.operator) and quantity.asks(formula):
            return quantity
    return None


class Capability(Generic[Found]):
    """A capability of one part of the package: a table of functions by quantity, empty at first.

    `refusal`: returns the exception for an expression and a reason. `lacking`: the reason where there is no
    other one; ``{}`` stands for the quantity's name.
    """

    def __init__(self, refusal: Callable[[Expression, str], Exception], lacking: str) -> None:
        self._refusal, self._lacking = refusal, lacking
        self._functions: dict[PropertyQuantity, Callable[..., Found] | str] = {}
        self._reasons: dict[PropertyQuantity, str] = {}

    def answers(self, *quantities: PropertyQuantity) -> Callable[[Function], Function]:
        """Return a decorator that puts a function into the table."""

        def put(function: Function) -> Function:
            self._functions |= dict.fromkeys(quantities, function)
            return function

        return put

    def found_in(self, places: Mapping[PropertyQuantity, str]) -> None:
        """Name functions as ``module:function``; modules are imported when they are requested."""
        self._functions |= places

    def refuses(self, reason: str, *quantities: PropertyQuantity) -> None:
        """Give quantities without a function a reason of their own, in which ``{}`` is the name."""
        self._reasons |= dict.fromkeys(quantities, reason)

    def __contains__(self, quantity: PropertyQuantity | None) -> bool:
        return quantity in self._functions

    def of(self, formula: Expression) -> Callable[..., Found]:
        """Return the function for what an operator asks.

        Raises Exception: there is none; that of the refusal, which names the quantity.
        """
        quantity = asked_quantity(formula)
        if quantity is None:
            raise self._refusal(formula, self._lacking.format("something else"))
        if quantity not in self._functions:
            raise self._refusal(formula, self._reasons.get(quantity, self._lacking).format(quantity.name))
        return self.of_quantity(quantity)

    def of_quantity(self, quantity: PropertyQuantity) -> Callable[..., Found]:
        """Return the function for a quantity that has one."""
        function = self._functions[quantity]
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = cast(Callable[..., Found], getattr(import_module(module), name))
        return function


# ------------------------------------------------------------------ path formulas


def has_path(formula: Expression) -> bool:
    """Return whether a path operator or an automaton occurs outside of P, S, R, A, E and filters."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, PATH_OPERATORS):
            return True
        if not isinstance(part, STATE_OPERATORS):
            waiting.extend(children(part))
    return False


def has_operator(formula: Expression) -> bool:
    """Return whether an expression holds an operator of properties at any depth."""
    return any(isinstance(part, OPERATORS) for part in walk(formula))


def without_negations(path: Any) -> tuple[Any, int]:
    """Return a path formula without the negations in front of its path operators, and how many these are."""
    count = 0
    while isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        path, count = path.operand, count + 1
    return path, count


def repeated_form(path: Expression) -> tuple[Expression, bool] | None:
    """Return the formula below ``G F`` or ``F G`` without bounds, and whether it is the latter; or None."""
    if not isinstance(path, Path) or path.operator not in ("F", "G"):
        return None
    inner = path.right
    if not isinstance(inner, Path) or path.bound or inner.bound:
        return None
    if inner.operator not in ("F", "G") or inner.operator == path.operator:
        return None
    return inner.right, path.operator == "F"


def _is_ltl(path: Expression) -> bool:
    """Return whether a path formula needs an automaton: more than one path operator, or one beside others.

    ``G F a`` and ``F G a`` over state formulas, and negations, need none.
    """
    if not isinstance(path, Path):
        return has_path(path)
    repeated = repeated_form(path)
    operands = (path.left, path.right) if repeated is None else (repeated[0],)
    return any(operand is not None and has_path(operand) for operand in operands)


def _probability(name: str, asks: Callable[[Any], bool] = lambda path: True) -> PropertyQuantity:
    """Return the quantity of P whose path formula, negations aside, is of some kind."""

    def asked(e: Probability) -> bool:
        return asks(without_negations(e.path)[0])

    return PropertyQuantity(name, Probability, asked, lambda e: (e.path, Type.BOOL, "what P asks about"))


AUTOMATON = _probability("P [ HOA: ... ]", lambda path: isinstance(path, AutomatonPath))
CONDITIONAL = _probability("a conditional probability", lambda path: isinstance(path, ConditionalPath))
LTL = _probability("LTL", _is_ltl)
REPEATED = _probability("P [ G F states ]", lambda path: repeated_form(path) is not None)
NEXT = _probability("P [ X states ]", lambda path: isinstance(path, Path) and path.operator == "X")
REWARD_BOUNDED = _probability(
    'P [ F{"x"}<=b states ]', lambda path: isinstance(path, Path) and isinstance(path.bound, RewardBound)
)
REWARDS_BOUNDED = _probability(
    'P [ F{"x"}<=b,{"y"}>=c states ]',
    lambda path: isinstance(path, Path) and isinstance(path.bound, RewardBounds),
)
WINDOW = _probability("P [ F<=k states ]", lambda path: isinstance(path, Path) and path.bound is not None)
UNTIL = _probability("P [ F states ]", lambda path: isinstance(path, Path))
NOW = _probability("P [ states ]")

# ------------------------------------------------------------------ rewards and the long run


def is_long_run(parser: PathParser) -> bool:
    """Return whether `S` or `LRA` stands alone next."""
    return (parser.at("S") or parser.at("LRA")) and parser.peek() in ("]", "{")


def _read_long_run(parser: PathParser, position: Position) -> Expression | None:
    if not is_long_run(parser):
        return None
    parser.index += 1
    return LongRun(position)


def _read_cumulative(parser: PathParser, position: Position) -> Expression | None:
    if not parser.take("C"):
        return None
    if parser.at("{") and parser.peek() == "discount" and parser.peek(2) == "=":
        parser.skip_options()
    time = parser.time() if parser.take("<=") else None
    if time is None and not (parser.at("]") or parser.at("{")):
        parser.fail_expected("'<=' or ']' after 'C'", "write C<=t, or C for the total reward")
    return Cumulative(position, time)


def _read_discounted(parser: PathParser, position: Position) -> Expression | None:
    if not (parser.at("Cdiscount") and parser.peek() == "="):
        return None
    parser.index += 2
    return Cumulative(position, None, parser.plain(lambda: parser.expression(ADDITIVE)))


def _read_instantaneous(parser: PathParser, position: Position) -> Expression | None:
    if not parser.take("I"):
        return None
    parser.expect("=", "after 'I'", "write I=t")
    return Instantaneous(position, parser.time())


def _end(e: Reward) -> Part:
    return e.target, Type.BOOL, "what T counts until" if e.letter == "T" else "what R is gathered until"


def _time(e: Any) -> Part:
    return e.target.time, None, ""


def _is_reached(e: Reward) -> bool:
    """Return whether a reward is requested until a set is reached: ``F states``, without a bound."""
    path = e.target
    return isinstance(path, Path) and path.operator == "F" and path.bound is None and not has_path(path.right)


def _is_discounted(e: Reward) -> bool:
    target = e.target
    return isinstance(target, Cumulative) and (e.discount is not None or target.discount is not None)


STEADY = PropertyQuantity("S", SteadyState, part=lambda e: (e.states, Type.BOOL, "what S asks about"))
RATIO = PropertyQuantity(
    'R{"x"}/{"y"} [ S ]', Reward, lambda e: isinstance(e.target, LongRun) and e.target.divisor is not None
)
AVERAGE = PropertyQuantity("R [ S ]", Reward, lambda e: isinstance(e.target, LongRun), read=_read_long_run)
DISCOUNTED = PropertyQuantity("R [ C ] with a discount", Reward, _is_discounted, _time, _read_discounted)
CUMULATIVE = PropertyQuantity(
    "R [ C<=t ]", Reward, lambda e: isinstance(e.target, Cumulative) and e.target.time is not None, _time,
    _read_cumulative,
)  # fmt: skip
TOTAL = PropertyQuantity("R [ C ]", Reward, lambda e: isinstance(e.target, Cumulative))
INSTANTANEOUS = PropertyQuantity(
    "R [ I=t ]", Reward, lambda e: isinstance(e.target, Instantaneous), _time, _read_instantaneous
)
ELAPSED_TIME = PropertyQuantity(
    "T [ F states ]", Reward, lambda e: isinstance(e.structure, Elapsed) and _is_reached(e), _end
)
REACHED = PropertyQuantity("R [ F states ]", Reward, _is_reached, _end)
COSAFE = PropertyQuantity("R or T until a co-safe formula", Reward, part=_end)

# ------------------------------------------------------------------ what stands around P, S and R

QUANTIFIED = PropertyQuantity("A [ path ] or E [ path ]", Quantified)
FILTER = PropertyQuantity("a filter", Filter)
MULTI = PropertyQuantity("multi(...)", MultiObjective)
QUANTILE = PropertyQuantity("quantile(...)", Quantile)

QUANTITIES = [
    AUTOMATON, CONDITIONAL, LTL, REPEATED, NEXT, REWARD_BOUNDED, REWARDS_BOUNDED, WINDOW, UNTIL, NOW,
    STEADY, RATIO, AVERAGE, DISCOUNTED, CUMULATIVE, TOTAL, INSTANTANEOUS, ELAPSED_TIME, REACHED, COSAFE,
    QUANTIFIED, FILTER, MULTI, QUANTILE,
]  # fmt: skip
"""In the order in which they are tried: the particular before the general."""


# Types of property operators: what may nest in what.

# Type of a filter's operand (None: any), and of its result (None: the same).
FILTER_OPERATORS: dict[str, tuple[Type | None, Type | None]] = {
    "min": (Type.DOUBLE, None),
    "max": (Type.DOUBLE, None),
    "argmin": (Type.DOUBLE, Type.BOOL),
    "argmax": (Type.DOUBLE, Type.BOOL),
    "count": (Type.BOOL, Type.INT),
    "sum": (Type.DOUBLE, None),
    "avg": (Type.DOUBLE, Type.DOUBLE),
    "first": (None, None),
    "range": (Type.DOUBLE, None),
    "forall": (Type.BOOL, Type.BOOL),
    "exists": (Type.BOOL, Type.BOOL),
    "print": (None, None),
    "printall": (None, None),
    "state": (None, None),
}


class PropertyTypeChecker(TypeChecker):
    """Finds the types of properties.

    Parameters
    ----------
    types : mapping of str to (Type or None)
        The type of every name.
    faults : FaultCollector
        Takes the faults.
    labels : mapping of str to object
        The labels that may be mentioned.
    properties : mapping of str to (Type or None)
        The type of each named property that may be mentioned.
    kind : ModelType
        A time is an integer in discrete time (steps), a double in continuous time; with choices an operator
        without a bound says min or max.
    structures : sequence of str or None
        The names of the model's reward structures.
    """

    def __init__(
        self,
        types: Mapping[str, Type | None],
        faults: FaultCollector,
        labels: Mapping[str, object],
        properties: Mapping[str, Type | None],
        kind: ModelType,
        structures: tuple[str | None, ...],
    ) -> None:
        super().__init__(types, faults, labels)
        self._properties = properties
        self._time = Type.DOUBLE if kind is ModelType.CTMC else Type.INT
        self._is_mdp = kind is ModelType.MDP
        self._objectives: set[int] = set()
        self._structures = structures
        self._asks_bound = False

    def text(self, expression: Expression) -> str:
        """Return an expression for a message; of property operators only the kind."""
        if type(expression) in _RULES:
            return _RULES[type(expression)][0]
        try:
            return short_text(expression)
        except TypeError:
            return "a property"

    def special(self, expression: Expression) -> Type | None:
        """Return the type of a property operator or a path formula."""
        if type(expression) in _RULES:
            return _RULES[type(expression)][1](self, expression)
        return super().special(expression)

    def label(self, e: LabelReference) -> Type | None:
        """Return the type of a named property or a label."""
        return self._properties[e.name] if e.name in self._properties else super().label(e)

    def _valued(self, e: Probability | SteadyState | Reward) -> Type:
        """Return the type of P, S, R or T: a number, or a truth where it is compared with a bound."""
        quantity = asked_quantity(e)
        assert quantity is not None
        self._optimum(e, quantity)
        if isinstance(e, Reward) and not isinstance(e.structure, Elapsed):
            self._structure(e)
            self._discount(e)
            if isinstance(e.target, LongRun) and e.target.divisor is not None:
                self._structure(e.target.divisor)
        part, kind, what = quantity.part(e)
        if part is not None and kind is None:
            self._check_time(part)
        elif part is not None and kind is not None:
            self.expect(part, kind, what)
        if e.threshold is None:
            return Type.DOUBLE
        self.expect(e.threshold, Type.DOUBLE, f"the bound of {e.letter}")
        return Type.BOOL

    def _quantified(self, e: Quantified) -> Type:
        self.expect(e.path, Type.BOOL, f"what {e.quantifier} asks about")
        return Type.BOOL

    def _automaton(self, e: AutomatonPath) -> Type:
        for name, states in zip(e.names, e.states, strict=True):
            self.expect(states, Type.BOOL, f'what the proposition "{name}" stands for')
        return Type.BOOL

    def _condition(self, e: ConditionalPath) -> Type:
        self.expect(e.path, Type.BOOL, "what P asks about")
        self.expect(e.condition, Type.BOOL, "the condition after '||'")
        return Type.BOOL

    def _optimum(self, e: Probability | SteadyState | Reward, quantity: PropertyQuantity) -> None:
        """Note that a value is requested without saying which of those that schedulers have."""
        is_objective = id(e) in self._objectives
        if e.comparison is not None or e.optimum is not None or not (self._is_mdp or is_objective):
            return
        letter = e.letter
        if is_objective:
            message = f"an objective without a bound says min or max: {letter}max=?"
        else:
            message = (
                f"{letter}=? has no single value on an MDP, which has one for every scheduler: write "
                f"{letter}min=? or {letter}max=?"
            )
        self.faults.extend([UsageFault(e.position, message)])

    def _path(self, e: Path) -> Type:
        if e.left is not None:
            self.expect(e.left, Type.BOOL, f"the left operand of '{e.operator}'")
        if isinstance(e.bound, (RewardBound, RewardBounds)):
            for bound in (e.bound,) if isinstance(e.bound, RewardBound) else e.bound.bounds:
                self._reward_bound(bound)
        elif e.bound is not None:
            self._bound(e.bound)
        self.expect(
            e.right, Type.BOOL, f"the {'operand' if e.left is None else 'right operand'} of '{e.operator}'"
        )
        return Type.BOOL

    def _reward_bound(self, bound: RewardBound) -> None:
        self._structure(bound)
        ends = [end for end in (bound.least, bound.most) if end is not None]
        for end in dict.fromkeys(ends) if bound.least is bound.most else ends:
            self.expect(end, Type.DOUBLE, "a bound on a reward")
        if not ends and not self._asks_bound:
            self.faults.add(bound.position, "a bound on a reward has no end; write <=b")

    def _bound(self, bound: TimeBound) -> None:
        # `=k` has one expression at both ends.
        ends = [bound.lower] if bound.lower is bound.upper else [bound.lower, bound.upper]
        for end in ends:
            if end is not None:
                self._check_time(end)

    def _check_time(self, time: Expression) -> None:
        what = "a bound on steps" if self._time is Type.INT else "a bound on time"
        self.expect(time, self._time, what)

    def _structure(self, e: Reward | RewardBound | Divisor) -> None:
        """Resolve the reward structure."""
        if not self._structures:
            self.faults.add(e.position, "the model has no rewards; add a rewards ... endrewards block to it")
        elif isinstance(e.structure, str) and e.structure not in self._structures:
            names = [name for name in self._structures if name is not None]
            known = (
                f"known are {listed(names)}" if names else "the model's have no names, write R=? or R{1}=?"
            )
            hint = suggestion(e.structure, names) or f"; {known}"
            self.faults.add(e.position, f'unknown reward structure "{e.structure}"{hint}')
        elif isinstance(e.structure, Expression):
            self.expect(e.structure, Type.INT, "the number of a reward structure")

    def _quantile(self, e: Quantile) -> Type:
        inner = e.probability
        path = inner.path if isinstance(inner, Probability) else None
        bound = path.bound if isinstance(path, Path) else None
        bounds = bound.bounds if isinstance(bound, RewardBounds) else (bound,)
        asked = [own.asked for own in bounds if isinstance(own, RewardBound)]
        if None in asked or sorted(map(str, asked)) != sorted(e.names):
            self.faults.add(
                e.position,
                "expected P with a path whose bound on a reward is the one asked for, as in "
                'quantile(min B, P>=p [ F{"x"}<=B states ])',
            )
        elif isinstance(inner, Probability) and inner.comparison is None:
            self.faults.add(e.position, "quantile(...) needs a bound on the probability: P>=p, not P=?")
        self._asks_bound = True
        self(inner)
        self._asks_bound = False
        return Type.DOUBLE

    def _multi(self, e: MultiObjective) -> Type:
        asked = bounded = 0
        self._objectives.update(map(id, e.objectives))
        for objective in e.objectives:
            self(objective)
            if not isinstance(objective, (Probability, Reward, SteadyState)):
                self.faults.add(
                    objective.position,
                    f"expected P, R or S as an objective of multi(...), got {self.text(objective)}",
                )
                return Type.BOOL
            letter = objective.letter
            if objective.comparison is None:
                asked += 1
                continue
            bounded += 1
            if objective.optimum is not None or objective.comparison in ("<", ">"):
                self.faults.add(
                    objective.position,
                    f"expected {letter}>= or {letter}<= as a bound in multi(...), got "
                    f"{letter}{objective.optimum or ''}{objective.comparison}; bounds there are not strict "
                    "and have no min or max",
                )
        if asked > 1 and bounded:
            self.faults.add(
                e.position,
                f"multi(...) asks for {asked} values and has bounds, too: leave one =?, or no bound",
            )
        return Type.DOUBLE if asked else Type.BOOL

    def _discount(self, e: Reward) -> None:
        target = e.target
        inner = target.discount if isinstance(target, Cumulative) else None
        for discount in (e.discount, inner):
            if discount is not None:
                self.expect(discount, Type.DOUBLE, "a discount")
        if e.discount is None and inner is None:
            return
        if e.discount is not None and inner is not None:
            self.faults.add(e.position, "a discount is given twice; take one of them out")
        if not isinstance(target, Cumulative) or target.time is not None:
            advice = 'write R{"name",discount=d}=? [ C ]'
            self.faults.add(e.position, f"a discount goes with the reward in all time: {advice}")
        if self._time is not Type.INT:
            advice = "ask for C<=t, or for S, without it"
            self.faults.add(e.position, f"a discount goes with steps, and a CTMC has none: {advice}")

    def _filter(self, e: Filter) -> Type | None:
        found = self(e.operand)
        if e.states is not None:
            self.expect(e.states, Type.BOOL, "the states of a filter")
        if e.operator not in FILTER_OPERATORS:
            hint = suggestion(e.operator, FILTER_OPERATORS) or f"; known are {', '.join(FILTER_OPERATORS)}"
            self.faults.add(e.position, f"unknown filter '{e.operator}'{hint}")
            return None
        wanted, result = FILTER_OPERATORS[e.operator]
        if wanted is not None:
            self.fits(e.operand, found, wanted, f"the operand of the filter '{e.operator}'")
        return found if result is None else result


_RULES: dict[type[Expression], tuple[str, Callable[[PropertyTypeChecker, Any], Type | None]]] = {
    Probability: ("P ... [ ... ]", PropertyTypeChecker._valued),
    SteadyState: ("S ... [ ... ]", PropertyTypeChecker._valued),
    Reward: ("R ... [ ... ]", PropertyTypeChecker._valued),
    Quantified: ("A [ ... ] or E [ ... ]", PropertyTypeChecker._quantified),
    Filter: ("filter(...)", PropertyTypeChecker._filter),
    MultiObjective: ("multi(...)", PropertyTypeChecker._multi),
    Quantile: ("quantile(...)", PropertyTypeChecker._quantile),
    Path: ("a path formula", PropertyTypeChecker._path),
    ConditionalPath: ("a path formula with a condition", PropertyTypeChecker._condition),
    AutomatonPath: ("a property", PropertyTypeChecker._automaton),
}
"""The name of a node in messages, and the rule of its type."""

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
)
from mtbdd.base.records import Record
from mtbdd.language.syntax import Expression, Position, Type, Unary
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

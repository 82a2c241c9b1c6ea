"""Expressions over variables by operators of Python, functions of NumPy, and plain functions.

An expression holds what to call; nothing is worked out before its variables get values, whole arrays of them.
"""

from __future__ import annotations

import inspect
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import ModellingError
from mtbdd.language.errors import listed, suggestion

Array = NDArray[Any]
_MOST_INTEGER = 2.0**62  # beyond, sums and products of 64-bit integers may wrap round

_NO_TRUTH = (
    "expected `&`, `|`, `~` and `numpy.where` in place of `and`, `or`, `not` and `if`, and `numpy.minimum` "
    "in place of `min`: an expression over variables has no truth value before the variables have values"
)


def _binary(function: Callable[..., Any], reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator."""

    def method(self: Quantity, other: Any) -> Any:
        if not isinstance(other, (Quantity, numbers.Real, np.generic)):
            return NotImplemented
        return Applied(function, (other, self) if reflected else (self, other))

    return method


def _unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the method of an operator of one operand."""
    return lambda self: Applied(function, (self,))


class Quantity:
    """Something that has a value in every state: a variable, a number, an operator on such, a function.

    Operators and functions of NumPy that work element by element make new ones.
    """

    def over(self) -> frozenset[ModelVariable]:
        """Return the variables that it depends on."""
        raise NotImplementedError

    def values(self, columns: dict[ModelVariable, Array]) -> Array:
        """Return the value for every row of values of its variables, shape (n,) or ().

        Raises Exception: what functions raise; `ModellingError` for integers that do not fit 64 bits.
        """
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise ModellingError(_NO_TRUTH)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Make an expression of a function of NumPy."""
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:
            return NotImplemented
        return Applied(ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        """Make an expression of `numpy.where`, of three arguments, or `numpy.clip`."""
        if function is np.where and len(inputs) == 3 and not options:
            return Applied(np.where, inputs)
        if function is np.clip and len(inputs) == 3 and not options:
            return np.minimum(np.maximum(inputs[0], inputs[1]), inputs[2])
        return NotImplemented

    __add__ = _binary(operator.add)
    __radd__ = _binary(operator.add, reflected=True)
    __sub__ = _binary(operator.sub)
    __rsub__ = _binary(operator.sub, reflected=True)
    __mul__ = _binary(operator.mul)
    __rmul__ = _binary(operator.mul, reflected=True)
    __truediv__ = _binary(operator.truediv)
    __rtruediv__ = _binary(operator.truediv, reflected=True)
    __floordiv__ = _binary(operator.floordiv)
    __rfloordiv__ = _binary(operator.floordiv, reflected=True)
    __mod__ = _binary(operator.mod)
    __rmod__ = _binary(operator.mod, reflected=True)
    __pow__ = _binary(operator.pow)
    __rpow__ = _binary(operator.pow, reflected=True)
    __and__ = _binary(operator.and_)
    __rand__ = _binary(operator.and_, reflected=True)
    __or__ = _binary(operator.or_)
    __ror__ = _binary(operator.or_, reflected=True)
    __xor__ = _binary(operator.xor)
    __rxor__ = _binary(operator.xor, reflected=True)
    __lt__ = _binary(operator.lt)
    __le__ = _binary(operator.le)
    __gt__ = _binary(operator.gt)
    __ge__ = _binary(operator.ge)
    __eq__ = _binary(operator.eq)
    __ne__ = _binary(operator.ne)
    __neg__ = _unary(operator.neg)
    __abs__ = _unary(operator.abs)
    __invert__ = _unary(operator.invert)
    __hash__ = object.__hash__


class ModelVariable(Quantity):
    """A variable of a builder: an integer in a range, or a boolean."""

    def __init__(self, owner: object, name: str, low: int, high: int, initial: int, is_bool: bool) -> None:
        self.owner = owner
        self.name = name
        self.low = low
        self.high = high
        self.start = initial
        self.is_bool = is_bool

    def over(self) -> frozenset[ModelVariable]:
        """Return the variable itself."""
        return frozenset((self,))

    def values(self, columns: dict[ModelVariable, Array]) -> Array:
        """Return the given values."""
        return columns[self]

    def __repr__(self) -> str:
        return self.name


class FixedNumber(Quantity):
    """A number."""

    def __init__(self, number: Any) -> None:
        whole = isinstance(number, (bool, np.bool_, numbers.Integral))
        try:
            self.number = np.asarray(number if whole else float(number))
        except OverflowError:
            raise ModellingError(f"expected a number that a double holds, got {number!r}") from None
        if self.number.dtype.kind not in "bif":
            raise ModellingError(f"expected an integer of at most 64 bits with a sign, got {number!r}")

    def over(self) -> frozenset[ModelVariable]:
        """Return none."""
        return frozenset()

    def values(self, columns: dict[ModelVariable, Array]) -> Array:
        """Return the number."""
        return self.number


class Applied(Quantity):
    """An operator or a function of NumPy on expressions."""

    def __init__(self, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        self.function = function
        self.operands = tuple(as_quantity(operand) for operand in operands)
        self._over = frozenset[ModelVariable]().union(*(o.over() for o in self.operands))

    def over(self) -> frozenset[ModelVariable]:
        """Return the variables of all operands."""
        return self._over

    def values(self, columns: dict[ModelVariable, Array]) -> Array:
        """Return the function of the operands' values."""
        return applied(self.function, [operand.values(columns) for operand in self.operands])


class FunctionOf(Quantity):
    """A function of the user's, called once with arrays of the values of its variables."""

    def __init__(
        self, function: Callable[..., Any], variables: Sequence[ModelVariable], by_name: bool
    ) -> None:
        self.function = function
        self.variables = tuple(variables)
        self.by_name = by_name

    def over(self) -> frozenset[ModelVariable]:
        """Return the function's variables."""
        return frozenset(self.variables)

    def values(self, columns: dict[ModelVariable, Array]) -> Array:
        """Call the function with copies, which it may change."""
        given = [columns[variable].copy() for variable in self.variables]
        if self.by_name:
            names = [variable.name for variable in self.variables]
            return plain(self.function(**dict(zip(names, given, strict=True))))
        return plain(self.function(*given))


def as_quantity(given: Any) -> Quantity:
    """Return an operand as an expression.

    Raises ModellingError: it is neither an expression nor a number.
    """
    if isinstance(given, Quantity):
        return given
    if isinstance(given, (bool, np.bool_, numbers.Real)):
        return FixedNumber(given)
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return as_quantity(given[()])
    raise ModellingError(
        f"expected an expression or a number, got {type(given).__name__}; values of an array are looked "
        "up with `builder.lookup(array, x)`"
    )


_DIVIDING = frozenset((operator.floordiv, operator.mod, np.floor_divide, np.remainder))

_GROWING = frozenset(
    (operator.add, operator.sub, operator.mul, operator.pow, operator.neg, operator.abs)
    + (np.add, np.subtract, np.multiply, np.power, np.negative, np.abs, np.square)
)


def applied(function: Callable[..., Any], operands: Sequence[Array]) -> Array:
    """Return a function of arrays.

    Booleans are numbers in arithmetic, integers that leave 64 bits are refused, `// 0` and `% 0` are NaN.
    """
    if function in _DIVIDING or function in _GROWING:
        operands = [o.astype(np.int64) if o.dtype.kind == "b" else o for o in operands]
    if function in _DIVIDING and all(o.dtype.kind == "i" for o in operands):
        zero = operands[1] == 0
        if zero.any():
            found = function(operands[0], np.where(zero, 1, operands[1]))
            return np.where(zero, np.nan, found)
    found = plain(function(*operands))
    if found.dtype.kind == "i" and function in _GROWING:
        rough = np.asarray(function(*(o.astype(np.float64) for o in operands)))
        if not (np.abs(rough) < _MOST_INTEGER).all():
            raise ModellingError("expected integers of less than 63 bits, got larger ones; use doubles")
    return found


def plain(values: Any) -> Array:
    """Return booleans, 64-bit integers or doubles as they are, other widths as these.

    Raises ModellingError: values of another kind.
    """
    found = np.asarray(values)
    if found.dtype.kind == "b":
        return found
    if found.dtype.kind == "i" or (found.dtype.kind == "u" and (found <= _MOST_INTEGER).all()):
        return found.astype(np.int64, copy=False)
    if found.dtype.kind == "f":
        return found.astype(np.float64, copy=False)
    raise ModellingError(f"expected booleans, integers or doubles, got values of type {found.dtype}")


def looked_up(table: Array, places: Sequence[Any]) -> Applied:
    """Return the entries of an array at places that are expressions, counted from 0, none from the end.

    Raises ModellingError: another number of places than the array has axes, or an array that does not hold
    numbers.
    """
    held = plain(np.array(table))
    if held.ndim != len(places) or not places:
        raise ModellingError(f"expected a place for every axis, {held.ndim} of them, got {len(places)}")

    def entries(*given: Array) -> Array:
        for axis, place in enumerate(given):
            if place.dtype.kind != "i":
                raise ModellingError(f"expected integers as places in an array, got {place.dtype}")
            if place.size and not (0 <= place.min() and place.max() < held.shape[axis]):
                raise ModellingError(
                    f"expected places from 0 to {held.shape[axis] - 1} on axis {axis} of an array, got "
                    f"{place.min()} to {place.max()} over the variables' ranges; give `numpy.clip` of them"
                )
        return np.asarray(held[tuple(given)])

    return Applied(entries, places)


def quantity_of(given: Any, variables: Mapping[str, ModelVariable], owner: object, what: str) -> Quantity:
    """Return what a user gave as an expression over a builder's variables.

    `variables`: by name. `owner`: the builder. `what`: what messages begin with. Raises ModellingError: it is
    something else, a function with a parameter that is no variable, or of another builder.
    """
    if isinstance(given, Quantity) or not callable(given):
        try:
            found = as_quantity(given)
        except ModellingError as error:
            raise ModellingError(f"{what}: {error}") from None
    else:
        found = FunctionOf(given, _parameters(given, variables, what), by_name=True)
    for variable in found.over():
        check_owner(variable, owner, what)
    return found


def check_owner(variable: ModelVariable, owner: object, what: str) -> None:
    """Refuse a variable of another builder."""
    if variable.owner is not owner:
        raise ModellingError(
            f"{what}: expected variables of this builder, got '{variable.name}' of another one; declare it "
            "here"
        )


def function_over(function: Any, over: Sequence[ModelVariable], owner: object, what: str) -> FunctionOf:
    """Return a function of given variables, in the order of its parameters."""
    if not callable(function):
        raise ModellingError(f"{what}: expected a function, got {type(function).__name__}")
    chosen = list(over)
    for variable in chosen:
        if not isinstance(variable, ModelVariable):
            raise ModellingError(f"{what}: over: expected variables, got {type(variable).__name__}")
        check_owner(variable, owner, what)
    return FunctionOf(function, chosen, by_name=False)


def _parameters(
    function: Callable[..., Any], variables: Mapping[str, ModelVariable], what: str
) -> list[ModelVariable]:
    """Return the variables that a function's parameters name; those with defaults may be others."""
    inner = function.pyfunc if isinstance(function, np.vectorize) else function
    try:
        parameters = inspect.signature(inner).parameters.values()
    except (TypeError, ValueError):
        raise ModellingError(
            f"{what}: expected a function whose parameters are known, got {function!r}; name the variables, "
            "`builder.function(f, over=[x, y])`"
        ) from None
    found = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ModellingError(
                f"{what}: expected a function whose parameters are names of variables, got '{parameter}'; "
                "name the variables, `builder.function(f, over=[x, y])`"
            )
        if parameter.name in variables:
            found.append(variables[parameter.name])
        elif parameter.default is parameter.empty:
            raise ModellingError(
                f"{what}: the function has a parameter '{parameter.name}', expected a variable's name: "
                f"{listed(list(variables)) or 'there are none'}{suggestion(parameter.name, variables)}; or "
                "name the variables, `builder.function(f, over=[x, y])`"
            )
    return found

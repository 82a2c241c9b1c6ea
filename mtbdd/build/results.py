"""Results of one operator or function for all values of its operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.evaluate import evaluate
from mtbdd.language.syntax import Binary, Call, Expression, Name


def operator_results(e: Expression, *operands: Iterable[Any]) -> dict[Any, Any]:
    """Return an operator's or function's results by operand (a pair of them), for all values of the operands.

    The values travel as arrays: numpy's rules then hold (1/0 is infinite), as on a grid.
    """
    names = tuple(Name(e.position, f"operand {i}") for i in range(len(operands)))
    if isinstance(e, Binary):
        pattern: Expression = Binary(e.position, e.operator, *names)
    elif isinstance(e, Call):
        pattern = Call(e.position, e.function, names)
    else:
        raise TypeError(f"not an operator: {type(e).__name__}")
    values = [list(own) for own in operands]
    axes = np.ix_(*(_array(own) for own in values))
    environment = {n.name: axis for n, axis in zip(names, axes, strict=True)}
    shape = tuple(len(own) for own in values)
    found = np.broadcast_to(np.asarray(evaluate(pattern, environment)), shape).reshape(-1).tolist()
    keys = values[0] if len(values) == 1 else product(*values)
    return dict(zip(keys, found, strict=True))


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array; ints beside NaN stay exact."""
    holes = [isinstance(v, float) for v in values]
    if any(holes) and not all(holes) and all(v != v for v in values if isinstance(v, float)):
        return np.array(values, dtype=np.longdouble)
    return np.array(values)

"""Models from matrices of SciPy, CuPy or NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.errors import InterchangeError
from hybrid.base.option_types import ModelTypeName
from hybrid.models.interchange.compressing import compressed
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    Places,
    StateVariable,
    Vector,
)
from hybrid.models.model import Model
from mtbdd.language.syntax import ModelType

_SOURCE = "from_scipy"


def from_scipy(
    matrix: Any,
    type: ModelTypeName = "dtmc",
    initial: int | Iterable[int] | NDArray[np.bool_] = 0,
    *,
    labels: Mapping[str, ArrayLike] | None = None,
    rewards: Mapping[str, ArrayLike] | None = None,
    choice_rewards: Mapping[str, ArrayLike] | None = None,
    choices: ArrayLike | None = None,
    actions: Iterable[str | None] | None = None,
    variables: Mapping[str, ArrayLike] | None = None,
    fix_deadlocks: bool = True,
) -> Model:
    """Return the model of a sparse or dense matrix, as decision diagrams.

    Parameters
    ----------
    matrix : SciPy or CuPy sparse matrix, or ndarray, shape (n_rows, n_states)
        Probabilities; of a CTMC rates (a negative diagonal, as generators have, is refused). An MDP has a row
        a choice, those of a state next to each other.
    type : {"dtmc", "ctmc", "mdp"}
    initial : int, iterable of int, or ndarray of bool, shape (n_states,)
        The initial state, or several.
    labels : mapping of str to ndarray of bool, shape (n_states,), optional
        Also numbers of states.
    rewards : mapping of str to ndarray of float64, shape (n_states,), optional
        Earned in a state: a step, in a CTMC a unit of time.
    choice_rewards : mapping of str to ndarray of float64, shape (n_rows,), optional
        Earned when a row's choice is taken.
    choices : ndarray of int64, shape (n_states,) or (n_states + 1,), optional
        Of an MDP: the row where each state's choices begin.
    actions : iterable of str or None, n_rows in all, optional
        Of an MDP: the names of the choices.
    variables : mapping of str to ndarray of int64 or bool, shape (n_states,), optional
        Values of state variables. Properties may speak of them, and they are what the matrix is compressed
        by; without them the states' numbers are.
    fix_deadlocks : bool
        Give states without transitions a self-loop; otherwise they are an error.

    Returns
    -------
    Model

    Raises
    ------
    InterchangeError
        What is given is no model: shapes that do not fit, numbers that are no probabilities or rates, rows
        that do not add up to 1 within 1e-5; reported with the row or entry.

    Notes
    -----
    Time: see `hybrid.models.interchange.compressing.compressed`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, hybrid
    >>> P = scipy.sparse.csr_array(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    >>> model = hybrid.from_scipy(P, labels={"goal": np.array([False, False, True])})
    >>> hybrid.check(model, 'P=? [ F "goal" ]').value
    1.0
    """
    kind = _type(type)
    row_starts, columns, values, n_states = _rows(matrix)
    n_rows = len(row_starts) - 1
    starts = _choice_starts(kind, choices, n_rows, n_states)
    names, numbers = _actions(kind, actions, n_rows)
    declared, valuations = _variables(variables or {}, n_states)
    model = ExplicitModel(
        kind,
        n_states,
        row_starts,
        columns,
        values,
        _mask("initial", initial, n_states),
        starts,
        names,
        numbers,
        declared,
        valuations,
        {name: _mask(f'label "{name}"', given, n_states) for name, given in (labels or {}).items()},
        _rewards(rewards or {}, choice_rewards or {}),
        source=_SOURCE,
        places=Places(_SOURCE),
    )
    return Model.of(compressed(model, fix_deadlocks=fix_deadlocks))


def _fault(message: str) -> InterchangeError:
    return InterchangeError(f"{_SOURCE}: {message}")


def _type(name: str) -> ModelType:
    try:
        return ModelType(name)
    except ValueError:
        raise _fault(f"type: expected dtmc, ctmc or mdp, got {name!r}") from None


def _on_host(given: Any) -> Any:
    """Return an array or a matrix of CuPy as one of NumPy or SciPy; others as they are."""
    return given.get() if type(given).__module__.partition(".")[0] in ("cupy", "cupyx") else given


def _rows(matrix: Any) -> tuple[Numbers, Numbers, Vector, int]:
    """Return a matrix as compressed sparse rows on the host."""
    matrix = _on_host(matrix)
    if hasattr(matrix, "tocsr"):
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise _fault(
                f"matrix: expected two dimensions of real numbers, got {matrix.ndim} of {matrix.dtype}"
            )
        csr = matrix.tocsr()
        starts, columns = (np.asarray(part, dtype=np.int64) for part in (csr.indptr, csr.indices))
        return starts, columns, np.asarray(csr.data, dtype=np.float64), int(csr.shape[1])
    try:
        given = np.asarray(matrix)
        if given.dtype.kind not in "biuf":
            raise TypeError
        dense = given.astype(np.float64)
    except (TypeError, ValueError):
        got = getattr(matrix, "dtype", type(matrix).__name__)
        raise _fault(f"matrix: expected real numbers, got {got}") from None
    if dense.ndim != 2:
        raise _fault(f"matrix: expected two dimensions, got shape {dense.shape}")
    rows, columns = np.nonzero(dense)
    starts = pointers(np, np.bincount(rows, minlength=dense.shape[0]))
    return starts, columns.astype(np.int64), dense[rows, columns], dense.shape[1]


def _choice_starts(kind: ModelType, choices: ArrayLike | None, n_rows: int, n_states: int) -> Numbers | None:
    """Return where the choices of every state begin; None for a chain, whose matrix is square."""
    if kind is not ModelType.MDP:
        if choices is not None:
            raise _fault(f"choices: expected none, for a {kind.value} has one row a state")
        if n_rows != n_states:
            raise _fault(
                f"matrix: expected a square one for a {kind.value}, got shape ({n_rows}, {n_states})"
            )
        return None
    if choices is None:
        raise _fault("choices: expected the row where each state's choices begin, as an MDP needs them")
    starts = _integers("choices", choices)
    if len(starts) == n_states:
        starts = np.append(starts, n_rows)
    if len(starts) != n_states + 1:
        raise _fault(f"choices: expected {n_states} or {n_states + 1} numbers, got {len(starts)}")
    return starts


def _integers(what: str, given: ArrayLike) -> Numbers:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _fault(f"{what}: expected integers in one dimension, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def _mask(what: str, given: Any, n_states: int) -> Mask:
    """Return states given by a mask, a number or several numbers as a mask."""
    given = _on_host(given)
    if not isinstance(given, np.ndarray):
        given = np.asarray(list(given) if isinstance(given, Iterable) else [given])
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise _fault(
            f"{what}: expected a mask of {n_states} states or their numbers, got {given.dtype} of shape "
            f"{given.shape}"
        )
    if given.dtype == np.bool_:
        if len(given) != n_states:
            raise _fault(f"{what}: expected {n_states} elements, got {len(given)}")
        return np.asarray(given, dtype=np.bool_)
    wrong = (given < 0) | (given >= n_states)
    if bool(wrong.any()):
        raise _fault(f"{what}: expected states from 0 to {n_states - 1}, got {given[np.argmax(wrong)]}")
    mask = np.zeros(n_states, dtype=np.bool_)
    mask[given] = True
    return mask


def _actions(
    kind: ModelType, actions: Iterable[str | None] | None, n_rows: int
) -> tuple[tuple[str, ...], Numbers | None]:
    """Return the names of actions, and every row's."""
    if actions is None:
        return (), None
    if kind is not ModelType.MDP:
        raise _fault(f"actions: expected none, for a {kind.value} has no choices")
    given = list(actions)
    if len(given) != n_rows:
        raise _fault(f"actions: expected {n_rows} names, got {len(given)}")
    for row, name in enumerate(given):
        if name is not None and not isinstance(name, str):
            raise _fault(f"actions[{row}]: expected a name or None, got {name!r}")
    names = tuple(dict.fromkeys(name for name in given if name is not None))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([-1 if name is None else place[name] for name in given], dtype=np.int64)


def _variables(
    given: Mapping[str, ArrayLike], n_states: int
) -> tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]:
    """Return the declarations and values of state variables."""
    values: dict[str, NDArray[Any]] = {}
    for name, column in given.items():
        if not name.isidentifier():
            raise _fault(f"variables: expected names, got {name!r}")
        array = np.asarray(column)
        if array.shape != (n_states,) or array.dtype.kind not in "iub":
            raise _fault(
                f"variable {name}: expected {n_states} integers or booleans, got {array.dtype} of shape "
                f"{array.shape}"
            )
        values[name] = array if array.dtype == np.bool_ else array.astype(np.int64)
    return tuple(StateVariable.of(*item) for item in values.items()), values


def _rewards(states: Mapping[str, ArrayLike], choices: Mapping[str, ArrayLike]) -> tuple[ExplicitReward, ...]:
    """Return reward structures by name."""

    def vector(name: str, given: Mapping[str, ArrayLike]) -> Vector | None:
        if name not in given:
            return None
        try:
            return np.asarray(given[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise _fault(f'reward "{name}": expected numbers, got {given[name].__class__.__name__}') from None

    names = dict.fromkeys([*states, *choices])
    return tuple(ExplicitReward(name, vector(name, states), vector(name, choices)) for name in names)

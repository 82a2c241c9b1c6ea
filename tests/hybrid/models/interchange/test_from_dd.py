"""Models from a caller's diagrams: values against dense algebra, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.models.interchange import InterchangeError
from hybrid.models.interchange.from_dd import from_dd
from mtbdd.build.model import SymbolicModel
from tests.builders.dense import dense_matrix
from tests.builders.diagram_packages import FASTEST, MANAGERS
from tests.exploring import rounds

N = 3
ROWS, COLUMNS = ["x0", "x1", "x2"], ["y0", "y1", "y2"]


def new_manager(kind: Any, rng: np.random.Generator) -> Any:
    bdd = kind()
    bdd.configure(reordering=False)
    bdd.declare(*rng.permutation(np.array([*ROWS, *COLUMNS, "free"], dtype=object)).tolist())
    return bdd


def cube(bdd: Any, names: list[str], number: int) -> Any:
    return bdd.cube({name: bool(number >> i & 1) for i, name in enumerate(names)})


def states_of(bdd: Any, numbers: Any) -> Any:
    node = bdd.false
    for number in numbers:
        node |= cube(bdd, ROWS, int(number))
    return node


def parts_of(bdd: Any, dense: np.ndarray, rng: np.random.Generator) -> list[tuple[float, Any]]:
    """Return a part a value; some values are split into two that overlap and add up."""
    parts = []
    for value in np.unique(dense[dense > 0]).tolist():
        node = bdd.false
        for row, column in np.argwhere(dense == value).tolist():
            node |= cube(bdd, ROWS, row) & cube(bdd, COLUMNS, column)
        split = rng.random() < 0.3
        parts += [(value / 4, node), (value / 4 * 3, node)] if split else [(value, node)]
    return parts


def numbers_of(model: SymbolicModel) -> np.ndarray:
    """Return the caller's number of every state of a model."""
    states = model.describe(np.arange(model.n_states))
    return np.array([sum(int(state[name]) << i for i, name in enumerate(ROWS)) for state in states])


def codes_of(model: SymbolicModel) -> np.ndarray:
    """Return where the caller's states stand among the assignments of a model's bits."""
    names = [v.name for v in model.encoding.variables]
    shifts = [len(names) - 1 - names.index(name) for name in ROWS]
    return np.array(
        [sum((number >> i & 1) << shift for i, shift in enumerate(shifts)) for number in range(1 << N)]
    )


def random_chain(rng: np.random.Generator) -> np.ndarray:
    """Return rows with one to four successors, of equal or of unequal probabilities."""
    size = 1 << N
    dense = np.zeros((size, size))
    for row in range(size):
        weights = ([1.0], [0.5, 0.5], [1 / 3, 2 / 3], [0.25] * 4)[rng.integers(0, 4)]
        dense[row, rng.choice(size, len(weights), replace=False)] = weights
    return dense


def reach_probability(matrix: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the probability to reach a set, by the least solution of a dense system."""
    size = len(matrix)
    can = goal.copy()
    for _ in range(size):
        can |= (matrix[:, can] > 0).any(axis=1)
    open_ = can & ~goal
    system = np.eye(open_.sum()) - matrix[np.ix_(open_, open_)]
    found = goal.astype(float)
    found[open_] = np.linalg.solve(system, matrix[np.ix_(open_, goal)].sum(axis=1))
    return found


@pytest.mark.parametrize("kind", MANAGERS.values(), ids=MANAGERS)
def test_random_chains_have_the_values_of_dense_algebra(kind: Any, rng: np.random.Generator) -> None:
    for _ in range(rounds(75)):
        dense = random_chain(rng)
        bdd = new_manager(kind, rng)
        start = int(rng.integers(0, 1 << N))
        goal = rng.random(1 << N) < 0.3
        model = from_dd(
            bdd,
            rows=ROWS,
            columns=COLUMNS,
            parts=parts_of(bdd, dense, rng),
            initial=cube(bdd, ROWS, start),
            labels={"goal": states_of(bdd, np.flatnonzero(goal))},
        )
        numbers = numbers_of(model)
        expected = np.linalg.matrix_power(np.eye(1 << N) + (dense > 0), 1 << N)[start] > 0
        assert sorted(numbers.tolist()) == np.flatnonzero(expected).tolist()
        found = dense_matrix(model.matrix)
        codes = codes_of(model)
        assert np.allclose(
            found[np.ix_(codes, codes)], np.where(expected[:, None], dense, 0), rtol=1e-15, atol=0
        )
        answer = hybrid.check(model, 'P=? [ F "goal" ]')
        assert answer.value == pytest.approx(reach_probability(dense, goal)[start], abs=1e-9)


def small(**changes: Any) -> SymbolicModel:
    """A coin that is thrown until it shows heads; the initial state is tails."""
    bdd = MANAGERS[FASTEST]()
    bdd.declare("next", "free", "heads")
    x, y = bdd.var("heads"), bdd.var("next")
    given: dict[str, Any] = {
        "rows": ["heads"],
        "columns": ["next"],
        "parts": [(0.5, ~x), (1.0, x & y)],
        "initial": ~x,
        "labels": {"done": x},
    }
    given |= {key: change(bdd) if callable(change) else change for key, change in changes.items()}
    return from_dd(given.pop("bdd", bdd), **given)


def test_a_coin() -> None:
    model = small(
        rewards=lambda b: {
            "throws": [(1, ~b.var("heads"))],
            "stays": [(3.0, ~b.var("heads") & ~b.var("next"))],
        }
    )
    assert model.n_states == 2
    assert model.entry_units == small().entry_units
    assert [str(v.name) for v in model.encoding.variables] == ["heads"]
    assert hybrid.check(model, "P=? [ F heads ]").value == 1.0
    assert hybrid.check(model, 'P=? [ F<=3 "done" ]').value == 0.875
    assert hybrid.check(model, 'R{"throws"}=? [ F "done" ]').value == pytest.approx(2.0)
    assert hybrid.check(model, 'R{"stays"}=? [ F "done" ]').value == pytest.approx(3.0)


def test_rows_are_divided_by_their_sums() -> None:
    def third(b):
        return [
            (0.333333, ~b.var("heads") & b.var("next")),
            (0.666666, ~b.var("heads") & ~b.var("next")),
            (1.0, b.var("heads") & b.var("next")),
        ]

    model = small(parts=third)
    assert model.matrix.terminals.tolist() == pytest.approx([1 / 3, 2 / 3, 1.0], abs=1e-15)
    assert model.entry_units < 50


def test_rates_of_a_ctmc() -> None:
    model = small(
        type="ctmc",
        parts=lambda b: [(3.0, ~b.var("heads") & b.var("next")), (0.5, b.var("heads") & ~b.var("next"))],
    )
    assert model.exit_rates(model.index).tolist() == [3.0, 0.5]
    assert hybrid.check(model, "S=? [ heads ]").value == pytest.approx(6 / 7)
    assert hybrid.check(model, 'P=? [ F<=0.5 "done" ]').value == pytest.approx(1 - math.exp(-1.5))


def test_actions_of_an_mdp() -> None:
    def actions(b):
        return {
            "throw": [(0.25, ~b.var("heads") & b.var("next")), (0.75, ~b.var("heads") & ~b.var("next"))],
            "turn": [(1.0, ~b.var("heads") & b.var("next"))],
        }

    def rewards(b):
        return {"cost": [(1.0, ~b.var("heads") & b.var("next"))]}

    model = small(type="mdp", parts=actions, rewards=rewards)
    assert (model.n_states, model.n_choices, len(model.warnings)) == (2, 3, 1)
    assert hybrid.check(model, 'Pmin=? [ F<=2 "done" ]').value == 1 - 0.75**2
    assert hybrid.check(model, 'Pmax=? [ F<=2 "done" ]').value == 1.0
    assert hybrid.check(model, 'Rmax=? [ F "done" ]').value == pytest.approx(1.0)
    assert {part.action for layer in model.layers for part in layer.parts} == {"throw", "turn", None}


def test_states_without_a_transition_get_a_loop_or_are_refused() -> None:
    model = small(
        parts=lambda b: [(0.5, ~b.var("heads"))],
        rewards=lambda b: {"moves": [(1.0, b.var("next")), (1.0, ~b.var("next"))]},
    )
    assert "got a self-loop" in model.warnings[0]
    assert hybrid.check(model, 'R{"moves"}=? [ C<=3 ]').value == 1.75
    assert hybrid.check(model, 'P=? [ F "deadlock" ]').value == 1.0
    with pytest.raises(InterchangeError, match=r"got none from \(heads=true\)"):
        small(parts=lambda b: [(0.5, ~b.var("heads"))], fix_deadlocks=False)


def test_a_billion_states_are_read_as_diagrams() -> None:
    """Thirty bits, each of which is set at last: no list of states or transitions is made."""
    bdd = MANAGERS[FASTEST]()
    rows, columns = [f"r{i}" for i in range(30)], [f"c{i}" for i in range(30)]
    bdd.declare(*(name for pair in zip(rows, columns, strict=True) for name in pair))
    flips = bdd.false
    for chosen in range(30):
        moves = bdd.var(columns[chosen])
        for i in range(30):
            if i != chosen:
                moves &= ~bdd.apply("^", bdd.var(rows[i]), bdd.var(columns[i]))
        flips |= moves & ~bdd.var(rows[chosen])
    model = from_dd(
        bdd,
        rows=rows,
        columns=columns,
        parts=[(1.0, flips)],
        type="ctmc",
        initial=bdd.cube(dict.fromkeys(rows, False)),
        labels={"all": bdd.cube(dict.fromkeys(rows, True))},
    )
    assert model.n_states == 2**30
    assert model.given is not None
    assert model.given.exits.terminals.tolist() == [float(k) for k in range(1, 31)]


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "unknown row": ({"rows": ["tails"]}, "rows: .*'tails'"),
    "row and column": ({"columns": ["heads"]}, "columns: .*'heads' again, after `rows`"),
    "twice": ({"rows": ["heads", "heads"]}, "rows: .*'heads' again"),
    "counts": ({"rows": ["heads", "free"]}, "columns: .* 2 rows and 1 columns"),
    "none": ({"rows": [], "columns": []}, "rows: expected at least one"),
    "one name": ({"rows": "heads"}, "rows: expected a list"),
    "no manager": ({"bdd": object()}, "bdd: expected a manager"),
    "stray variable": ({"parts": lambda b: [(1.0, b.var("free"))]}, r"parts\[0\]: .*'free'"),
    "label of columns": ({"labels": lambda b: {"x": b.var("next")}}, "labels.*'next'"),
    "initial of columns": ({"initial": lambda b: b.var("next")}, "initial: .*'next'"),
    "no initial": ({"initial": lambda b: b.false}, "initial: .* got the empty set"),
    "another manager": (
        {"initial": lambda b: MANAGERS[FASTEST]().true},
        "initial: expected a function of the given",
    ),
    "no node": ({"initial": 3}, "initial: expected a function of the given manager, got int"),
    "negative": ({"parts": lambda b: [(-0.5, b.true)]}, r"parts\[0\]: .* -0.5"),
    "nan": ({"parts": lambda b: [(math.nan, b.true)]}, r"parts\[0\]: expected a finite number, got nan"),
    "infinite": (
        {"parts": lambda b: [(math.inf, b.true)], "type": "ctmc"},
        "expected a finite number, got inf",
    ),
    "huge": ({"parts": lambda b: [(10**400, b.true)], "type": "ctmc"}, "expected a finite number"),
    "over one": ({"parts": lambda b: [(1.5, b.true)]}, "at most 1, got 1.5"),
    "text": ({"parts": lambda b: [("0.5", b.true)]}, "expected a number first, got str"),
    "triple": ({"parts": lambda b: [(0.5, b.true, 1)]}, "expected a pair"),
    "sum": ({"parts": lambda b: [(0.25, b.true)]}, r"state \(heads=(true|false)\): .* add up to 1, got 0.5"),
    "overlap": ({"parts": lambda b: [(0.5, b.true), (0.25, b.true)]}, "add up to 1, got 1.5"),
    "tiny": ({"parts": lambda b: [(1e-320, b.true)], "type": "ctmc"}, "at least 2.23e-308"),
    "kind": ({"type": "pta"}, "type: expected one of dtmc, ctmc, mdp, got 'pta'"),
    "actions of a chain": ({"parts": lambda b: {"a": [(0.5, b.true)]}}, "type='mdp'"),
    "mdp without actions": ({"type": "mdp"}, "expected a mapping of actions"),
    "label name": ({"labels": lambda b: {'a"b': b.true}}, "labels: expected names without quotes"),
    "label taken": ({"labels": lambda b: {"init": b.true}}, "other than init"),
    "signs": ({"rewards": lambda b: {"r": [(0.1, b.true), (-2.0, b.var("heads"))]}}, "one sign"),
    "no labels": ({"labels": [1]}, "labels: expected a mapping"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arguments_are_told(name: str) -> None:
    changes, message = HOSTILE[name]
    with pytest.raises(InterchangeError, match=f"^from_dd: .*{message}|^from_dd: {message}"):
        small(**changes)


@pytest.mark.parametrize("other", [0.5, 0.499999])
def test_rows_near_to_one_are_off_by_what_they_lack(other: float) -> None:
    """Tails lack seven units of a half; heads is near to one as well, or is divided by its sum."""
    less = 0.5 - 7 * 2.0**-53

    def parts(b: Any) -> list[tuple[float, Any]]:
        x, y = b.var("heads"), b.var("next")
        return [(0.5, ~x & y), (less, ~x & ~y), (0.5, x & y), (other, x & ~y)]

    model = small(parts=parts)
    row = [Fraction(0.5), Fraction(less)]
    exact = [value / sum(row) for value in row]
    terminals = [Fraction(v) for v in model.matrix.terminals.tolist()]
    told = Fraction(model.matrix.units) / 2**53
    for value in exact:
        assert any(abs(found - value) <= told * value for found in terminals)

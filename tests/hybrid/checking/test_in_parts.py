"""Answers in parts of a model: those of one part, whatever the number of parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis import systems
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.communicators import in_threads
from hybrid.base.errors import HybridError, OptionError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.filters import gathered
from hybrid.checking.in_parts import in_parts, part_of
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.rounding import step_slack
from hybrid.matrix.space.host import space_of
from hybrid.properties import load_properties, parse_properties, resolve_properties
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import states_from
from tests.builders.models import build
from tests.builders.part_questions import QUESTIONS, WALK, agree, asked
from tests.exploring import each
from tests.gpu_kernels.devices import device_of
from tests.gpu_kernels.host_device import COMPILER

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CONSTANTS: dict[str, dict[str, Any]] = {
    "biased_die": {"N": 6, "first": 2},
    "brp": {"N": 3, "MAX": 1},
    "cluster": {"N": 2},
    "coin": {"K": 1},
    "disk": {"Q": 3},
    "fms": {"n": 1},
    "inventory": {"M": 8},
    "jobs": {"N": 2},
    "kanban": {"t": 1},
    "mutex": {"M": 1},
    "relay": {"H": 2, "M": 1},
    "servers": {"N": 4},
    "tandem": {"c": 3},
    "tasks": {"delay": 1.0},
    "wakeup": {"K": 1},
}
SLOW = ("coin", "jobs", "mutex", "philosophers", "teams")
"""Every part makes the automata of LTL, and the graph searches of MDPs, by itself."""
SLOWEST = ("mutex", "teams")
"""Their questions are asked of others, too: of the philosophers, and in test_questions_in_parts.py."""
ASKED = ("brp", "coin", "fms", "herman", "jobs", "polling", "relay", "tandem")
"""The others are like these."""


def example(name: str) -> tuple[SymbolicModel, Path]:
    model = hybrid.load(str(EXAMPLES / f"{name}.prism"), constants=CONSTANTS.get(name, {}))
    return model, EXAMPLES / f"{name}.props"


NAMES = sorted({p.stem for p in EXAMPLES.glob("*.prism")} - {"quick_sort"})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ASKED else pytest.mark.nightly)
        for name in NAMES
        if name not in SLOWEST
    ],
)
def test_examples_in_parts(name: str) -> None:
    model, file = example(name)
    properties = resolve_properties(load_properties(file), model.source)
    # Every third one of many, others of the next example.
    found = [p for p in properties.properties if not ("multi(" in p.text and "LRA" in p.text)]
    some = found[NAMES.index(name) % 3 :: 3] or found[:1]
    properties = replace(properties, properties=tuple(some))
    ones = hybrid.check_all(model, properties)
    quick = [other for other in NAMES if other not in SLOW]
    for ranks in (2,) if name in SLOW else [(1, 2, 3, 4, 7)[quick.index(name) % 5]]:
        for one, many in zip(ones, hybrid.check_all(model, properties, ranks=ranks), strict=True):
            assert agree(one, many), (ranks, one.property, one.value, many.value, many.error)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_questions_in_parts(name: str, backend: Any) -> None:
    model, questions = asked(name)
    # Each question is asked of one backend.
    questions = [text for k, text in enumerate(questions) if (k % 3 == 0) == (backend == "reference")]
    properties = ";\n".join(questions)
    ones = hybrid.check_all(model, properties, backend=backend)
    ranks = 3 if backend == "reference" else (2, 4)[sorted(QUESTIONS).index(name) % 2]
    found = hybrid.check_all(model, properties, ranks=ranks, backend=backend)
    for text, one, many in zip(questions, ones, found, strict=True):
        assert one.error is None and many.error is None, (text, ranks, one.error, many.error)
        assert agree(one, many), (text, ranks, one.value, many.value)


@pytest.mark.parametrize(
    ("text", "method"),
    each(
        ["P=? [ x>1 U x=n ]", 'R{"up"}=? [ F x=n ]', "S=? [ x>2 ]"],
        ["jacobi", "jor", "power", "bicgstab", "interval", "optimistic"],
    ),
)
def test_methods_in_parts(method: Any, text: str) -> None:
    model, _ = asked("walk")
    options: dict[str, Any] = {"method": method, "epsilon": 1e-10}
    one = hybrid.check(model, text, throw=False, **options)
    many = hybrid.check(model, text, ranks=3, throw=False, **options)
    if one.value is None:
        assert many.value is None and many.error == one.error
        return
    assert many.value == pytest.approx(one.value, rel=1e-8)
    assert (many.lower is None) == (one.lower is None)


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_any_states_may_belong_to_any_part(name: str, rng: np.random.Generator) -> None:
    model, questions = asked(name)
    part = rng.permutation(np.arange(model.n_states) * 3 // model.n_states)
    owners = tuple(states_from(model.manager, model.index, part == p) for p in range(3))
    properties = resolve_properties(parse_properties(";\n".join(questions[2::4])), model.source).properties

    def answers(own: SymbolicModel) -> list[Answer]:
        return [Checker(own, CheckOptions()).answer(prop) for prop in properties]

    for prop, one, many in zip(properties, answers(model), in_parts(model, 3, answers, owners), strict=True):
        assert agree(one, many), (prop, one.value, many.value)


TIMED = ['P=? [ true U<=1.5 "end" ]', 'R{"up"}=? [ S ]', 'R{"up"}=? [ F x=n ]']


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
@pytest.mark.parametrize(("few", "backend"), [(1 << 20, "cpu"), (7, "gpu"), (0, "gpu")])
def test_parts_choose_one_backend(
    few: int, backend: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever each of them has of a matrix: none of its entries, few, or many."""
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", few)
    model, _ = asked("walk")
    part = rng.permutation(np.arange(model.n_states) * 3 // model.n_states)
    owners = tuple(states_from(model.manager, model.index, part == p) for p in range(3))
    properties = resolve_properties(parse_properties(";\n".join(TIMED)), model.source).properties

    def answers(own: SymbolicModel) -> list[Answer]:
        return [Checker(own, CheckOptions()).answer(prop) for prop in properties]

    alone = answers(model)
    with device_of("host"):
        found = in_parts(model, 3, answers, owners)
    for one, many in zip(alone, found, strict=True):
        assert agree(one, many), (one.value, many.value)
        assert many.statistics.backend == backend, many.statistics.backend_reason


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_parts_leave_a_device_together_where_one_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 0)
    tried = []

    def injected(matrix: Any, level: Any, engine: Any, **more: Any) -> Any:
        tried.append(engine.name)
        if tried.count("gpu") == 2:
            raise MemoryError("no room on the second")
        return inject(matrix, level, engine, **more)

    monkeypatch.setattr(systems, "inject", injected)
    model, _ = asked("walk")
    (prop,) = resolve_properties(parse_properties(TIMED[2]), model.source).properties
    with device_of("host"):
        found = in_parts(model, 3, lambda own: Checker(own, CheckOptions()).answer(prop))
    assert found.statistics.backend == "cpu" and tried.count("cpu") == 3
    assert "no room on the second" in found.statistics.backend_reason
    assert found.value == pytest.approx(hybrid.check(model, TIMED[2]).value)


def test_groups_of_states_across_parts_share_their_best_value(rng: np.random.Generator) -> None:
    # Under a maximum the states 0 .. 7 are one end component: left by two of its members alone.
    model, _ = asked("loops")
    (prop,) = resolve_properties(parse_properties("Pmax=? [ F x=9 ]"), model.source).properties
    wanted = Checker(model, CheckOptions()).every_state(prop.formula)
    assert isinstance(wanted, StateValues)
    for _ in range(5):
        part = rng.integers(3, size=model.n_states)
        owners = tuple(states_from(model.manager, model.index, part == p) for p in range(3))

        def run(own: SymbolicModel) -> StateValues:
            found = Checker(own, CheckOptions()).every_state(prop.formula)
            together = gathered(own.communicator, found, np.arange(found.values.size))
            assert isinstance(together, StateValues)
            return together

        found, order = in_parts(model, 3, run, owners), np.argsort(part, kind="stable")
        assert found.values == pytest.approx(wanted.values[order], abs=1e-7)
        assert (found.lower <= wanted.upper[order]).all() and (wanted.lower[order] <= found.upper).all()


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_same_bits_twice(ranks: int) -> None:
    model, _ = asked("walk")
    first, second = (hybrid.check(model, 'R{"up"}=? [ S ]', ranks=ranks) for _ in range(2))
    assert (first.value, first.lower, first.upper) == (second.value, second.lower, second.upper)
    assert first.statistics.iterations == second.statistics.iterations


def test_no_part_holds_vectors_of_all_states() -> None:
    model, properties = example("kanban")
    one = hybrid.check_all(model, properties)[0]

    def held(own: SymbolicModel) -> tuple[int, int]:
        answer = Checker(own, CheckOptions()).answer(
            resolve_properties(parse_properties('R{"throughput"}=? [ S ]'), model.source).properties[0]
        )
        return own.index.size, answer.statistics.base_bytes

    size, nbytes = in_parts(model, 4, held)
    assert size < 0.4 * model.n_states
    assert nbytes < 0.4 * one.statistics.base_bytes


def test_many_steps_of_few_states() -> None:
    # One process takes them by powers of its matrix, a part step by step, if it has all states, too.
    loop = "[] x=0 -> 0.999:true + 0.001:(x'=1); [] x=1 -> true;"
    model = build(f"dtmc module m x:[0..1] init 0; {loop} endmodule")
    one = hybrid.check(model, "P=? [ F<=20000 x=1 ]")
    assert agree(one, hybrid.check(model, "P=? [ F<=20000 x=1 ]", ranks=1))


def test_the_slack_of_a_step_covers_the_rows_of_all_parts() -> None:
    # Only the state x=0 has more than two successors.
    hub = "dtmc module m x:[0..9] init 0; [] x=0 -> " + " + ".join(f"0.125:(x'={k})" for k in range(1, 9))
    model = build(hub + "; [] x>0 -> (x'=x>8?9:x+1); endmodule")

    def slack(own: SymbolicModel) -> list[float]:
        matrix = build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="cpu"))
        found = step_slack(matrix, 0)
        return [found, *own.communicator.gather([found]).reshape(-1).tolist()]

    (whole, _), divided = slack(model), in_parts(model, 3, slack)
    assert divided == [whole] * 4


def test_what_holds_in_one_part_alone_does_not_hold_in_all() -> None:
    # So a guess is an upper bound only if it is one in every row of every part.
    model, _ = asked("walk")

    def told(own: SymbolicModel) -> list[list[float]]:
        space = space_of(build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="cpu")))
        here = np.full(own.index.size, own.communicator.rank == 0)
        masks = (here, here | True, here & False)
        truths = [float(of(mask)) for mask in masks for of in (space.all, space.any)]
        return own.communicator.gather(truths).tolist()

    assert in_parts(model, 3, told) == [[0, 1, 1, 1, 0, 0]] * 3


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "explicit"},
        {"method": "gauss-seidel"},
        {"exact": True},
        {"scheduler": True},
        {"values": True},
    ],
)
def test_what_parts_do_not_offer_is_refused_by_name(options: dict[str, Any]) -> None:
    model, _ = asked("walk")
    with pytest.raises(OptionError, match="parts"):
        hybrid.check(model, "S=? [ x>2 ]", ranks=2, **options)


def test_values_of_all_states_are_not_brought_together() -> None:
    model, _ = asked("walk")
    answer = hybrid.check(model, "P=? [ F<=1 x=n ]", ranks=2)
    with pytest.raises(UnsupportedError, match="not brought together from parts"):
        answer.values  # noqa: B018


@pytest.mark.parametrize(
    ("name", "text", "ranks", "suffix"),
    [
        ("brp", "P>0 [ F s=5 ]", 1, ".npz"),
        ("kanban", "P>0.5 [ true U<=1 w1=1 ]", 3, ".csv"),
        ("jobs", 'Pmax>0 [ F "done" ]', 7, ".npz"),
    ],
)
def test_values_of_all_states_are_written_from_parts(
    name: str, text: str, ranks: int, suffix: str, tmp_path: Path
) -> None:
    # What the graph decides has the same bits in any number of parts.
    model, _ = example(name)
    one, many = tmp_path / f"one{suffix}", tmp_path / f"many{suffix}"
    answer = hybrid.check(model, text, values=one)
    assert answer.values.size == model.n_states
    hybrid.check(example(name)[0], text, ranks=ranks, values=str(many))
    assert many.read_bytes() == one.read_bytes()


@pytest.mark.parametrize(("name", "ranks"), each(sorted(QUESTIONS), [2, 3]))
def test_bounds_of_all_states_are_written_from_parts(name: str, ranks: int, tmp_path: Path) -> None:
    model, questions = asked(name)
    for text in [questions[0], questions[5], f"filter(max, {questions[3]})", "1 + x"]:
        one, many = tmp_path / "one.npz", tmp_path / "many.npz"
        hybrid.check(model, text, values=one)
        hybrid.check(asked(name)[0], text, ranks=ranks, values=many)
        assert one.stat().st_size == many.stat().st_size
        with np.load(one) as first, np.load(many) as second:
            np.testing.assert_array_equal(first["states"], second["states"])
            np.testing.assert_allclose(first["value"], second["value"], rtol=1e-6)
            assert (first["lower"] <= second["upper"]).all() and (second["lower"] <= first["upper"]).all()


def test_files_of_values_that_are_not_written(tmp_path: Path) -> None:
    model, _ = asked("walk")
    for ranks in (None, 3):
        options: dict[str, Any] = {"ranks": ranks}
        with pytest.raises(OptionError, match=r"values: cannot write .*nowhere"):
            hybrid.check(model, "P=? [ F<=1 x=n ]", values=tmp_path / "nowhere" / "v.npz", **options)
        with pytest.raises(OptionError, match=r"\.csv or \.npz"):
            hybrid.check(model, "P=? [ F<=1 x=n ]", values=tmp_path / "v.txt", **options)
        with pytest.raises(OptionError, match="values: expected one property"):
            hybrid.check_all(model, "P=? [ F x=n ]; x>1", values=tmp_path / "v.npz", **options)
        # The part with x=3 alone finds that it has no value there.
        with pytest.raises(HybridError, match="expected a value in every state"):
            hybrid.check(model, "filter(max, mod(5, x-3), x>4)", values=tmp_path / "v.npz", **options)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ranks", [0, 9, True, "two", 1.5])
def test_a_senseless_number_of_parts_is_refused(ranks: Any) -> None:
    model, _ = asked("walk")
    with pytest.raises(OptionError, match=r"parts: expected 1 \.\. 7|ranks: expected a number of parts"):
        hybrid.check(model, "S=? [ x>2 ]", ranks=ranks)


def test_an_unknown_comparison_and_the_next_answer() -> None:
    model, _ = asked("walk")
    value = hybrid.check(model, "P=? [ x>1 U x=n ]", epsilon=1e-13).value
    found = hybrid.check_all(model, f"P>={value!r} [ F<=1 x=n ]; S=? [ x>2 ]; P>=0.5 [ F x=n ]", ranks=3)
    assert found[1].value == pytest.approx(hybrid.check(model, "S=? [ x>2 ]").value, rel=1e-7)
    assert found[2].value is True


def test_a_fault_of_one_part_is_the_answer_of_all_and_the_next_goes_on() -> None:
    # Only the part with x=3 finds that its reward is no number.
    model = build(WALK.replace("x>n/2 : x", "x>n/2 : x; x=3 : 1/(x-3)"), n=6)
    found = hybrid.check_all(model, 'R{"up"}=? [ C<=1 ]; S=? [ x>2 ]', ranks=4)
    alone = hybrid.check(model, 'R{"up"}=? [ C<=1 ]', throw=False)
    assert found[0].value is None and alone.error is not None
    assert found[0].error == alone.error
    assert found[1].value is not None


def test_processes_that_have_built_different_models_are_told() -> None:
    def run(alike: Communicator) -> int:
        return part_of(build(WALK.replace("1.5", "1.25") if alike.rank == 1 else WALK, n=6), alike).index.size

    with pytest.raises(OptionError, match="built different models: start all of them with the same files"):
        in_threads(3, run)


def test_a_part_of_one_process_is_the_model() -> None:
    model, _ = asked("walk")
    own = part_of(model, ALONE)
    assert own.index.size == own.n_states == model.n_states
    assert own.n_transitions == model.n_transitions
    assert own.statistics.states == model.statistics.states

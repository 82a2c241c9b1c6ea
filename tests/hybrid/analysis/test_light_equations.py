"""Equations of chains with few entries: NumPy solves them, and compiled kernels where that takes long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hybrid
import hybrid.analysis.run.options as options
import hybrid.analysis.systems as systems
import hybrid.matrix.backends as backends
import hybrid.matrix.reference as reference
from tests.source_tree import ROOT

QUESTIONS = (
    'R{"customers"}=? [ S ]',
    'R{"customers"}=? [ F sc=c ]',
    "P=? [ !(sm=c & ph=2) U sc=c ]",
)


@pytest.fixture(scope="module")
def queue() -> hybrid.Model:
    return hybrid.load(ROOT / "examples/tandem.prism", constants={"c": 31})


@pytest.fixture
def are_more(monkeypatch: pytest.MonkeyPatch, queue: hybrid.Model) -> None:
    """More equations than NumPy solves in any case, and as many as it solves where entries are few."""
    monkeypatch.setattr(backends, "device_problem", lambda: "there is none")
    few = queue.n_states // 3
    for module in (backends, options, systems):
        monkeypatch.setattr(module, "FEW_EQUATIONS", few)


@pytest.mark.usefixtures("are_more")
@pytest.mark.parametrize("question", QUESTIONS)
def test_numpy_solves_equations_of_few_entries(
    queue: hybrid.Model, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected = hybrid.check(queue, question), hybrid.check(queue, question, backend="cpu")
    assert (found.statistics.backend, expected.statistics.backend) == ("reference", "cpu")
    assert "before compiled kernels are loaded" in found.statistics.backend_reason
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    assert found.lower <= expected.upper and expected.lower <= found.upper
    monkeypatch.setattr(options, "FEW_ENTRIES", 10)
    assert hybrid.check(queue, question).statistics.backend == "cpu"


@pytest.mark.usefixtures("are_more")
@pytest.mark.parametrize("question", QUESTIONS)
def test_compiled_kernels_go_on_where_that_takes_long(
    queue: hybrid.Model, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five products: as if NumPy had not begun."""
    matrix = queue.transitions
    row, entry = reference._NANOSECONDS
    monkeypatch.setattr(reference, "_LONG", 5.0 * (row * matrix.n_rows + entry * matrix.n_entries))
    found, expected = hybrid.check(queue, question), hybrid.check(queue, question, backend="cpu")
    assert found.statistics.backend == "cpu"
    assert (found.value, found.lower, found.upper) == (expected.value, expected.lower, expected.upper)


@pytest.mark.usefixtures("are_more")
@pytest.mark.parametrize(
    "asked", [{"method": "jacobi"}, {"method": "optimistic"}, {"representation": "tasks"}, {"level": 4}]
)
def test_what_is_asked_for_does_not_end_early(
    queue: hybrid.Model, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy by name makes all products, and nothing else that is asked for is begun in it."""
    monkeypatch.setattr(reference, "_LONG", 0.0)
    question = "P=? [ !(sm=c & ph=2) U sc=c ]"
    assert hybrid.check(queue, question, backend="reference", epsilon=1e-2, **asked).value is not None
    assert hybrid.check(queue, question, epsilon=1e-2, **asked).statistics.backend == "cpu"


@pytest.mark.usefixtures("are_more")
def test_losses_are_solved_again_as_they_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """dtmc
    module m
      s : [0..2999] init 1500;
      [] s>0 & s<2999 -> 0.5:(s'=s+1) + 0.5:(s'=s-1);
      [] s=0 | s=2999 -> true;
    endmodule
    rewards "r"
      s>0 & s<1500 : -1;
      s>=1500 & s<2999 : 2;
    endrewards
    """
    model, question = hybrid.parse(text), 'R{"r"}=? [ F s=0 | s=2999 ]'
    monkeypatch.setattr(reference, "_LONG", 1e5)
    found, expected = hybrid.check(model, question), hybrid.check(model, question, backend="cpu")
    assert found.statistics.backend == "cpu"
    assert (found.lower, found.upper) == (expected.lower, expected.upper)


@pytest.mark.usefixtures("are_more")
def test_between_checkpoints_kernels_are_compiled_at_once(queue: hybrid.Model, tmp_path: Path) -> None:
    """A solution that is begun again would be another one in the record."""
    found = hybrid.check(queue, QUESTIONS[0], checkpoint=tmp_path / "point")
    assert found.statistics.backend == "cpu"


def test_products_without_an_end_are_not_counted(queue: hybrid.Model) -> None:
    found = hybrid.inject(queue.transitions, backend="reference").prepare().product
    for _ in range(3):
        found.count()
    reference.end_when_long(found, queue.transitions.n_entries)
    found.left = 1.0
    found.count()
    with pytest.raises(reference.OutgrownError, match="many products"):
        found.count()

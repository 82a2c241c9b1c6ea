"""The engine is chosen by what the diagram saves, and the answer says why; methods that only some have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hybrid
import hybrid.checking.checker as engine_choice
from hybrid.__main__ import main
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotConvergedError
from hybrid.matrix.space.base import Status
from tests.builders.chain_texts import GAMBLER, STAIRS
from tests.builders.flat_texts import opinions
from tests.source_tree import ROOT

BOTH: tuple[Any, ...] = ("explicit", "hybrid")
AGREED = 'P=? [ F<=2 "agreed" ]'


@pytest.fixture(scope="module")
def flat() -> hybrid.Model:
    return hybrid.parse(opinions(20))


@pytest.fixture(scope="module")
def structured() -> hybrid.Model:
    return hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 2})


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """No number of states is small."""
    for module in ("hybrid.checking.checker", "hybrid.analysis.run.options"):
        monkeypatch.setattr(f"{module}.FEW_EQUATIONS", 0)


def test_few_states_stay_compressed(flat: hybrid.Model) -> None:
    found = hybrid.check(flat, AGREED, engine="auto")
    assert found.engine == "hybrid"
    assert "NumPy solves" in found.record()["engine_reason"]
    assert hybrid.check(flat, AGREED, engine="auto", backend="cpu").engine == "explicit"


@pytest.mark.usefixtures("many")
def test_what_diagrams_do_not_compress_is_written_out(flat: hybrid.Model) -> None:
    found = hybrid.check(flat, AGREED, engine="auto")
    expected = hybrid.check(flat, AGREED)
    assert (found.engine, expected.engine) == ("explicit", "hybrid")
    assert found.statistics.level is None
    assert "nodes a transition, and saves little" in found.record()["engine_reason"]
    assert "engine_reason" not in expected.record()
    assert found.lower is not None and expected.lower is not None
    assert found.upper is not None and expected.upper is not None
    assert found.lower <= expected.upper and expected.lower <= found.upper


def test_numpy_begins_with_chains_of_few_transitions(
    structured: hybrid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_choice, "FEW_EQUATIONS", structured.n_states // 2)
    found = hybrid.check(structured, 'R{"throughput"}=? [ S ]', engine="auto")
    assert found.engine == "hybrid"
    assert found.record()["engine_reason"].startswith("NumPy begins with 4,600 states")
    monkeypatch.setattr("hybrid.analysis.run.options.FEW_ENTRIES", 10)
    reason = hybrid.check(structured, 'R{"throughput"}=? [ S ]', engine="auto").record()["engine_reason"]
    assert "saves memory" in reason


@pytest.mark.usefixtures("many")
def test_what_they_compress_is_not(structured: hybrid.Model) -> None:
    found = hybrid.check(structured, 'R{"throughput"}=? [ S ]', engine="auto")
    assert found.engine == "hybrid" and found.statistics.level is not None
    assert "and saves memory" in found.record()["engine_reason"]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("size", [2, 12])
def test_decision_processes_of_few_transitions_are_written_out(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(ROOT / "examples/coin.prism", constants={"K": size})
    question, loose = "Pmax=? [ F counter=0 ]", 1e-2
    found = hybrid.check(model, question, engine="auto", epsilon=loose)
    expected = hybrid.check(model, question, epsilon=loose)
    assert found.engine == "explicit"
    assert found.lower <= expected.upper and expected.lower <= found.upper
    reason = {2: "saves little", 12: "transitions of choices are written out before a level is chosen"}
    assert reason[size] in found.record()["engine_reason"]
    if size == 12:
        assert hybrid.check(model, question, engine="auto", epsilon=loose, level=4).engine == "hybrid"
        monkeypatch.setattr("hybrid.matrix.explicit.operators.MOST_WRITTEN", 10)
        assert hybrid.check(model, question, engine="auto", epsilon=loose).engine == "hybrid"


@pytest.mark.usefixtures("many")
def test_a_list_that_fails_gives_way_to_a_compressed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.load(ROOT / "examples/coin.prism", constants={"K": 2})
    expected = hybrid.check(model, "Pmax=? [ F counter=0 ]")

    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("no room for a list of so many choices: expected fewer of them")

    monkeypatch.setattr("hybrid.matrix.operators.explicit_choices.write_choices", full)
    found = hybrid.check(model, "Pmax=? [ F counter=0 ]", engine="auto")
    assert (found.engine, found.value) == ("hybrid", expected.value)
    assert "the engine explicit failed: no room for a list" in found.record()["engine_reason"]


@pytest.mark.usefixtures("many")
def test_without_room_for_a_list_it_stays_compressed(
    flat: hybrid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_choice, "free_memory_bytes", lambda: 10_000)
    found = hybrid.check(flat, AGREED, engine="auto")
    assert found.engine == "hybrid"
    assert "no room for a list" in found.record()["engine_reason"]


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vector is small, and no memory is free."""
    monkeypatch.setattr(engine_choice, "free_memory_bytes", lambda: 100)
    monkeypatch.setattr(engine_choice, "_SMALL_VECTORS", 0)


@pytest.mark.usefixtures("crowded")
def test_vectors_without_room_are_diagrams() -> None:
    model, question = hybrid.parse(GAMBLER), "P=? [ F<=5 x=goal ]"
    found, expected = hybrid.check(model, question, engine="auto"), hybrid.check(model, question)
    assert found.engine == "symbolic"
    assert "vectors of 6 states take 2.4e-07 GB, and too little" in found.record()["engine_reason"]
    assert found.lower <= expected.upper and expected.lower <= found.upper
    kept: list[dict[str, Any]] = [{"backend": "reference"}, {"representation": "tasks"}, {"values": True}]
    for besides in (*kept, {"ranks": 2}, {"method": "jacobi"}):
        assert hybrid.check(model, question, engine="auto", **besides).engine != "symbolic"


@pytest.fixture
def open_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """All states are many, and many beside nodes."""
    monkeypatch.setattr(engine_choice, "_MANY_STATES", 0)
    monkeypatch.setattr(engine_choice, "_STATES_A_NODE", 0)


@pytest.mark.usefixtures("open_choice")
@pytest.mark.parametrize(("most", "engine"), [(1 << 20, "symbolic"), (10, "hybrid")])
def test_diagrams_are_tried_where_states_are_many_beside_nodes(
    most: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, question = hybrid.parse(STAIRS), "P=? [ F s=3 ]"
    monkeypatch.setattr(engine_choice, "_STATES_A_RESULT", model.n_states / most)
    expected = hybrid.check(model, question)
    found = hybrid.check(model, question, engine="auto", backend="cpu")
    assert (found.engine == "symbolic") == (engine == "symbolic")
    assert found.lower <= expected.upper and expected.lower <= found.upper
    reason = found.record()["engine_reason"]
    assert reason.startswith(f"{model.n_states:,} states are many beside the nodes")
    has_failed = "the engine symbolic failed: operations on diagrams made more than 10 results" in reason
    assert has_failed == (engine == "hybrid")
    for besides in ({"level": 2}, {"backend": "reference"}, {"values": True}):
        other = hybrid.check(model, question, engine="auto", **{"backend": "cpu", **besides})
        assert "beside the nodes" not in other.record()["engine_reason"]


@pytest.mark.usefixtures("open_choice")
def test_a_trial_without_bounds_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model, question = hybrid.parse(GAMBLER), "P=? [ F x=goal ]"
    monkeypatch.setattr(engine_choice, "_STATES_A_RESULT", 1e-9)

    def apart(*_: Any) -> None:
        raise NotConvergedError("until probabilities", Status.NO_BOUND, 7, 0.5)

    monkeypatch.setattr("hybrid.analysis.on_diagrams._solved", apart)
    found = hybrid.check(model, question, engine="auto", backend="cpu", method="interval")
    assert found.engine != "symbolic" and found.value is not None
    with pytest.raises(NotConvergedError):
        hybrid.check(model, question, engine="symbolic", method="interval")


def test_an_engine_that_fails_gives_way_and_the_answer_says_so(
    structured: hybrid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_choice, "_SMALL_VECTORS", 0)
    monkeypatch.setattr(engine_choice, "free_memory_bytes", lambda: 64 * structured.n_states)
    question = 'R{"throughput"}=? [ S ]'
    found, expected = hybrid.check(structured, question, engine="auto"), hybrid.check(structured, question)
    assert found.engine == "hybrid" and found.value == expected.value
    reason = found.record()["engine_reason"]
    assert "GB" in reason and "the engine symbolic failed: " in reason and "is not answered" in reason


def test_vectors_that_find_no_room_become_diagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    model, question = hybrid.parse(GAMBLER), "P=? [ F x=goal ]"
    expected = hybrid.check(model, question)

    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("no room for a vector of so many states: expected fewer of them")

    monkeypatch.setattr("hybrid.analysis.until.until_probabilities", full)
    found = hybrid.check(model, question, engine="auto")
    assert found.engine == "symbolic"
    assert "failed: no room for a vector" in found.record()["engine_reason"]
    assert found.lower <= expected.upper and expected.lower <= found.upper
    with pytest.raises(MemoryError, match="no room"):
        hybrid.check(model, question, engine="hybrid")


def test_what_was_asked_for_besides_counts(flat: hybrid.Model) -> None:
    assert hybrid.check(flat, AGREED, engine="auto", backend="reference").engine == "hybrid"
    assert hybrid.check(flat, AGREED, engine="auto", representation="tasks").engine == "hybrid"
    assert hybrid.check(flat, AGREED, engine="auto", ranks=2).engine == "hybrid"


@pytest.mark.usefixtures("many")
def test_the_command_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "flat.prism").write_text(opinions(20))
    given = ["check", str(tmp_path / "flat.prism"), "-pf", AGREED, "--engine", "auto"]
    assert main(given) == 0
    assert "  engine       explicit: the diagram has" in capsys.readouterr().out
    assert main([*given, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["engine"] == "explicit"


def test_components_are_solved_one_after_another_where_that_pays() -> None:
    model = hybrid.parse(STAIRS)
    answer = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit")
    assert answer.statistics.method == "topological"
    assert answer.record()["engine"] == "explicit"
    other: Any
    for other in ("optimistic", "interval"):
        chosen = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit", method=other)
        assert chosen.statistics.method == other
        assert chosen.lower <= answer.upper
        assert answer.lower <= chosen.upper
    ring = hybrid.check(hybrid.parse(GAMBLER), "P=? [ F x=goal ]", engine="explicit")
    assert ring.statistics.method == "optimistic"


def test_rewards_of_both_signs_by_components() -> None:
    text = STAIRS.replace("s<8 : 1;", "s<3 : 1; s>=3 & s<6 : -1;")
    model = hybrid.parse(text)
    one, other = (hybrid.check(model, "R=? [ F s>=8 ]", engine=e) for e in BOTH)
    assert one.statistics.method == "topological"
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert one.value == pytest.approx(other.value, rel=1e-7)


@pytest.mark.parametrize("omega", [0.5, 1.3])
def test_relaxed_sweeps_reach_the_same_value(omega: float) -> None:
    model = hybrid.parse(GAMBLER)
    options: dict[str, Any] = {"engine": "explicit", "method": "gauss-seidel", "epsilon": 1e-12}
    answer = hybrid.check(model, "P=? [ F x=goal ]", omega=omega, **options)
    assert answer.value == pytest.approx(76 / 211, rel=1e-10)


def test_sweeps_stay_on_the_cpu() -> None:
    options = CheckOptions(method="gauss-seidel")
    assert options.matrix_backend().name == "cpu"
    assert CheckOptions(method="gauss-seidel", backend="reference").matrix_backend().name == "reference"
    assert CheckOptions().matrix_backend().is_free

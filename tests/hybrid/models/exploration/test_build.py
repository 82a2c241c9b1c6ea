"""Models whose states are listed are those of their diagrams: states, matrices, labels, rewards, faults."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.models.model import Model
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import ModelType
from tests.attack.cases import draw_case
from tests.builders.chain_texts import DIE, GAMBLER, QUEUE, SPLIT
from tests.builders.mdp_texts import COINS, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.exploring import rounds
from tests.source_tree import ROOT

EXAMPLES = {
    "kanban": {"t": 1},
    "tandem": {"c": 3},
    "polling": {},
    "fms": {"n": 1},
    "cluster": {"N": 2},
    "brp": {"N": 2, "MAX": 2},
    "herman": {},
    "coin": {"K": 1},
    "jobs": {"N": 3},
    "relay": {"H": 1, "M": 1},
}
WIDE = """
mdp
const int N = 3;
formula far = a > 1000000000000;
label "far" = far;
module m
  a : [-4611686018427387903..4611686018427387903] init 0;
  b : [0..4611686018427387903] init 5;
  c : bool;
  [up] !c & a<2500000000000 -> 0.25 : (a'=a+1000000000001) + 0.75 : (b'=7) & (c'=true);
  [up] !c & b=5 -> (b'=b-1);
  [over] c & a<N -> (c'=false);
endmodule
rewards "ups" [up] true : 0.1; c : 2; endrewards
"""


def both(text: str, **constants: int) -> tuple[Model, Model]:
    return (
        hybrid.parse(text, constants),
        hybrid.parse(text, constants, build="explicit"),
    )


def assert_same(diagrams: Model, listed: Model) -> None:
    """Both have the same states, choices, numbers, labels and rewards."""
    assert (diagrams.state_table() == listed.state_table()).all()
    assert diagrams.n_choices == listed.n_choices
    assert set(diagrams.labels) == set(listed.labels)
    for name in diagrams.labels:
        assert (diagrams.labels[name] == listed.labels[name]).all(), name
    assert list(diagrams.rewards) == list(listed.rewards)
    for name in diagrams.rewards:
        np.testing.assert_allclose(diagrams.rewards[name], listed.rewards[name], rtol=1e-13)
    rows = [sorted_rows(model) for model in (diagrams, listed)]
    assert len(rows[0]) == len(rows[1])
    for one, other in zip(*rows, strict=True):
        assert [column for column, _ in one] == [column for column, _ in other]
        np.testing.assert_allclose([v for _, v in one], [v for _, v in other], rtol=1e-13)


def sorted_rows(model: Model) -> list[list[tuple[int, float]]]:
    """Every state's choices in an order of their own, each a list of targets and numbers."""
    from hybrid.models.interchange.write_out import written_out

    found = written_out(model)
    rows = []
    for choice in range(found.n_choices):
        own = slice(int(found.row_starts[choice]), int(found.row_starts[choice + 1]))
        # What the text lets add up to 1 only roughly is divided by its sum, sooner or later.
        values = (
            found.values[own] if found.type is ModelType.CTMC else found.values[own] / found.values[own].sum()
        )
        row = sorted(zip(found.columns[own].tolist(), values.tolist(), strict=True))
        rows.append((int(found.state_of_choice[choice]), [(c, round(v, 12)) for c, v in row], row))
    return [row for _, _, row in sorted(rows, key=lambda r: r[:2])]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_the_same_and_so_are_their_answers(name: str) -> None:
    path = ROOT / f"examples/{name}.prism"
    models = [hybrid.load(path, EXAMPLES[name], build=build) for build in ("symbolic", "explicit")]  # type: ignore[arg-type]
    assert_same(*models)
    for one, other in zip(*(hybrid.check_all(m, path.with_suffix(".props")) for m in models), strict=True):
        assert (one.error is None) is (other.error is None)
        assert one.kind == other.kind
        if one.error is None and one.lower is not None:
            assert one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize(
    "text", [DIE, GAMBLER, QUEUE, SPLIT, WAITING_ROOM, SLOW_WAY, ROOMS, COINS], ids=range(8)
)
def test_small_models_are_the_same(text: str) -> None:
    assert_same(*both(text))


def test_random_models_are_the_same(rng: np.random.Generator) -> None:
    seed = int(rng.integers(1 << 32))
    same = 0
    for number in range(rounds(30)):
        text = draw_case(seed, number).spec.text()
        try:
            listed = hybrid.parse(text, build="explicit")
            diagrams = hybrid.parse(text)
            sorted_rows(diagrams)
        except hybrid.HybridError as error:
            # Diagrams tell it when rewards are asked for, and of rewards that cancel not in the same cases.
            assert "1.79e308" in str(error) or "write them as one item" in str(error)
            continue
        assert_same(diagrams, listed)
        same += 1
    assert same > rounds(30) // 2


def test_properties_speak_of_constants_formulas_and_labels_of_the_text() -> None:
    listed = hybrid.parse(WIDE, build="explicit")  # beyond what diagrams of the commands take
    assert hybrid.check(listed, "Pmax=? [ F far & N=3 ]").value == 1
    assert hybrid.check(listed, 'filter(count, "far" | "deadlock")').value >= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dtmc module m x:[0..2]; [] true -> (x'=x+1); endmodule", "outside its range"),
        ("dtmc module m x:[0..2]; [] true -> 0.5:(x'=1); endmodule", "add up to"),
        ("ctmc module m x:[0..2]; [] true -> 0.5-x:(x'=min(2,x+1)); endmodule", "weight of an update"),
        ("dtmc module m x:[0..2]; [] mod(3,x)=0 -> true; endmodule", "no value"),
        (
            "dtmc module m x:[0..2]; endmodule rewards true : 1/x; endrewards",
            "no value|finite",
        ),
        ('dtmc module m x:[0..2]; [] true -> true; endmodule label "l" = mod(3, x) = 0;', "no value"),
    ],
)
def test_faults_of_states_are_told_with_their_place(text: str, words: str) -> None:
    with pytest.raises(LanguageError, match=words) as caught:
        model = hybrid.parse(text, build="explicit")
        model.rewards[0]
    assert ":1:" in str(caught.value)


def test_deadlocks_are_mended_or_refused() -> None:
    text = "dtmc module m x:[0..1]; [] x=0 -> (x'=1); endmodule"
    model = hybrid.parse(text, build="explicit")
    assert model.labels["deadlock"].tolist() == [False, True]
    assert any("self-loop" in warning for warning in model.warnings)
    with pytest.raises(LanguageError, match="no outgoing transition"):
        hybrid.parse(text, build="explicit", fix_deadlocks=False)


def test_time_and_options_are_held_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "examples/kanban.prism").read_text()
    with pytest.raises(hybrid.HybridError, match="time"):
        hybrid.parse(text, {"t": 4}, build="explicit", timeout=0.01)
    with pytest.raises(hybrid.HybridError, match="build: expected"):
        hybrid.parse(text, {"t": 1}, build="other")  # type: ignore[arg-type]
    listed = tmp_path / "m.drn"
    hybrid.export(hybrid.parse(DIE), listed)
    with pytest.raises(hybrid.HybridError, match="written out already"):
        hybrid.load(listed, build="explicit")
    path = tmp_path / "die.prism"
    path.write_text(DIE)
    assert main(["check", str(path), "P=? [ F d=6 ]", "--build", "explicit"]) == 0
    assert "0.1666" in capsys.readouterr().out


def test_listed_rewards_that_no_double_holds_are_not_told_exact() -> None:
    """2^53 + 1 becomes 2^53: that is the first integer that is rounded."""
    text = """dtmc module m x:[0..3] init 1; [] true -> (x'=x); endmodule
        rewards true : 9007199254740993*x; endrewards"""
    answer = hybrid.check(hybrid.parse(text, build="explicit"), "R=? [ I=0 ]")
    assert Fraction(answer.lower) <= 2**53 + 1 <= Fraction(answer.upper)

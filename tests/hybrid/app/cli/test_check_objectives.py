"""`hybrid check` of several objectives: text, JSON, table, picture, schedulers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.__main__ import main
from hybrid.base.errors import OptionError
from hybrid.base.figures import frontier

MODEL = """mdp
module m
  s : [0..2];
  [bold] s=0 -> 1/3 : (s'=2) + 2/3 : (s'=1);
  [shy] s=0 -> 1/2 : (s'=2) + 1/2 : (s'=0);
  [give] s=0 -> (s'=1);
  [end] s>0 -> true;
endmodule
rewards "cost" [bold] true : 1; [shy] true : 3; endrewards
rewards "tries" [shy] true : 1; endrewards
"""
CURVE = 'multi(Pmax=? [ F s=2 ], R{"cost"}min=? [ C ])'
BOUNDS = 'multi(P>=0.5 [ F s=2 ], R{"cost"}<=3 [ C ])'


@pytest.fixture
def gamble(tmp_path: Path) -> str:
    path = tmp_path / "gamble.prism"
    path.write_text(MODEL)
    return str(path)


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["check", *arguments, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    found: dict[str, Any] = result
    return found


def test_a_curve_as_json_and_table(capsys: pytest.CaptureFixture[str], tmp_path: Path, gamble: str) -> None:
    found = record(capsys, gamble, CURVE, "--csv", str(tmp_path / "curve.csv"))
    assert (found["value"], found["lower"], found["kind"], found["error"]) == (None, None, "certified", None)
    multi = found["multi"]
    assert multi["objectives"] == ["Pmax=? [ F s=2 ]", 'R{"cost"}min=? [ C ]']
    assert multi["maximise"] == [True, False]
    assert all(h["weights"][0] >= 0 >= h["weights"][1] for h in multi["half_spaces"])
    assert max(multi["distances"]) < 1e-6
    assert multi["distances_kind"] == "certified"
    assert all(point["share"] is None for point in multi["points"])
    with (tmp_path / "curve.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows[0]["point"] == rows[0]["value"] == ""
    points = [r for r in rows if r["point"] not in ("", "distance")]
    assert len(points) == 2 * len(multi["points"])
    assert {float(r["lower"]) for r in points} == {x for p in multi["points"] for x in p["lower"]}
    assert [float(r["upper"]) for r in rows if r["point"] == "distance"] == multi["distances"]


def test_a_mixture_as_text(capsys: pytest.CaptureFixture[str], gamble: str) -> None:
    assert main(["check", gamble, BOUNDS]) == 0
    out = capsys.readouterr().out
    assert "result       true" in out
    assert "with probability" in out
    assert main(["check", gamble, CURVE]) == 0
    assert "a curve: " in capsys.readouterr().out


def test_the_precision_of_a_curve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Tries that cost ever more: as many corners as tries.
    path = tmp_path / "tries.prism"
    path.write_text(
        "mdp module m s : [0..9]; [try] s<8 -> 1/2 : (s'=9) + 1/2 : (s'=s+1); [end] s>0 -> (s'=s<9 ? 8 : 9); "
        '[give] s=0 -> (s\'=8); endmodule rewards "cost" [try] true : 1+s*s; endrewards'
    )
    text = 'multi(Pmax=? [ F s=9 ], R{"cost"}min=? [ C ])'
    found = {e: record(capsys, str(path), text, "--pareto-epsilon", e)["multi"] for e in ("0.5", "0.01")}
    found["0.001"] = record(capsys, str(path), text)["multi"]
    for asked, multi in found.items():
        assert multi["pareto_epsilon"] == float(asked)
        assert 0 <= multi["pareto_distance"] <= 1.001 * float(asked)
        ranges = [
            max(p["upper"][i] for p in multi["points"]) - min(p["lower"][i] for p in multi["points"])
            for i in (0, 1)
        ]
        parts = [d / r for d, r in zip(multi["distances"], ranges, strict=True)]
        assert max(parts) == pytest.approx(multi["pareto_distance"], rel=1e-3, abs=1e-9)
    solved = [len(found[e]["half_spaces"]) for e in ("0.5", "0.01", "0.001")]
    assert solved[0] < solved[1] <= solved[2]
    # As close as doubles tell, which the answer says.
    assert main(["check", str(path), text, "-paretoepsilon", "1e-300"]) == 0
    assert "not 1e-300 as asked" in capsys.readouterr().out
    assert main(["check", str(path), text, "--pareto-epsilon", "1"]) == 2
    assert "--pareto-epsilon must lie between 0 and 1, got 1.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "ending"), [(CURVE, "svg"), (CURVE[:-1] + ', R{"tries"}min=? [ C ])', "png")]
)
def test_a_curve_is_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, gamble: str, text: str, ending: str
) -> None:
    target = tmp_path / f"curve.{ending}"
    found = record(capsys, gamble, text, "--plot", str(target))
    assert target.read_bytes()[:4] in (b"<?xm", b"\x89PNG")
    assert found["multi"]["distances_kind"] == ("certified" if ending == "svg" else "estimate")


def test_what_is_no_curve_is_not_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, gamble: str
) -> None:
    assert main(["check", gamble, BOUNDS, "--plot", str(tmp_path / "no.svg")]) == 2
    assert "one curve of several objectives" in capsys.readouterr().err
    four = CURVE[:-1] + ', R{"tries"}min=? [ C ], Pmin=? [ F s=1 ])'
    assert main(["check", gamble, four, "--plot", str(tmp_path / "no.svg")]) == 2
    assert "2 or 3 objectives, got 4" in capsys.readouterr().err
    assert not (tmp_path / "no.svg").exists()


def test_schedulers_are_written(capsys: pytest.CaptureFixture[str], tmp_path: Path, gamble: str) -> None:
    target = tmp_path / "mix.csv"
    assert main(["check", gamble, BOUNDS, "--scheduler", str(target)]) == 0
    capsys.readouterr()
    assert target.read_text().splitlines()[0] == "point,share,s,memory,action,layer,next,command"


def test_the_frontier_of_points() -> None:
    points = [(0.0, 0.0), (1.0, 3.0), (0.5, 0.5), (0.2, 2.0), (1.0, 4.0)]
    assert frontier(points, [True, False]) == [(0.0, 0.0), (0.5, 0.5), (1.0, 3.0)]
    assert frontier(points, [True, True]) == [(1.0, 4.0)]
    assert frontier([], [True, True]) == []


def test_one_objective_is_no_picture() -> None:
    from hybrid.base.figures import plot_pareto

    with pytest.raises(OptionError, match="got 1"):
        plot_pareto({"objectives": ["P"]}, "a.svg")

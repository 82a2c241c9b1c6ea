"""`hybrid plot-matrix`: measures, plots, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.errors import OptionError
from hybrid.explicit import plots

PNG = b"\x89PNG"


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    status = main(["plot-matrix", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_both_orders_are_measured_and_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, examples_folder: Path
) -> None:
    target = tmp_path / "matrix.png"
    status, found = run_json(
        capsys, str(examples_folder / "brp.prism"), "--const", "N=16,MAX=2", "--bfs", "-o", str(target)
    )
    assert status == 0
    assert target.read_bytes().startswith(PNG)
    assert found["plot"] == str(target)
    assert found["reason"] is None
    before, after = found["original"], found["bfs"]
    assert isinstance(before, dict) and isinstance(after, dict)
    assert set(before) == {"bandwidth", "mean_distance", "bytes_per_warp", "least_bytes_per_warp"}
    assert after["bandwidth"] < before["bandwidth"]
    assert after["bytes_per_warp"] < before["bytes_per_warp"]


def test_plain_output_needs_no_plot(capsys: pytest.CaptureFixture[str], examples_folder: Path) -> None:
    assert main(["plot-matrix", str(examples_folder / "tandem.prism"), "--const", "c=3"]) == 0
    out = capsys.readouterr().out
    assert "bandwidth" in out
    assert "original" in out
    assert "breadth-first" not in out


def test_a_matrix_too_large_to_write_out_is_still_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.explicit.extract.free_memory_bytes", lambda: 10**9)
    target = tmp_path / "large.png"
    model = str(examples_folder / "kanban.prism")
    status, found = run_json(capsys, model, "--const", "t=10", "-o", str(target), "--cells", "100")
    assert status == 0
    assert target.read_bytes().startswith(PNG)
    assert found["original"] is None
    assert "12032229352 entries" in str(found["reason"])
    assert main(["plot-matrix", model, "--const", "t=10"]) == 0
    assert "not measured: the explicit matrix has 12032229352 entries" in capsys.readouterr().out
    assert main(["plot-matrix", model, "--const", "t=10", "--bfs"]) == 1
    assert "12032229352 entries" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "matrix.svg"), "written as .png, got 'matrix.svg'"),
        (("--cells", "0"), "at least 1 cell a side, got 0"),
    ],
)
def test_wrong_usage_exits_with_2(
    capsys: pytest.CaptureFixture[str], examples_folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    status = main(["plot-matrix", str(examples_folder / "tandem.prism"), "--const", "c=3", *arguments])
    assert status == 2
    assert message in capsys.readouterr().err


def test_plots_check_what_they_get(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="at least one grid"):
        plots.plot_structures([], tmp_path / "a.png")
    with pytest.raises(OptionError, match="written as .png"):
        plots.plot_structures([], tmp_path / "a.pdf")


def test_no_variable_order_changes_what_is_drawn(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    examples_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[list[tuple[str, list[list[int]]]]] = []
    monkeypatch.setattr(
        plots, "plot_structures", lambda grids, *rest: drawn.append([(n, g.tolist()) for n, g in grids])
    )
    model, found = str(examples_folder / "tandem.prism"), []
    for order in ("model", "reversed"):
        target = str(tmp_path / "order.png")
        status, told = run_json(
            capsys, model, "--const", "c=5", "--bfs", "--cells", "40", "--order", order, "-o", target
        )
        assert status == 0
        found.append((told["original"], told["bfs"]))
    assert found[0] == found[1]
    assert drawn[0] == drawn[1]

"""`hybrid plot-matrix`: measures, plots, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hybrid.__main__ import main
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit import density as plots

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
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("hybrid.matrix.explicit.extract.free_memory_bytes", lambda: 10**5)
    target = tmp_path / "large.png"
    model = str(examples_folder / "kanban.prism")
    status, found = run_json(capsys, model, "--const", "t=2", "-o", str(target), "--cells", "100")
    assert status == 0
    assert target.read_bytes().startswith(PNG)
    assert found["original"] is None
    assert "28120 entries" in str(found["reason"])
    assert main(["plot-matrix", model, "--const", "t=2"]) == 0
    assert "not measured: the explicit matrix has 28120 entries" in capsys.readouterr().out
    assert main(["plot-matrix", model, "--const", "t=2", "--bfs"]) == 1
    assert "28120 entries" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "matrix.gif"), "written as .png, .svg or .pdf, got 'matrix.gif'"),
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
        plots.plot_structures([], tmp_path / "a.gif")


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


def test_single_entries_are_wide_enough_to_be_seen(rng: np.random.Generator) -> None:
    grid = np.zeros((600, 600), np.int64)
    grid[100, 200] = 7
    grid[300:400, 300:400] = rng.integers(1, 5, (100, 100))
    seen = plots.visible(grid)
    assert np.array_equal(seen[99:102, 199:202], np.full((3, 3), 7))
    assert np.array_equal(seen[301:399, 301:399], grid[301:399, 301:399])
    assert np.array_equal(seen[grid > 0], grid[grid > 0])
    assert not seen[:98].any() and not seen[:, 500:].any()
    small = np.eye(100, dtype=np.int64)
    assert plots.visible(small) is small


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_lone_entry_of_a_large_matrix_is_on_the_picture(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"lone.{ending}"
    grid = np.zeros((600, 600), np.int64)
    grid[250, 350] = 1
    plots.plot_structures([("one entry", grid)], path, "a file")
    assert path.stat().st_size > 1000
    if ending == "png":
        image = np.asarray(Image.open(path).convert("L"))
        height, width = image.shape
        assert (image[height // 5 : -height // 5, width // 5 : -width // 5] < 64).sum() >= 9

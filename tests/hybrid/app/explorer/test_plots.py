"""The explorer's plots: data of the representation that is reported on, a legend of what is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.app.explorer import LevelReport, report_levels, weigh_levels
from hybrid.app.explorer.blocks import memory_shares, plot_level_curves, plot_memory_shares
from hybrid.matrix.backends import choose_backend
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from mtbdd.offset.offset import OffsetMTBDD

pytest.importorskip("matplotlib")

REPRESENTATIONS = ("row-types", "tasks")


@pytest.fixture(scope="module")
def matrices(examples_folder: Path) -> list[OffsetMTBDD]:
    """Two sizes of the kanban system."""
    return [hybrid.load(examples_folder / "kanban.prism", {"t": t}).transitions for t in (1, 2)]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved."""
    found: list[Any] = []
    monkeypatch.setattr("hybrid.app.explorer.blocks.save_figure", lambda figure, path: found.append(figure))
    return found


def lines_of(axes: Any, name: str) -> list[Any]:
    return [line for line in axes.get_lines() if line.get_gid() == name]


def legend_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_figure_5_2_has_the_bytes_of_every_level(
    matrices: list[OffsetMTBDD], figures: list[Any], representation: str
) -> None:
    reports = [report_levels(m, f"t={t}", representation=representation) for t, m in enumerate(matrices, 1)]
    plot_level_curves(reports, "curves.png")
    (axes,) = figures[0].axes
    for report, matrix, memr in zip(reports, matrices, lines_of(axes, "memr"), strict=True):
        levels = range(matrix.n_levels + 1)
        assert memr.get_xdata().tolist() == list(levels)
        np.testing.assert_allclose(1e6 * memr.get_ydata(), [report.curve[k].bytes_worst_case for k in levels])
        worst = [inject_level(matrix, k) for k in levels]
        assert all(cut_tasks(one).nbytes <= report.curve[k].bytes_worst_case for k, one in enumerate(worst))
    if representation == "tasks":
        assert not lines_of(axes, "counted")
        for matrix, held in zip(matrices, lines_of(axes, "held"), strict=True):
            sizes = [cut_tasks(inject_level(matrix, int(k))).nbytes for k in held.get_xdata()]
            np.testing.assert_allclose(1e6 * held.get_ydata(), sizes)
    else:
        assert not lines_of(axes, "held")
        for report, line in zip(reports, lines_of(axes, "counted"), strict=True):
            np.testing.assert_allclose(
                1e6 * line.get_ydata(), [c.row_type_bytes for c in report.curve.levels]
            )
    vectors = [line.get_ydata()[0] for line in lines_of(axes, "vectors")]
    np.testing.assert_allclose(vectors, [24 * m.n_rows / 1e6 for m in matrices])


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_marks_are_of_what_is_held_and_do_not_hide_each_other(
    examples_folder: Path, figures: list[Any], representation: str
) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", {"t": 3}).transitions
    report = report_levels(matrix, representation=representation)
    plot_level_curves([report], "curves.png")
    (axes,) = figures[0].axes
    figures[0].canvas.draw()
    expected = {
        "min_memory": (report.min_memory, report.bytes_at(report.min_memory)),
        "min_memr": (report.curve.min_memory, report.curve[report.curve.min_memory].bytes_worst_case),
        "min_time": (report.min_time, report.bytes_at(report.min_time)),
    }
    places = []
    for name, (level, size) in expected.items():
        (mark,) = lines_of(axes, name)
        assert size is not None
        assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (level, size / 1e6)
        places.append(mark.get_transform().transform((level, size / 1e6)))
    if representation == "tasks":
        # All three are of one level.
        assert len({level for level, _ in expected.values()}) == 1
    apart = [np.abs(a - b).max() for i, a in enumerate(places) for b in places[:i]]
    assert min(apart) >= 7 * figures[0].dpi / 72


def test_the_legend_has_what_is_drawn_alone(matrices: list[OffsetMTBDD], figures: list[Any]) -> None:
    matrix = matrices[0]
    marks = ["least held", "least MemR", "least time"]
    counted = report_levels(matrix, "t=1")
    weighed = report_levels(matrix, "t=1", held=weigh_levels(matrix, choose_backend("cpu")))
    tasks = report_levels(matrix, "t=1", representation="tasks")
    for report, names in ((counted, {"counted"}), (weighed, {"counted", "held"}), (tasks, {"held"})):
        plot_level_curves([report], "curves.png")
        (axes,) = figures[-1].axes
        assert legend_of(axes) == [
            "t=1",
            "MemR: submatrices and tasks, worst case",
            *(["row types, counted"] if "counted" in names else []),
            *(["held"] if "held" in names else []),
            "vectors (MemB)",
            *marks,
        ]
        assert {name for name in ("counted", "held") if lines_of(axes, name)} == names


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_figure_5_3_has_shares_of_what_is_held(
    matrices: list[OffsetMTBDD], figures: list[Any], representation: str
) -> None:
    reports = [report_levels(m, f"t={t}", representation=representation) for t, m in enumerate(matrices, 1)]
    plot_memory_shares(reports, "shares.png")
    (axes,) = figures[0].axes
    kind = representation.replace("-", " ")
    names = [f"{kind}, least held", f"{kind}, least time", "least MemR, worst case"]
    assert legend_of(axes) == names
    for bars, name in zip(axes.containers, names, strict=True):
        heights = [bar.get_height() for bar in bars]
        assert heights == [memory_shares(report)[name] for report in reports]
    for report, matrix in zip(reports, matrices, strict=True):
        assert memory_shares(report) == pytest.approx(shares_by_hand(report, matrix, names))


def shares_by_hand(report: LevelReport, matrix: OffsetMTBDD, names: list[str]) -> dict[str, float]:
    """Percentages of 24 bytes a state."""
    curve = report.curve
    if report.representation == "tasks":
        built = [cut_tasks(inject_level(matrix, k)).nbytes for k in range(len(curve))]
        sizes = [min(built), built[report.min_time]]
    else:
        counted = [c.row_type_bytes or 0 for c in curve.levels]
        sizes = [min(counted), counted[report.min_time]]
    sizes.append(min(c.bytes_worst_case for c in curve.levels))
    return {name: 100 * size / (24 * matrix.n_rows) for name, size in zip(names, sizes, strict=True)}

"""Programs that measure on the host, run at small sizes; their records are rendered."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from benchmarks.library import processes
from benchmarks.library.models import example_of
from benchmarks.programs import (
    certified_pairs,
    certified_products,
    cold_start,
    commit_pairs,
    cpu_iteration,
    density_sweep,
    file_formats,
    first_use,
    ltl_products,
    lumping,
    many_vectors,
    same_answers,
    scaling,
    simulation,
    structure_plots,
    symbolic_build,
    symbolic_components,
    variable_orders,
    whole_run,
)
from benchmarks.rendering.formats import structure_table
from hybrid.analysis.linear import split_system
from hybrid.checking.checker import Checker
from hybrid.solvers import Solution, Status
from hybrid.solvers.direct_bounds import DirectBounds
from tests.benchmarks.support import ROOT, WHERE, options, rendered

RecordOf = Callable[..., dict[str, Any]]


@pytest.mark.nightly
def test_many_cards_on_paper(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "PARTS", (8, 16))
    record = record_of(scaling, "--only", "tandem c=4095", "--network", "25")
    rows = {row["cards"]: row for row in record["rows"]}
    assert rows[8]["states"] == 33_550_336 and rows[8]["received"] >= 4095
    # All of a halo goes by the network where one machine does not do.
    assert rows[16]["exchange_seconds"] == pytest.approx(8 * rows[16]["received"] / 25e9)
    assert rows[8]["exchange_seconds"] == pytest.approx(8 * rows[8]["received"] / record["link_rate"])
    assert all(0.0 < row["least_efficiency"] <= row["most_efficiency"] <= 1.0 for row in rows.values())
    assert rows[16]["card_bytes"] < 0.07 * 20 * 33_550_336
    assert "| tandem c=4095 | 16 |" in rendered("scaling", record)


def test_products_on_the_cpu(record_of: RecordOf, tmp_path: Path) -> None:
    table = tmp_path / "prism.csv"
    lines = ("-hybrid -jor,28120,2.5", "-hybrid,28120,1.5", "-mtbdd,28120,9", "")
    table.write_text("\n".join(("flags,transitions,ns_per_transition_iter", *lines)))
    record = record_of(cpu_iteration, "kanban:2", "brp:8", "--seconds", "0.01", "--prism", str(table))
    kanban, brp = record["rows"]
    assert (kanban["transitions"], kanban["prism_ns_per_transition"]) == (28120, {"hybrid": 1.5})
    assert brp["states"] > 1000 and brp["prism_ns_per_transition"] == {}
    for row in record["rows"]:
        assert row["largest_relative_difference"] < 1e-13
        assert row["speedup"] == row["seconds"]["scipy_csr"] / row["seconds"]["product"]
        row["transitions"] = 2_000_000
    assert "| kanban 2 | 2,000,000 |" in (page := rendered("cpu_iteration", record)) and "MKL" not in page


class _Library:
    """Stands for MKL."""

    version = "Library Version 1-Product Build 2"

    def __init__(self, path: Path) -> None:
        self.threads: list[int] = []

    def set_threads(self, count: int) -> None:
        self.threads.append(count)


class _Product:
    """Stands for its products."""

    def __init__(self, library: _Library, matrix: Any) -> None:
        self.library, self.matrix = library, matrix

    def multiply(self, x: np.ndarray, out: np.ndarray) -> None:
        out[:] = self.matrix @ x

    def close(self) -> None:
        assert self.library.threads


def test_products_on_the_cpu_beside_another_library(
    record_of: RecordOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library := tmp_path / "libmkl_rt.so").touch()
    monkeypatch.setattr(cpu_iteration, "Mkl", _Library)
    monkeypatch.setattr(cpu_iteration, "MklProduct", _Product)
    record = record_of(cpu_iteration, "kanban:2", "--seconds", "0.01", "--mkl", str(library))
    (row,) = record["rows"]
    seconds = row["seconds"]
    for threads in ("", "_one_thread"):
        beside = seconds[f"product_beside_mkl{threads}"]
        assert row[f"speedup_over_mkl{threads}"] == seconds[f"mkl{threads}"] / beside
    row["transitions"] = 2_000_000
    page = rendered("cpu_iteration", record)
    assert "MKL is Library Version 1, " in page and "with one over MKL with one" in page


@pytest.mark.nightly
def test_products_with_several_vectors(record_of: RecordOf) -> None:
    record = record_of(many_vectors, "kanban:2", "--seconds", "0.01", "--vectors", "5")
    (row,) = record["rows"]
    assert "error" not in row
    assert (row["transitions"], row["vectors"]) == (28120, 5)
    assert row["share_of_one_by_one"] == row["seconds"]["at_once"] / row["seconds"]["one_by_one"]


@pytest.mark.nightly
def test_files_of_other_formats(record_of: RecordOf) -> None:
    record = record_of(file_formats, "kanban:t=1", "--formats", ".umb", ".dd")
    for row in record["rows"]:
        assert "error" not in row
        assert row["nodes"]["file"] == row["nodes"]["text"]
        assert row["bytes"] > 0
    assert "| kanban t=1 | `.umb` | 616 |" in rendered("file_formats", record)


def test_density_sweep_on_the_cpu(record_of: RecordOf) -> None:
    record = record_of(density_sweep, "--quick", "--backends", "cpu", "--trials", "2", "--solve-seconds", "1")
    assert not [row for row in record["rows"] if "error" in row]
    for row in record["rows"]:
        jacobi = next(run for run in row["runs"] if run["method"] == "jacobi")
        assert jacobi["statuses"] == ["converged"]
        if row["part"] == "twins" or (row.get("model") == "biased_die" and "paper" in row):
            assert [row["n"], row["entries"]] == row["paper"]
        # The answers of both forms are good; without a preconditioner it may take longer.
        plain = next(run for run in row["runs"] if run["method"] == "bicgstab-plain")
        assert plain["statuses"] == ["converged"] and plain["residual"] < 1e-3
    text = rendered("density_sweep", record)
    assert "bicgstab cpu | bicgstab-plain cpu" in text and "Means of 2 trials" in text
    older = {**record, "methods": ["jacobi", "bicgstab"]}
    assert "plain` is not" not in rendered("density_sweep", older)


def test_a_row_that_takes_long_has_fewer_trials(record_of: RecordOf) -> None:
    chosen = ("--quick", "--backends", "cpu", "--parts", "twins", "--trials", "3", "--row-seconds", "0")
    record = record_of(density_sweep, *chosen)
    assert {run["trials"] for row in record["rows"] for run in row["runs"]} == {1}
    assert "Means of 3 trials, of 1 at least" in rendered("density_sweep", record)


def test_a_system_without_a_preconditioner_is_the_same_system() -> None:
    rng = np.random.default_rng(5)
    system = split_system(density_sweep.random_matrix(rng, 40, 200), rng.random(40))
    plain = density_sweep.without_preconditioner(system)
    x = rng.random(40)
    assert set(plain.diagonal) == {1.0}
    np.testing.assert_allclose(plain.apply(x), system.apply(x), rtol=1e-12)


@pytest.mark.parametrize(("needed", "expected"), [(10_000, 2_000), (300, 200_000), (1_500, 200_000)])
def test_a_first_run_that_compiles_does_not_limit_the_iterations(needed: int, expected: int) -> None:
    calls: list[int] = []

    def solve(limit: int) -> Solution:
        calls.append(limit)
        done, status = (limit, Status.MAX_ITERATIONS) if limit < needed else (needed, Status.CONVERGED)
        seconds = 1e-3 * done + (5.0 if len(calls) == 1 else 0.0)
        return Solution(np.zeros(1), status, done, seconds, 1.0, 1.0)

    assert density_sweep.fitting_iterations(solve, 2.0) == expected
    # A little more than twice the time that a solution may take.
    assert sum(min(limit, needed) for limit in calls) < 2.5 * 2_000


def test_steps_of_sample_paths(record_of: RecordOf) -> None:
    cores = os.sched_getaffinity(0)
    record = record_of(simulation, "--quick", "--only", "tandem", "--repeats", "2")
    assert os.sched_getaffinity(0) == cores
    many, one = record["rows"]
    assert (many["paths"], many["steps"], one["paths"], many["events"]) == (1000, 100, 1, 4)
    assert many["seconds"] == min(many["all_seconds"]) and len(many["all_seconds"]) == 2
    assert many["steps_per_second"] == 100_000 / many["seconds"]
    assert "| tandem c=1023 | 4 | 1,000 | 100 |" in rendered("simulation", record)


@pytest.mark.nightly
def test_answers_in_linear_temporal_logic(record_of: RecordOf) -> None:
    record = record_of(ltl_products, "kanban:t=1", "coin:K=1")
    for row in record["rows"]:
        assert row["hybrid"]["value"] == pytest.approx(row["explicit"]["value"])
        assert all(
            row[engine]["seconds"] > row[engine]["iteration_seconds"] for engine in ("hybrid", "explicit")
        )
    assert "| kanban t=1 | `P=? [ (z4<t) U" in rendered("ltl_products", record)


@pytest.mark.nightly
def test_products_until_bounds_meet(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified_products, "CASES", {"cluster N=4": "P=? [ left_switch_n U left_n=0 ]"})
    (row,) = (record := record_of(certified_products))["rows"]
    assert row["default"]["products"] * 2 < row["without"]["products"]
    assert row["ratio"] == row["default"]["products"] / row["without"]["products"]
    assert row["default"]["method"] == row["without"]["method"] == "optimistic"
    text = rendered("certified_products", record)
    assert (
        f"| cluster N=4 | `P=? [ left_switch_n U left_n=0 ]` | 820 | {row['without']['products']:,} |" in text
    )
    assert f"greatest {row['ratio']:.2f}" in text
    # What is given up is not answered in rational numbers: that takes seconds, and no products.
    monkeypatch.setattr(Checker, "_exactly", lambda checker, formula: None)
    (row,) = (record := record_of(certified_products, "--most", "30"))["rows"]
    assert not row["without"]["met"] and "ratio" not in row
    # At their end some guesses of an upper bound are looked at as well.
    made = row["without"]["products"]
    assert 30 <= made < 60
    assert rf" | 820 | \> {made} | " in rendered("certified_products", record)


def test_plain_iterations_factorise_no_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    factorised: list[DirectBounds] = []
    written = DirectBounds._written

    def counted(self: DirectBounds, iterate: Any) -> Any:
        factorised.append(self)
        return written(self, iterate)

    monkeypatch.setattr(DirectBounds, "_written", counted)
    model, question = example_of("herman", "N=5"), 'filter(max, R{"steps"}=? [ F "stable" ], "init")'
    with certified_products._untried():
        plain = hybrid.check(model, question, backend="cpu")
    assert not factorised
    default = hybrid.check(model, question, backend="cpu")
    assert factorised and default.statistics.products < plain.statistics.products


def test_symbolic_builds_in_fresh_processes(record_of: RecordOf, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(symbolic_build, "OWN", symbolic_build.OWN[1:2])
    (tmp_path / "m.prism").write_text((ROOT / "examples" / "kanban.prism").read_text())
    head = "model,const,t_model_construction_s,states,transitions,mtbdd_nodes\n"
    lines = (
        "a/m.prism,t=1,0.5,160,616,{0}\n",
        "a/m.prism,t=1,0.25,160,616,{0}\n",
        "a/gone.prism,t=1,1,1,1,1\n",
    )
    nodes = hybrid.load(tmp_path / "m.prism", {"t": 1}).statistics.mtbdd_nodes
    (tmp_path / "prism.csv").write_text(head + "".join(lines).format(nodes))
    arguments = ("--models", str(tmp_path), "--prism", str(tmp_path / "prism.csv"), "--repeats", "2")
    record = record_of(symbolic_build, *arguments)
    (row,) = record["rows"]
    assert len(row["all_seconds"]) == 3
    first, *again = row["all_seconds"]
    assert (row["first_seconds"], row["seconds"]) == (first, statistics.median(again))
    assert (row["same_sizes"], row["prism_seconds"], row["states"]) == (True, 0.25, 160)
    assert row["ratio"] == 0.25 / row["first_seconds"]
    text = rendered("symbolic_build", record)
    assert (
        f"| m.prism t=1 | 160 | 616 | {nodes} | {row['first_seconds']:.3f} | {row['seconds']:.3f} | 0.25 |"
        in text
    )


def test_symbolic_components(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(symbolic_components, "kanban=1")
    assert record["rows"][0]["same"]
    monkeypatch.setattr(symbolic_components, "free_memory_bytes", lambda: 7)
    monkeypatch.setattr(
        symbolic_components, "model_graph", lambda model: (_ for _ in ()).throw(MemoryError("no"))
    )
    record = record_of(symbolic_components, "kanban=1")
    assert record["rows"][0]["refused"] == "no"
    assert "| refused | 1 | 1 |" in rendered("symbolic_components", record)


@pytest.mark.nightly
def test_two_trees_take_turns(record_of: RecordOf) -> None:
    arguments = ("--base", str(ROOT), "--only", "coin K=4, steps", "--rounds", "2", "--times", "1")
    (row,) = record_of(certified_pairs, *arguments)["rows"]
    assert [list(both) for both in row["rounds"]] == [["base", "this"]] * 2
    assert row["ratio"]["iterations"] == 1.0
    least = [min(both[tree]["iteration"] for both in row["rounds"]) for tree in ("this", "base")]
    assert row["ratio"]["iteration"] == round(least[0] / least[1], 3)
    with pytest.raises(RuntimeError, match="SystemExit: 3|3$"):
        processes.run_python("import sys; sys.exit('3')", None)


# ------------------------------------------------------------------ whole processes


def test_a_whole_process_on_the_cpu(record_of: RecordOf) -> None:
    record = record_of(whole_run, "--const", "t=1", "--backend", "cpu")
    (row,) = record["rows"]
    assert (row["states"], row["transitions"], row["synchronisations"]) == (160, 616, 0)
    assert row["wall_seconds"] > row["check_seconds"] > row["iteration_seconds_total"] > 0
    assert row["peak_rss_bytes"] > 10_000_000
    assert (row["peak_device_bytes"], row["compiled_kernels"]) == (None, 0)
    model = hybrid.load(ROOT / "examples" / "kanban.prism", {"t": 1})
    here = hybrid.check(model, 'R{"throughput"}=? [ S ]', backend="cpu", method="jor", epsilon=1e-6)
    assert (row["value"], row["iterations"]) == (here.value, here.statistics.iterations)
    assert f"| 0 | {here.value!r} | none |" in rendered("whole_run", record)


@pytest.mark.nightly
def test_the_first_use_on_a_machine(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        first_use.CHECKS, "kanban t=4", ("kanban", "--const", "t=1", "--property", "throughput")
    )
    record = record_of(first_use, "--backend", "cpu", "--only", "kanban t=4", "--repeat", "1")
    package, check = record["rows"]
    assert package["host_kernels"] == package["device_kernels"] == check["device_kernels"] == 0
    assert check["host_kernels"] > 0
    assert min(check["first_seconds"], check["again_seconds"], package["again_seconds"]) > 0
    assert len(check["all_seconds"]) == 2
    assert f"| kanban t=4 | cpu | {check['first_seconds']:.2f} |" in rendered("first_use", record)


KANBAN = ("examples/kanban.prism", "examples/kanban.props")


@pytest.mark.nightly
def test_starts(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        cold_start.STARTS,
        "hybrid check kanban t=3",
        (("-m", "hybrid", "check", *KANBAN, "--const", "t=1"), 1.0),
    )
    names = ("hybrid check kanban t=3", "import hybrid", "hybrid levels kanban t=10")
    record = record_of(cold_start, *(word for name in names for word in ("--only", name)), "--repeat", "2")
    check, alone, levels = record["rows"]
    assert len(check["all_wall_seconds"]) == 2 and check["wall_seconds"] > alone["wall_seconds"] > 0
    assert check["processor_seconds"] > 0 and alone["goal_seconds"] == 0.03
    # Of a process that has less than this one nothing is known.
    own = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert alone["peak_rss_bytes"] is None
    assert levels["peak_rss_bytes"] is None or levels["peak_rss_bytes"] > own
    assert levels["goal_seconds"] == 1.5
    shown = rendered(
        "cold_start", {**record, "rows": [check, alone, {**levels, "peak_rss_bytes": 118_000_000}]}
    )
    assert re.search(r"\| hybrid levels kanban t=10 \|.*\| 118 \| 1500 \|", shown)
    assert f"| hybrid check kanban t=3 | {check['wall_seconds'] * 1000:.0f} |" in shown
    with pytest.raises(RuntimeError, match="ended with 2"):
        cold_start.measure({"command": "python"}, ("-c", "raise SystemExit(2)"), 1, None)


@pytest.mark.nightly
def test_checks_with_quotients(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    herman = ("examples/herman.prism", "examples/herman.props")
    monkeypatch.setitem(lumping.EXAMPLES, "tandem c=255", herman)
    record = record_of(lumping, "--only", "tandem c=255", "--repeat", "1")
    (row,) = record["rows"]
    assert (row["states"], row["blocks"], row["runs"]) == (32, 4, 1)
    assert row["lumped_lower"] <= row["plain_upper"] and row["refinement_seconds"] > 0
    assert "| 32 | 244 | 4 | 2 |" in rendered("lumping", record)


def test_variable_orders(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(variable_orders.MODELS, "brp N=128", ("tandem", {"c": 3}))
    record = record_of(variable_orders, "--only", "brp N=128")
    assert [row["order"] for row in record["rows"]] == ["model", "reversed", "force"]
    assert all(row["bytes"] >= row["least_bytes"] > 0 for row in record["rows"])
    assert "| brp N=128 | force |" in rendered("variable_orders", record)


@pytest.mark.nightly
def test_the_parts_of_the_first_use(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(first_use.CHECKS, "coin K=4", ("coin", "--const", "K=1", "--property", "heads"))
    rows = record_of(first_use, "--parts", "--only", "coin K=4", "--repeat", "1")["rows"]
    assert [row["name"] for row in rows] == [f"coin K=4, {part}" for part in first_use.PARTS]
    for row in rows:
        assert row["first_processor_seconds"] > row["again_processor_seconds"] > 0
        assert row["command"].startswith("python -m hybrid check examples/coin.prism")


def test_answers_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(same_answers, "CONSTANTS", {"jobs": "N=1"})
    chosen = options(out=tmp_path / "one.json", values=None, models=None, emulator=False, against=None)
    (row,) = same_answers.run(chosen).rows
    assert set(row["answers"]) == {"surely", "fastest", "slowest", "cheapest", "both"}
    assert set(row["answers"]["fastest"]) == {"cpu", "explicit", "reference", "exact", "2 parts", "3 parts"}
    value, lower, upper, _ = row["answers"]["fastest"]["cpu"].split()
    assert float.fromhex(lower) <= float.fromhex(value) <= float.fromhex(upper)
    assert row["answers"]["fastest"]["exact"].split()[0] == "2"
    # The same again is equal; one whose last bit is another is found.
    earlier = json.loads(chosen.out.read_text())
    other = math.nextafter(float.fromhex(lower), 0.0).hex()
    text = earlier["rows"][0]["answers"]["fastest"]["cpu"].replace(lower, other)
    earlier["rows"][0]["answers"]["fastest"]["cpu"] = text
    (tmp_path / "other.json").write_text(json.dumps(earlier))
    changed = options(**{**vars(chosen), "out": tmp_path / "two.json", "against": tmp_path / "other.json"})
    (row,) = same_answers.run(changed).rows
    assert (row["compared"], row["equal"]) == (30, 29)
    assert row["against"] == {"fastest": {"cpu": text}}
    assert row["digest"] != row["against_digest"]
    assert f"fastest, cpu: {value} {lower}" in capsys.readouterr().out
    assert "| 29 of 30 |" in rendered("same_answers", json.loads(changed.out.read_text()))
    # What a side lacks is no equal answer, and no commit is told in one line.
    assert same_answers.compared({"a": {"cpu": "1"}}, {})["equal"] == 0
    with pytest.raises(SystemExit, match="--against no-such-commit: neither a file nor a commit"):
        same_answers.run(options(**{**vars(chosen), "against": "no-such-commit"}))


def test_checks_of_the_first_use_are_there() -> None:
    for example, *arguments in first_use.CHECKS.values():
        model, properties = (ROOT / f"examples/{example}.{end}" for end in ("prism", "props"))
        assert model.exists()
        assert f'"{arguments[arguments.index("--property") + 1]}":' in properties.read_text()
    # What the parts put others in place of.
    for changes in first_use.PARTS.values():
        for place in re.findall(r"^(hybrid\.\S+|mtbdd\.\S+) = ", changes, re.MULTILINE):
            module, _, name = place.rpartition(".")
            assert hasattr(importlib.import_module(module), name), place


@pytest.mark.parametrize(
    ("measure", "arguments"),
    [
        (whole_run.measure, (["check", "examples/nothing.prism", "--quiet"],)),
        (first_use.measure, (["-c", "raise SystemExit(2)"], 1)),
    ],
)
def test_a_process_that_fails_is_no_measurement(measure: Any, arguments: tuple[Any, ...]) -> None:
    row = {"command": "a command"}
    with pytest.raises(RuntimeError, match="a command ended with 2"):
        measure(row, *arguments)
    assert row == {"command": "a command"}


def test_kernels_are_counted_where_they_are_kept(tmp_path: Path) -> None:
    kept = {name: tmp_path / name for name in processes.CODE_FOLDERS}
    for folder in kept.values():
        (folder / "below").mkdir(parents=True)
        (folder / "below" / "a.nbc").touch()
        (folder / "b.nbi").touch()
    found = processes.kernel_files({**os.environ, **{name: str(path) for name, path in kept.items()}})
    assert found == {"device": 2, "host": 1}


def test_the_devices_memory_is_watched_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    used = [100]
    monkeypatch.setattr(whole_run, "EVERY", 0.001)
    monkeypatch.setattr(whole_run, "has_device", lambda: True)
    monkeypatch.setattr(whole_run.DeviceWatch, "_used", staticmethod(lambda: used[0]))
    with whole_run.DeviceWatch() as watch:
        used[0] = 175
        end = time.monotonic() + 10
        while watch.peak_bytes != 75 and time.monotonic() < end:
            time.sleep(0.001)
        used[0] = 120
    assert watch.peak_bytes == 75


def test_wb13_figure_1_is_what_its_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(structure_plots, "save_figure", lambda figure, path: drawn.append(figure))
    pattern = structure_plots.plot_access(structure_plots.diagonal_matrix(), tmp_path / "access.png")
    # In iteration 0 threads 0 and 1 read x[0], thread i of 2 to 5 x[i - 1], and none reads x[5].
    assert pattern.tolist() == [[0, 0, 1, 2, 3, 4], [1, 1, 2, 3, 4, 5], [-1, 2, 3, 4, 5, -1]]
    left, right = drawn[0].axes
    texts = [[text.get_text() for text in axes.texts] for axes in (left, right)]
    assert "".join(texts[0]) == "●●○○○○●●●○○○○●●●○○○○●●●○○○○●●●○○○○●●"
    assert "".join(texts[1]) == "001234112345*2345*"
    empty = structure_plots.access_pattern(np.array([0, 0, 2]), np.array([3, 7]))
    assert empty.tolist() == [[-1, 3], [-1, 7]]


@pytest.mark.nightly
def test_structure_plots(record_of: RecordOf, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    record = record_of(structure_plots, "--only", "brp", "--images", str(tmp_path))
    (row,) = record["rows"]
    assert row["bfs"]["bandwidth"] < row["original"]["bandwidth"] / 5
    image = (tmp_path / row["image"]).read_bytes()
    assert image.startswith(b"\x89PNG")
    assert len(image) == row["image_bytes"] < 60_000
    text = structure_table(record)
    assert "| brp 16 MAX=5 | 1,304 | 1,731 |" in text
    assert "(images/structure-brp.png)" in text


def test_times_beside_another_tree() -> None:
    row: dict[str, Any] = {"name": "help", "kind": "process"}
    commit_pairs.measure(row, commit_pairs.command_run, ["--help"], ROOT, 2)
    assert len(row["all_seconds"]) == len(row["all_other_seconds"]) == 2
    assert 0.1 < row["ratio"] < 10 and 0.0 < row["seconds"]
    text = rendered("commit_pairs", {**WHERE, "against": "0123abc", "rounds": 2, "rows": [row]})
    assert "| help | process |" in text
    with pytest.raises(RuntimeError, match="hybrid no-such-command ended with 2"):
        commit_pairs.command_run(["no-such-command"], ROOT)

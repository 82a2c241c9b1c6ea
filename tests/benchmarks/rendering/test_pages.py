"""Pages are what the records render to, and what they say of speed is what the records say."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.rendering import gpu, host, markdown, render
from benchmarks.rendering.formats import byte_traffic
from benchmarks.rendering.thesis import mean_speedup
from tests.benchmarks.support import ROOT, WHERE, rendered

DOCS = ROOT / "docs"


def load(name: str) -> Any:
    return render.load(name)


def test_pages_are_what_the_records_render_to() -> None:
    """`python -m benchmarks.rendering.render` makes them so, and its option `--check` tells what differs."""
    found = [
        f"{path.name}:{difference}"
        for path in render.pages()
        for difference in render.differences(path, path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


# Measured on two machines, one after the other.
AWAITED = ("whole_answers", "whole_answers_cpu")


@pytest.mark.parametrize("name", [name for name in render.SECTIONS if name not in AWAITED or load(name)])
def test_every_section_has_its_record(name: str) -> None:
    text = rendered(name, load(name))
    assert text.startswith("## ")
    assert f"[`{name}.json`](../benchmarks/results/{name}.json)" in text


def test_blocks_need_their_markers() -> None:
    for page in ("no markers", "<!-- end: a --> <!-- rendered: a -->"):
        with pytest.raises(ValueError, match="once each, in this order"):
            render.replace_block(page, "a", "text")


def test_figures_on_several_cards_are_those_of_the_records() -> None:
    text = " ".join((DOCS / "distributed.md").read_text().split())
    whole = load("cards_whole")["rows"][0]
    assert f"{whole['states']:,} states and {whole['transitions']:,} transitions" in text
    assert f"{whole['iterations']:,} iterations of {1e3 * whole['seconds_per_iteration']:.0f} ms" in text
    assert f"takes {whole['wall_seconds']:.0f} seconds on two H200" in text
    cards = {row["model"]: row for row in load("cards")["rows"]}
    rows = {name: f"{100 * row['straight']['efficiency']:.0f} %" for name, row in cards.items()}
    large = cards["kanban t=10"]
    assert large["straight"]["exchanging_seconds"] / large["straight"]["seconds"] == pytest.approx(
        2 / 7, abs=0.01
    )
    assert 8e-9 * max(large["received"]) == pytest.approx(0.9, abs=0.05)
    assert max(r / own for r, own in both(cards["fms n=10"])) == pytest.approx(1 / 3, abs=0.02)
    for said in (
        f"makes {rows['kanban t=10']} of twice the steps of one card for kanban with `t=10`",
        f"{rows['tandem c=4095']} for tandem with `c=4095`, {rows['cluster N=512']} for cluster with `N=512`",
        f"and {rows['polling N=20']} for polling with `N=20`; {rows['kanban t=7']} for kanban with `t=7`",
        f"{rows['fms n=10']} for fms with `n=10` and {rows['coin K=24']} for coin",
        f"{100 * large['straight']['hidden']:.0f} % of it is hidden",
        f"{100 * cards['fms n=10']['straight']['hidden']:.0f} % of the exchange are hidden",
        f"By NCCL the same step makes {100 * large['NCCL']['efficiency']:.0f} %",
    ):
        assert said in text, said
    paper = {(row["model"], row["cards"]): row for row in load("scaling")["rows"]}
    eight = paper["kanban t=10", 8]
    least, most = (100 * eight[f"{name}_efficiency"] for name in ("least", "most"))
    assert f"{least:.0f} to {most:.0f} % of eight cards for kanban with `t=10`" in text
    assert paper["kanban t=15", 16]["card_bytes"] < 141e9 < paper["kanban t=15", 8]["card_bytes"]
    assert paper["kanban t=17", 64]["card_bytes"] > 141e9


def both(row: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Yield what either card receives, and what it owns."""
    return zip(row["received"], row["own"], strict=True)


def test_figures_of_variable_orders_are_those_of_the_record() -> None:
    text = " ".join((DOCS / "concepts.md").read_text().split())
    rows = {(row["model"], row["order"]): row for row in load("variable_orders")["rows"]}
    searched, plain = (rows["fms n=7", order] for order in ("search", "model"))
    share = 100 * searched["least_bytes"] / plain["least_bytes"]
    assert (
        f"{searched['search_seconds']:.0f} seconds and {share:.0f} % of the bytes for fms with `n=7`" in text
    )
    others = {name for name, _ in rows} - {"fms n=7"}
    assert len(others) == 4
    assert all(rows[name, "search"]["nodes"] == rows[name, "model"]["nodes"] for name in others)


def test_figures_in_prose_are_those_of_the_records() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    rows = load("cpu_iteration")["rows"]
    both, one = (
        statistics.geometric_mean(host.large_speedups(rows, key)) for key in ("speedup", "speedup_one_thread")
    )
    assert f"{both:.1f} times as fast as SciPy's CSR" in readme
    assert f"{one:.1f} times with one thread" in readme
    beside = host.large_speedups(rows, "speedup_over_mkl")
    assert f"{statistics.geometric_mean(beside):.1f} times as fast as MKL's" in readme
    assert f"from {min(beside):.1f} times where" in readme and f"to {max(beside):.1f} times" in readme
    wide = load("cpu_iteration_16")
    cores, over_scipy, over_mkl = (
        wide["threads"],
        host.large_speedups(wide["rows"], "speedup"),
        host.large_speedups(wide["rows"], "speedup_over_mkl"),
    )
    assert (
        f"With {cores} threads on {wide['environment']['cores']} cores it is "
        f"{statistics.geometric_mean(over_scipy):.1f} times as fast as SciPy's, and "
        f"{statistics.geometric_mean(over_mkl):.1f} times as fast as MKL's with as many, "
        f"from {min(over_mkl):.1f} to {max(over_mkl):.1f} times"
    ) in readme
    kanban = next(row for row in rows if row["model"] == "kanban:6")
    assert f"{kanban['transitions']:,} transitions" in readme
    csr, held = (
        f"{kanban['csr_bytes'] / 1e6:,.0f} MB",
        f"{kanban['representation_memory_bytes'] / 1e6:.1f} MB",
    )
    for key, size, what in (
        ("scipy_csr", csr, "SciPy's CSR, one thread"),
        ("product_one_thread", held, "compressed, one thread"),
        ("product", held, "compressed, two threads"),
    ):
        assert f"{what} | {size} | {kanban['seconds'][key] * 1e3:.0f} ms |" in readme
    assert f"took {kanban['choose_seconds'] + kanban['build_seconds']:.1f} s without" in readme
    shares = [row["ratio"] for row in load("certified_products")["rows"] if "ratio" in row]
    mean_share = statistics.geometric_mean(shares)
    assert f"Bounds take {mean_share:.2f} times the products" in readme
    assert f"over {len(shares)} questions" in readme and max(shares) <= 1.0
    assert f"brp {min(shares):.3f} times" in readme
    there = [row["ratio"] for row in load("certified_products_gpu")["rows"] if "ratio" in row]
    assert f"On a card it is {statistics.geometric_mean(there):.2f} times" in readme and max(there) <= 1.0
    properties = " ".join((DOCS / "properties.md").read_text().split())
    chains = [
        row["ratio"]
        for row in load("certified_products")["rows"]
        if not row["model"].startswith(("coin", "relay"))
    ]
    assert len(chains) == 12 and chains.count(1.0) == 1
    assert f"the default takes {statistics.geometric_mean(chains):.2f} times the products" in properties
    assert f"from {min(chains):.3f} to {max(chains)} times" in properties
    assert f"it is {statistics.geometric_mean(there):.2f} times the products" in properties
    assert f"from {min(there):.3f} to {max(there)};" in properties
    (_, (on_gpu, *_)), *_ = gpu.mean_gains(load("gpu_product")["rows"])
    assert f"{on_gpu:.1f} times as fast as cuSPARSE's CSR" in readme
    whole = load("whole_run")["rows"][0]
    held_there = f"with {whole['peak_rss_bytes'] / 1e9:.1f} GB on the host"
    assert f"in {whole['wall_seconds']:.0f} seconds from text to steady state, {held_there}" in readme
    assert whole["lower"] is None and "without bounds" in readme
    shared = load("cards_whole")["rows"][0]
    assert f"{shared['states']:,} states with {shared['transitions'] / 1e9:.0f} billion transitions" in readme
    assert f"takes JOR {shared['wall_seconds']:.0f} seconds as whole processes" in readme
    assert shared["lower"] is None and shared["method"] == "jor"
    mean = mean_speedup(load("thesis_tables"), "min_time")
    assert f"{mean:.0f} times as fast as on its 16 CPU cores" in readme
    sweeps = load("mdp_sweep")["rows"]
    gains, set_up = ([row[key] for row in sweeps] for key in ("speedup", "set_up_seconds"))
    predicted = [row["explicit_seconds"] / row["predicted_seconds"] for row in sweeps]
    laid_out = [row["predicted_set_up_seconds"] for row in sweeps]
    said = (
        f"{min(gains):.1f} to {max(gains):.1f} times as fast as",
        f"{min(set_up):.0f} to {max(set_up):.0f} s",
        f"{min(predicted):.1f} to {max(predicted):.1f} times",
        f"{min(laid_out):.1f} to {max(laid_out):.1f} s",
    )
    for page in (readme, " ".join((DOCS / "gpu.md").read_text().split())):
        assert [text for text in said if text not in page] == []
    certified, large = (load(f"whole_run_{name}")["rows"][0] for name in ("certified", "large"))
    assert certified["upper"] - certified["lower"] < 5e-9 * certified["value"]
    assert f"in {certified['wall_seconds']:.0f} seconds" in readme
    assert f"{large['states']:,} states" in readme and f"{large['wall_seconds']:.0f} seconds" in readme
    lean = load("whole_run_certified_large")["rows"][0]
    assert lean["upper"] - lean["lower"] < 3e-9 * lean["value"]
    assert f"{lean['states']:,} states" in readme and f"{lean['wall_seconds']:.0f} seconds" in readme
    walls: dict[str, dict[str, float]] = {}
    for row in load("whole_answers")["rows"]:
        if "wall_seconds" in row and row["states"] > 1e5:
            walls.setdefault(row["name"], {})[row["backend"]] = row["wall_seconds"]
    ratios = [pair["gpu"] / pair["gpu-explicit"] for pair in walls.values() if len(pair) == 2]
    assert len(ratios) == len(walls)
    assert f"geometric mean {statistics.geometric_mean(ratios):.2f}" in readme
    assert sorted(pair["gpu"] < 10.0 for pair in walls.values()).count(False) == 1
    least, most = min(pair["gpu"] for pair in walls.values()), max(pair["gpu"] for pair in walls.values())
    assert f"{least:.1f} to {math.ceil(most)} seconds for {len(walls)} case studies" in readme
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times as long" in readme
    beside = [row for row in load("symbolic_build")["rows"] if "prism_seconds" in row]
    assert all(row["seconds"] < row["prism_seconds"] for row in beside), (
        "README says so of builds after the first"
    )


def test_pages_link_to_records_that_are_there() -> None:
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md", *DOCS.rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]*\.(?:json|md))(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_program_and_record_is_in_the_readme() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text()
    for path in (ROOT / "benchmarks").rglob("*.py"):
        assert path.stem == "__init__" or f"`{path.stem}`" in text, path.stem
    assert set(re.findall(r"benchmarks\.(?:programs|rendering)\.([a-z_]+)", text)) <= {
        path.stem for path in (ROOT / "benchmarks").rglob("*.py")
    }


def test_what_was_not_measured_is_said() -> None:
    rows = [
        {"model": "fms", "constants": {"n": 2}, "error": "no room"},
        {"model": "tandem", "size": 3, "error": "no room"},
    ]
    record = {
        "benchmark": "b",
        **WHERE,
        "note": "a note",
        "rows": [*rows, {"model": "brp", "constants": "N=1,MAX=2"}],
    }
    text = markdown.section("Title", record, "text")
    assert "Not measured: fms n=2, tandem 3 (no room)." in text
    assert text.endswith("2026-01-01, commit abc, a processor, 2 cores, Python 3.11, numpy 2.0.  a note.")
    assert markdown.table_of(markdown.measured(record), ("model", markdown.name_of)).endswith(
        "| brp N=1, MAX=2 |"
    )


# ------------------------------------------------------------------ figures


def product_row(model: str, entries: int, seconds: float, cusparse: float, sell: float, csell: float) -> Any:
    return {
        "model": model, "constants": f"n={entries}", "states": 10, "entries": entries, "seconds": seconds,
        "cusparse_seconds": cusparse, "sell_seconds": sell, "csr_warp_seconds": 9.0, "csell_seconds": csell,
        "entries_per_second": entries / seconds, "bytes": 5, "csr_bytes": 100, "copy_seconds": seconds / 2,
        "best_level_seconds": seconds, "jacobi_compressed_seconds": 2 * seconds, "level": 3,
        "choice_seconds": 1, "build_seconds": 1,
        "baseline": [{"level": 1, "seconds": 9.0}, {"level": 2, "seconds": 8.0}],
    }  # fmt: skip


def test_means_over_the_largest_and_the_smallest_sizes() -> None:
    rows = [
        product_row("kanban", 7, 1.0, 4.0, 2.0, 1.0),
        product_row("fms", 9, 1.0, 4.0, 2.0, 3.0),
        product_row("kanban", 8, 1.0, 9.0, 8.0, 4.0),
        {"model": "tandem", "constants": "c=3", "error": "no luck"},
    ]
    (large, most), (small, least) = gpu.mean_gains(rows)
    assert (large, small) == ("the 2 models with kanban n=8", "the 2 models with kanban n=7")
    assert most == pytest.approx((6.0, 4.0, 8.0**0.5))
    assert least == pytest.approx((4.0, 2.0, 2.0**0.5))
    assert [name for name, _ in gpu.mean_gains(rows[1:])] == ["the 2 models"]
    assert gpu.mean_gains(rows[3:]) == []
    text = rendered("gpu_product", {**WHERE, "rows": rows})
    assert "Not measured: tandem c=3 (no luck)." in text
    assert "4.00 times as fast as the fastest uncompressed form" in text
    assert "2.83 times as fast as the fastest explicit form (CSELL" in text
    assert "without `cusparseSpMV_preprocess`" in text
    assert (
        "fastest at the highest or lowest level tried, and may be faster beyond it, on kanban n=7, fms"
        in text
    )
    plain = [{key: value for key, value in row.items() if key != "csell_seconds"} for row in rows]
    assert "fastest explicit form" not in gpu.mean_gains_text(plain)
    rows[0] |= {"cusparse_preprocessed": True}
    rows[0]["baseline"].insert(0, {"level": 5, "seconds": 9.0})
    text = rendered("gpu_product", {**WHERE, "rows": rows})
    assert "after `cusparseSpMV_preprocess` on 1 of 3 matrices." in text
    assert "beyond it, on fms n=9, kanban n=8." in text


def test_counters_of_other_levels_are_told() -> None:
    record = load("kernel_counters")
    (row,) = [dict(row) for row in record["rows"] if row["model"] == "tandem"]
    record["rows"] = [row]
    products = {"rows": [{"model": row["model"], "constants": row["constants"], "level": row["level"]}]}
    assert "other levels" not in gpu.kernel_counters(record, products)
    row["level"] = 7
    assert f"tandem c=4095 ({products['rows'][0]['level']} there), and explain" in gpu.kernel_counters(
        record, products
    )


def entry(name: str, seconds: float, share: float = 0.5, **more: Any) -> dict[str, Any]:
    found = {"format": name, "seconds": seconds, "share_of_copy": share, "bytes": 2400}
    return found | {"entries_per_second": 100 / seconds, **more}


def test_formats_and_their_distance_from_the_byte_traffic() -> None:
    formats = [entry("msr", 2e-3), entry("csell", 1e-3), entry("cusparse default", 3e-3)]
    formats.append({"format": "sell", "error": "no room"})
    row = {
        "model": "tandem",
        "constants": "c=7",
        "entries": 100,
        "hybrid": entry("", 5e-4),
        "formats": formats,
    }
    record = {"benchmark": "explicit_formats", **WHERE, "copy_bytes_per_second": 1e12, "rows": [row]}
    text = rendered("explicit_formats", record)
    assert "| 0.500 / 24 B | 2.00 / 24 B |" in text
    assert "| 3.00 | csell 1.00 | 3.00 | 6.00 |" in text
    assert "| tandem c=7 | 50 % |" in text
    more = {"traffic_bytes": 4_000_000, "elements_an_entry": 1.5}
    shares = (("msr", 0.95), ("msr-wl", 0.5), ("cmsr-scan", 0.004))
    row |= {"states": 100_000, "entries": 400_000, "formats": [entry(n, 1e-3, s, **more) for n, s in shares]}
    text = byte_traffic(json.loads(json.dumps(record)))
    assert "| tandem c=7 | **1.05** |  | 2.00 |  |  |  |  | 250 |  |  |" in text
    assert "| tandem c=7 | 4.0 | 1.50 |  | 4 | 0.80 |  |" in text

"""Pages are what the records render to."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.rendering import gpu, markdown, render
from benchmarks.rendering.formats import byte_traffic
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


# Measured on machines of their own, one after the other.
AWAITED = (
    "whole_answers",
    "whole_answers_cpu",
    "thesis_tables_tasks",
)


@pytest.mark.parametrize("name", [name for name in render.SECTIONS if name not in AWAITED or load(name)])
def test_every_section_has_its_record(name: str) -> None:
    text = rendered(name, load(name))
    assert text.startswith("## ")
    assert f"[`{name}.json`](../benchmarks/results/{name}.json)" in text


def test_blocks_need_their_markers() -> None:
    for page in ("no markers", "<!-- end: a --> <!-- rendered: a -->"):
        with pytest.raises(ValueError, match="once each, in this order"):
            render.replace_block(page, "a", "text")


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


@pytest.mark.parametrize("ways", [(), ("host",), ("NCCL", "host"), ("straight",)])
def test_f19_a_way_that_there_is_not_is_no_cell(ways: tuple[str, ...]) -> None:
    record = load("cards")
    row = next(row for row in record["rows"] if "own" in row)
    numbers = row["straight"]
    row = {key: value for key, value in row.items() if key not in ("straight", "NCCL", "host")}
    text = rendered("cards", record | {"rows": [row | dict.fromkeys(ways, numbers)]})
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row['model']} |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(cells) == 11
    seconds = f"{1e3 * numbers['seconds']:,.3f}"
    own = [seconds if way in ways else "-" for way in ("straight", "NCCL", "host")]
    assert [cells[4], *cells[9:]] == own
    assert (cells[5] == "-") == (cells[8] == "-") == ("straight" not in ways)

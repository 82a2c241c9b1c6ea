"""What is said of whole answers: who is first, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.rendering.whole_answers import Entry, entries_of, judgement, whole_answers
from tests.benchmarks.support import WHERE


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (Entry(2.0), {"cpu": Entry(4.0), "gpu-explicit": Entry(1.0)}, (2.0, "gpu-explicit")),
        (Entry(2.0), {"cpu": Entry(4.0), "gpu-explicit": Entry(None, 3.0)}, (2 / 3, "gpu-explicit")),
        (Entry(2.0), {"cpu": Entry(4.0), "gpu-explicit": Entry(None, 1.5)}, None),
        (Entry(2.0), {"cpu": Entry(1.9), "gpu-explicit": Entry(None, 1.5)}, (2 / 1.9, "cpu")),
        (Entry(2.0), {"cpu": Entry(4.0), "gpu-explicit": Entry(None, refused=True)}, (0.5, "cpu")),
        (Entry(None, 60.0), {"cpu": Entry(4.0)}, None),
        (Entry(2.0), {}, None),
        (None, {"cpu": Entry(4.0)}, None),
    ],
)
def test_who_is_first_and_when_that_cannot_be_told(own: Any, others: Any, expected: Any) -> None:
    assert judgement({**({} if own is None else {"gpu": own}), **others}) == expected


def test_first_among_some() -> None:
    entries = {"gpu": Entry(2.0), "cpu": Entry(4.0), "prism_hybrid": Entry(1.0)}
    assert judgement(entries, ("cpu", "gpu", "gpu-explicit")) == (0.5, "cpu")
    assert judgement(entries) == (2.0, "prism_hybrid")


def row(name: str, backend: str, seconds: float, states: int = 200_000, lower: float = 0.5) -> dict[str, Any]:
    return {
        "name": name, "place": int(name[-1]), "backend": backend, "wall_seconds": seconds, "states": states,
        "lower": lower, "upper": lower + 1e-9, "value": lower, "runs": 3, "loads": [0.1, 0.4, 0.2],
        "all_seconds": [seconds + 1.0, seconds, seconds - 1.0],
    }  # fmt: skip


def record(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"benchmark": "whole_answers", **WHERE, "epsilon": 1e-8, "rows": list(rows), **more}


def test_columns_of_two_records_and_the_claim() -> None:
    large, small = [row("b 1", "gpu", 2.0), row("b 1", "gpu-explicit", 3.0)], [row("a 0", "gpu", 2.3, 20_000)]
    large[0]["runs"], large[1]["runs"] = 2, 1
    cpu = record(row("b 1", "cpu", 4.0), row("a 0", "cpu", 2.0, 20_000), file="whole_answers_cpu")
    text = whole_answers(record(*large, *small), cpu)
    assert (
        "| a 0 | 20,000 | 2.00 | 2.30 |  | CPU hybrid | 1.15 | within 20 % |\n| b 1 | 200,000 | 4.00 |"
        in text
    )
    assert (
        "first on 1 of 1 rows of more than 10⁵ states, and within 20 % of the best on 1 of 1 below." in text
    )
    assert (
        "bounds of our engines meet in every row" in text
        and "Medians (CPU hybrid 3 runs; GPU hybrid 2 to 3 runs; GPU explicit one run);" in text
    )
    assert "results/whole_answers_cpu.json), 2026-01-01, commit abc, a processor, 2 cores.\n" in text
    assert "PRISM's and Storm's times were" not in text
    small[0]["wall_seconds"] = 2.5
    text = whole_answers(record(*large, *small), cpu)
    assert "| 2.50 |  | CPU hybrid | 1.25 | no |" in text and "on 0 of 1 below" in text
    text = whole_answers(record(*large), cpu)
    assert "on 0 of 1 below; 1 of all cannot be told." in text and "| 2.00 |  |  |  |  | not known |" in text
    apart = whole_answers(record(*large, row("a 0", "gpu", 2.3, 20_000, 0.6)), cpu)
    assert "**bounds of our engines do not meet: a 0**" in apart
    assert "Kernels and bytecode had been compiled before.  " in text
    small[0]["compiled_kernels"] = 2
    assert "before, but for some of a 0 (GPU hybrid).  " in whole_answers(record(*large, *small), cpu)
    alone = whole_answers(cpu)
    assert alone.startswith("## Whole answers, on the CPU\n") and "first?" not in alone
    assert "| b 1 | 200,000 | 4.00 | 3.00 |  |  | 3 | 0.4 | 0.5 | 0.5, 0.500000001 |" in alone


def test_other_checkers_count_where_their_answer_is_ours() -> None:
    def run(seconds: float, value: float) -> dict[str, Any]:
        return {"settings": "", "seconds": seconds, "value": value}

    stopped = {"settings": "", "over_seconds": 60.0, "value": None}
    runs = {
        "prism_hybrid": [run(0.5, 0.51), run(1.0, 0.5004), run(1.5, 0.5)],
        "prism_sparse": [run(0.5, 0.51)],
        "storm_sparse": [stopped, {**stopped, "over_seconds": 20.0}],
    }
    peers = {"where": "a small machine", "runs": {"b 1": runs}}
    (found,) = entries_of(record(row("b 1", "gpu", 2.0)), record(peers=peers))
    assert found["entries"] == {
        "gpu": Entry(2.0), "prism_hybrid": Entry(1.0), "storm_sparse": Entry(None, 60.0)
    }  # fmt: skip
    text = whole_answers(record(row("b 1", "gpu", 2.0), row("b 1", "gpu-explicit", 3.0), peers=peers))
    assert r"| b 1 | 200,000 | 2.00 | 3.00 | 1.00 | \> 60 | PRISM hybrid | 2.00 | no |" in text
    assert "measured elsewhere, on another machine** (a small machine)" in text
    assert "first on 1 of 1 rows of more than 10⁵ states" in text and "first on 0 of 1" in text

"""The section of the page of results on components of graphs, after figures 6 to 9 of [WKB16]."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.rendering.markdown import Row as Case
from benchmarks.rendering.markdown import measured, milliseconds, section, table, table_of

__all__ = ["auto_choice", "scc_mec"]

BEST = "FBT1,7"
"""The paper's best configuration, F0,7 there: one search step a launch, so that no states are kept."""

PAPER_NAMES = {"F0,7": BEST, "F0,1": "FBT1,1", "F0,1-nh": "FBT1,1-nh", "F3,1": "FBT3,1", "F3,7": "FBT3,7"}
PIVOTS = {
    "plain pivots": "attractor, every lane",
    "warp-aggregated": "attractor",
    "aggregated, J": "attractor, joins",
    "BFBT, aggregated": "attractor, BFBT",
}
SMALL = 1.25
"""Times up to which two variants count as close."""


def scc_mec(record: Case) -> str:
    """Return the section on components of graphs."""
    cases = measured(record)
    parts = [
        "Strongly connected and maximal end components on the card beside one thread of the CPU.  The CPU is "
        "the faster of SciPy and a compiled Tarjan, and for end components a compiled decomposition; times "
        "are milliseconds, gains are without and with transfer.  A variant left out is one that a limit did "
        "not let begin.  [WKB16] writes F0,u where no states stay in shared memory; that is our FBT1,u.",
        _graphs(cases),
        *_figure(6, "Tarjan's algorithm and the published configuration", _figure_6, cases),
        *_figure(7, "configurations of the published search", _figure_7, cases),
        *_figure(8, "maximal end components", _figure_8, cases),
        *_figure(9, "pivots and bounds in end components", _figure_9, cases),
    ]
    for kind, title in (("scc", "Strongly connected components"), ("mec", "Maximal end components")):
        parts += _chosen(kind, title, cases)
    return section("Components of graphs", record, *parts)


def _graphs(cases: list[Case]) -> str:
    return table_of(
        cases,
        ("graph", "name"),
        ("states", "states"),
        ("choices", "choices"),
        ("transitions", "transitions"),
        ("SCCs", "sccs"),
        ("of one state", "trivial_sccs"),
        ("MECs", "mecs"),
        ("SciPy SCC", lambda c: milliseconds(c["scipy_seconds"])),
        ("Tarjan SCC", lambda c: milliseconds(c.get("tarjan_seconds"))),
        ("CPU MEC", lambda c: milliseconds(c["compiled_mec_seconds"])),
    )


def _figure(
    number: int, title: str, render: Callable[[list[Case]], tuple[str, str] | None], cases: list[Case]
) -> list[str]:
    """Return a figure's table and what it shows; nothing if nothing was measured."""
    found = render(cases)
    if found is None:
        return []
    text, finding = found
    return [f"**Figure {number}: {title}.**  {finding}", text]


# ------------------------------------------------------------------ figures


def _beside_the_cpu(
    cases: list[Case], kind: str, head: str, published: Callable[[Case], Case]
) -> tuple[str, list[float], list[float]]:
    """Return the table of a published variant and of auto beside the CPU, and the gains of both."""
    lines, gains, own_gains = [], [], []
    for case in cases:
        cpu, run, own = _cpu(case, kind), published(case), _run(case, kind, "auto")
        gains.append(cpu / run["seconds"])
        own_gains += [cpu / own["seconds"]] if own else []
        line = [case["name"], milliseconds(cpu), milliseconds(run["seconds"]), _gains(run, cpu)]
        lines.append([*line, milliseconds(own["seconds"]) if own else "", _gains(own, cpu)])
    return table(["graph", "CPU", head, "gains", "auto", "gains"], lines), gains, own_gains


def _figure_6(cases: list[Case]) -> tuple[str, str] | None:
    measured = [case for case in cases if _run(case, "scc", BEST)]
    if not measured:
        return None
    text, gains, _ = _beside_the_cpu(measured, "scc", "F0,7", lambda case: case["scc"][BEST])
    faster = sum(gain > 1 for gain in gains)
    finding = (
        "The paper gains about 30 times on graphs of one component, about 15 on most others, and loses on "
        f"wlan.  Here F0,7 is faster than one thread of today's CPU on {faster} of {len(gains)} graphs, "
        f"between {min(gains):.2g} and {max(gains):.2g} times: "
        + _verdict(faster == len(gains) and max(gains) >= 10, faster > len(gains) / 2)
    )
    return text, finding


def _figure_7(cases: list[Case]) -> tuple[str, str] | None:
    measured = [case for case in cases if sum(bool(_run(case, "scc", v)) for v in PAPER_NAMES.values()) > 1]
    if not measured:
        return None
    rows = [[case["name"], *(_time(case, "scc", v) for v in PAPER_NAMES.values())] for case in measured]
    findings = []
    ratios = _ratios(measured, "scc", "FBT1,1", BEST)
    if ratios:
        findings.append(
            "Restructuring, which the paper finds to be the main cause of speed: F0,1 takes "
            f"{_spread(ratios)} as long as F0,7; {_holds(statistics.geometric_mean(ratios) > SMALL)}"
        )
    ratios = _ratios(measured, "scc", "FBT1,1-nh", "FBT1,1")
    if ratios:
        mean = statistics.geometric_mean(ratios)
        findings.append(
            "The combined kernel, at best a minor gain in the paper: without it, F0,1-nh takes "
            f"{_spread(ratios)} as long; {_holds(mean <= SMALL)}"
        )
    ratios = _ratios(measured, "scc", "FBT3,7", BEST)
    if ratios:
        slower = sum(ratio > 1 for ratio in ratios)
        findings.append(
            f"Local caches, most often a loss in the paper: F3,7 is slower than F0,7 on {slower} of "
            f"{len(ratios)} graphs and takes {_spread(ratios)} as long; {_holds(slower > len(ratios) / 2)}"
        )
    return table(["graph", *PAPER_NAMES], rows), "  ".join(findings)


def _figure_8(cases: list[Case]) -> tuple[str, str] | None:
    measured = [case for case in cases if _run(case, "mec", "attractor")]
    if not measured:
        return None

    def best(case: Case) -> Case:
        runs = [run for name in PIVOTS.values() if (run := _run(case, "mec", name))]
        return min(runs, key=lambda run: float(run["seconds"]))

    text, gains, own = _beside_the_cpu(measured, "mec", "published", best)
    by_auto = f", the variant chosen by auto between {min(own):.2g} and {max(own):.2g}" if own else ""
    finding = (
        "The paper gains up to 79 times.  Here its algorithm, in the best configuration for each graph, "
        f"gains between {min(gains):.2g} and {max(gains):.2g} times{by_auto}: "
        + _verdict(max(gains) >= 40, max(gains) >= 10)
    )
    return text, finding


def _figure_9(cases: list[Case]) -> tuple[str, str] | None:
    measured = [case for case in cases if sum(bool(_run(case, "mec", v)) for v in PIVOTS.values()) > 1]
    if not measured:
        return None
    rows = [[case["name"], *(_time(case, "mec", v) for v in PIVOTS.values())] for case in measured]
    findings = []
    for title, over, under, says, gain_expected in (
        ("Warp aggregation", "attractor, every lane", "attractor", "most of the time a gain", True),
        ("Sets J on top of it", "attractor", "attractor, joins", "most often no further gain", False),
        ("BFBT", "attractor", "attractor, BFBT", "no consistent gain", False),
    ):
        ratios = _ratios(measured, "mec", over, under)
        if ratios:
            gains = sum(ratio > 1 for ratio in ratios)
            holds = (gains > len(ratios) / 2) == gain_expected
            findings.append(
                f"{title}, {says} in the paper: faster on {gains} of {len(ratios)} graphs, {_spread(ratios)} "
                f"as fast; {_holds(holds)}"
            )
    return table(["graph", *PIVOTS], rows), "  ".join(findings)


# ------------------------------------------------------------------ the choice


def auto_choice(record: Case) -> str:
    """Return how far single variants for strongly connected components are from the fastest ones."""
    parts = []
    for name in _ALONE["scc"]:
        factors = _factors("scc", name, record["rows"])
        graph = max(factors, key=lambda graph: factors[graph])
        parts.append(f"`{name}` alone takes at most {factors[graph]:.2f} times as long ({graph})")
    return (
        f"Beside the fastest of all variants on the same graph, over the {len(record['rows'])} graphs of "
        f"[the record](benchmarks.md#components-of-graphs), on {record['device']['name']}, "
        f"{' and '.join(parts)}."
    )


def _factors(kind: str, name: str, cases: list[Case]) -> dict[str, float]:
    """Return how many times as long as the fastest variant one takes, by graph."""
    found = {}
    for case in cases:
        own = _run(case, kind, name)
        if own:
            runs = [run for other in _SHOWN[kind] if (run := _run(case, kind, other))]
            found[case["name"]] = own["seconds"] / min(run["seconds"] for run in runs)
    return found


def _chosen(kind: str, title: str, cases: list[Case]) -> list[str]:
    """Return what auto takes beside the fastest variant of ours."""
    rows: list[list[str]] = []
    factors = {name: _factors(kind, name, cases) for name in ("auto", *_ALONE[kind])}
    for case in cases:
        auto = _run(case, kind, "auto")
        if auto is None:
            continue
        runs = {name: run for name in _SHOWN[kind] if (run := _run(case, kind, name))}
        fastest = min(runs, key=lambda name: float(runs[name]["seconds"]))
        cell = f"{milliseconds(auto['seconds'])} ({_gains(auto, _cpu(case, kind))})"
        others = [_time(case, kind, name) for name in (*_ALONE[kind], *_FURTHER[kind])]
        rows.append([case["name"], cell, fastest, f"{factors['auto'][case['name']]:.2f}", *others])
    if not rows:
        return []
    complete = [name for name in _ALONE[kind] if len(factors[name]) == len(rows)]
    alone = "".join(f", {name} alone {max(factors[name].values()):.2f}" for name in complete)
    worst = max(factors["auto"].values())
    line = (
        f"**{title}: what auto chooses.**  It takes at most {worst:.2f} times as long as the fastest of all "
        f"variants on the same graph{alone}; the aim, at most 2, is {_holds(worst <= 2, 'met', 'not met')}.  "
        "Milliseconds, with gains over the CPU without and with transfer."
    )
    return [line, table(["graph", "auto", "fastest", "auto / fastest", *_ALONE[kind], *_FURTHER[kind]], rows)]


_ALONE = {"scc": ("max-id",), "mec": ("trim, max-id",)}
"""Variants that auto could always be."""

_FURTHER: dict[str, tuple[str, ...]] = {"scc": ("FBT1,7 no transpose", "BFBT1,7"), "mec": ()}
"""Other variants that no figure shows."""

_SHOWN = {
    "scc": ("auto", *_ALONE["scc"], *PAPER_NAMES.values(), *_FURTHER["scc"]),
    "mec": ("auto", *_ALONE["mec"], *PIVOTS.values()),
}
"""All variants that there are; records have others, which are gone (docs/design/decisions.md)."""


# ------------------------------------------------------------------ numbers


def _run(case: Case, kind: str, name: str) -> Case | None:
    """Return a variant's measurement; None if there is none."""
    run: Case | None = case.get(kind, {}).get(name)
    return run if run is not None and "seconds" in run else None


def _cpu(case: Case, kind: str) -> float:
    """Return the time of the fastest code of one thread."""
    if kind == "mec":
        return float(case["compiled_mec_seconds"])
    return float(min(case["scipy_seconds"], case.get("tarjan_seconds", float("inf"))))


def _gains(run: Case | None, cpu: float) -> str:
    if run is None:
        return ""
    whole = run.get("seconds_with_transfer") or cpu / run["times_faster_with_transfer"]
    return f"{cpu / run['seconds']:.1f}×, {cpu / whole:.1f}×"


def _time(case: Case, kind: str, name: str) -> str:
    run = _run(case, kind, name)
    if run is not None:
        return milliseconds(run["seconds"])
    return "left out" if name in case.get(kind, {}) else ""


def _ratios(cases: list[Case], kind: str, over: str, under: str) -> list[float]:
    """Return how many times as long one variant takes as another, by graph."""
    pairs = [(_run(case, kind, over), _run(case, kind, under)) for case in cases]
    return [a["seconds"] / b["seconds"] for a, b in pairs if a and b]


def _spread(ratios: list[float]) -> str:
    mean = statistics.geometric_mean(ratios)
    return f"{mean:.2f} times (geometric mean of {len(ratios)}; {min(ratios):.2f} to {max(ratios):.2f})"


def _holds(holds: bool, yes: str = "holds here.", no: str = "does not hold here.") -> str:
    return yes if holds else no


def _verdict(holds: bool, partly: bool) -> str:
    return "the finding holds here." if holds else f"it holds {'in part' if partly else 'no longer'}."

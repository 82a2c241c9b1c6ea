"""Tables of docs/trends.md: main figures over the commits of their records, and runs by date."""

from __future__ import annotations

from benchmarks.rendering.markdown import Row, source, table

__all__ = ["figures", "lanes"]

_BARS = "▁▂▃▄▅▆▇█"


def figures(record: Row) -> str:
    """Return the figures of `trends`, a row for every measurement, the oldest first."""
    rows = []
    for figure in record["rows"]:
        points = figure.get("points", [])
        bars = _bars([point["value"] for point in points])
        for k, point in enumerate(points):
            name = f"{figure['name']} (`{figure['record']}`)" if k == 0 else ""
            where = point["processor"] or ""
            rows.append([name, bars[k], f"{point['value']:.3g}", point["date"], point["commit"], where])
    return f"{table(['figure', '', 'value', 'date', 'commit', 'processor'], rows)}\n\n{source(record)}"


def _bars(values: list[float]) -> str:
    """Return a bar for every value, its height the share of the greatest."""
    most = max(values, default=0.0)
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in values) if most else ""


def lanes(records: dict[str, Row | None]) -> str:
    """Return the runs of attack, mutations, device lane and sanitizers that have a date, the oldest first."""
    total: dict[tuple[str, str, str], list[int]] = {}
    for name, record in records.items():
        for run in (record or {}).get("runs", ()):
            if run.get("date"):
                key = run["date"][:10], name.replace("_", " "), str(run["commit"])[:12]
                before = total.get(key, [0, 0])
                total[key] = [a + b for a, b in zip(before, _outcome(name, run), strict=True)]
    lines = [[*key, f"{asked:,}", str(faults)] for key, (asked, faults) in sorted(total.items())]
    return table(["date", "what ran", "commit", "cases", "faults"], lines)


def _outcome(name: str, run: Row) -> tuple[int, int]:
    """Return how many cases a run had, and how many of them showed a fault."""
    if name == "attack":
        return run["cases"], run["verdicts"]["wrong"] + run["verdicts"]["crash"]
    if name == "mutants":
        return run["mutants"], len(run["survived"])
    reports = (run.get("errors") or 0) + (run.get("hazards") or 0)
    return run.get("passed") or 0, (run.get("failed") or 0) + (run.get("error") or 0) + reports

"""Tables of runs: of the attack, of formulas, of mutations, of seeds, on a device and under its checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.rendering.markdown import Row, aged, table_of

__all__ = ["attack", "device_lane", "formulas", "mutants", "sanitizers", "seeds"]

NONE_YET = "No run is recorded yet."


def _section(record: Row, rows: list[Row], *columns: tuple[str, str | Callable[[Row], str]]) -> str:
    """Return the table of some rows, where the record is, and how old its last run is."""
    name = record["file"]
    link = f"[`{name}.json`](../benchmarks/results/{name}.json)"
    if not rows:
        return f"{NONE_YET} They are appended to `{name}.json`."
    return f"{table_of(rows, ('commit', _commit), *columns)}\n\n{link}.{aged(record)}"


def _commit(run: Row) -> str:
    day = (run.get("date") or "")[:10]
    if "earlier" in run:
        first, count = run["commits"][0], len(run["commits"])
        return f"{run['earlier']} earlier runs at {count} commits, {first} to {run['commit']}"
    return f"{run['commit']}, {day}" if day else str(run["commit"])


def _number(key: str) -> Callable[[Row], str]:
    """Return what shows a count; nothing where a run has none."""
    return lambda run: f"{run[key]:,}" if run.get(key) is not None else ""


def _verdict(name: str) -> Callable[[Row], str]:
    return lambda run: str(run["verdicts"][name])


def _names(key: str) -> Callable[[Row], str]:
    """Return what shows how many names a list has, and the first of them."""

    def shown(run: Row) -> str:
        value = run.get(key, [])
        if not isinstance(value, list):
            return str(value)
        return f"{len(value)}: {', '.join(value[:3])}" if value else "0"

    return shown


def attack(record: Row) -> str:
    """Return the runs of the attack."""
    runs = record["runs"]
    text = _section(
        record,
        runs,
        ("seed", lambda run: str(run.get("seed", ""))),
        ("way", lambda run: f"`--{run['way']}`" if run.get("way") else ""),
        ("backend", lambda run: "" if "earlier" in run else run.get("backend") or "cpu and reference"),
        ("cases", "cases"),
        ("values", _number("values")),
        ("wrong", _verdict("wrong")),
        ("crashes", _verdict("crash")),
        ("warnings", _verdict("warned")),
        ("seconds", _number("seconds")),
    )
    noted = [
        ("Earlier runs" if "earlier" in run else f"Seed {run['seed']}", run) for run in runs if "note" in run
    ]
    notes = [f"{name}: {run['note']}." for name, run in noted]
    return "\n\n".join([text, *notes])


def formulas(record: Row) -> str:
    """Return the runs of random formulas."""

    def values(run: Row) -> str:
        return ", ".join(f"{kind['values']:,}" for kind in run["values"])

    def outside(run: Row) -> str:
        return str(sum(kind["differ"] for kind in run["values"]))

    def states(run: Row) -> str:
        found = run.get("states_over_spot")
        return "not asked" if found is None else ", ".join(f"{share:.2f}" for share in found)

    def storm(run: Row) -> str:
        told: dict[str, int] = dict(run.get("storm", {}))
        for kind in run["values"]:
            for name, count in kind.get("storm", {}).items():
                told[name] = told.get(name, 0) + count
        told.pop("not asked", None)
        return ", ".join(f"{name} {count:,}" for name, count in sorted(told.items())) or "not asked"

    return _section(
        record,
        record["runs"],
        ("seed", lambda run: str(run["seed"])),
        ("formulas", "formulas"),
        ("differ", "differ"),
        ("states over Spot's: median, 90 %, 99 %", states),
        ("values of DTMCs, CTMCs, MDPs", values),
        ("outside their bounds", outside),
        ("Storm", storm),
    )


def mutants(record: Row) -> str:
    """Return the runs of mutations."""
    return _section(
        record,
        record["runs"],
        ("which", lambda run: "all" if run["whole"] else f"`{run['only']}`"),
        ("mutants", "mutants"),
        ("noticed", "killed"),
        ("not noticed", _names("survived")),
        ("change nothing, with the reason in the list", _names("explained")),
        ("not judged", _names("errors")),
        ("seconds", _number("seconds")),
    )


def _together(runs: list[Row], *keys: str) -> Iterator[Row]:
    """Yield one row for all runs that agree in some fields: counts added up, lists joined, the last date."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for run in runs:
        groups.setdefault(tuple(run.get(key) for key in ("commit", "device", *keys)), []).append(run)
    for members in groups.values():
        row: Row = dict(members[-1])
        for key in ("passed", "failed", "error", "skipped", "seconds", "errors", "hazards"):
            known = [run[key] for run in members if run.get(key) is not None]
            row[key] = sum(known) if known else None
        row["chosen"] = list(dict.fromkeys(name for run in members for name in run.get("chosen", ())))
        row["kernels"] = sorted({name for run in members for name in run.get("kernels", ())})
        row["seeds"] = sorted({run["seed"] for run in members if "seed" in run})
        yield row


def _failed(run: Row) -> str:
    return str((run["failed"] or 0) + (run["error"] or 0)) if run["passed"] is not None else ""


_FEW = 6  # names in a cell


def _chosen(run: Row) -> str:
    names = [name if " " in name else f"`{name}`" for name in run["chosen"]]
    if len(names) > _FEW:
        files = sum(" " not in name for name in run["chosen"])
        names = [f"{files} files of tests", *(name for name in names if not name.startswith("`"))]
    return ", ".join(names) or "all"


def _seconds(run: Row) -> str:
    return f"{run['seconds']:,.0f}" if run.get("seconds") is not None else ""


def seeds(record: Row) -> str:
    """Return the runs with other seeds, those of a commit and a machine in one row."""
    return _section(
        record,
        list(_together(record["runs"], "processor")),
        ("seeds", lambda run: ", ".join(map(str, run["seeds"]))),
        ("tests", _chosen),
        ("passed", _number("passed")),
        ("failed", _failed),
        ("skipped", _number("skipped")),
        ("seconds", _seconds),
    )


def device_lane(record: Row) -> str:
    """Return the runs of the tests that need a device."""
    return _section(
        record,
        list(_together(record["runs"])),
        ("device", lambda run: run["device"] or "none"),
        ("tests", _chosen),
        ("passed", _number("passed")),
        ("failed", _failed),
        ("skipped", _number("skipped")),
        ("seconds", _seconds),
    )


def sanitizers(record: Row) -> str:
    """Return the runs under the checkers of CUDA's toolkit, those of a commit and a checker in one row."""

    def reports(run: Row) -> str:
        return ", ".join(f"{run[key]} {key}" for key in ("errors", "hazards") if run[key] is not None)

    def kernels(run: Row) -> str:
        return f"{len(run['kernels'])} of {run['kernel_files']}" if "kernel_files" in run else ""

    return _section(
        record,
        list(_together(record["runs"], "tool")),
        ("checker", "tool"),
        ("device", "device"),
        ("first cases of", _chosen),
        ("passed", _number("passed")),
        ("failed", _failed),
        ("files of kernels", kernels),
        ("reports", reports),
    )

"""The section on products of processes that share the states."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.rendering.markdown import Row, measured, section, table_of

__all__ = ["overlap"]


def overlap(record: Row) -> str:
    """Return the section on products that go on while messages are under way."""
    text = (
        f"One product of {record['processes']} processes of one thread each, on one machine; medians of "
        f"{record['rounds']} turns of {record['count']} products, in microseconds.  `messages` are sent and "
        "received by themselves; `waiting` waits for them and multiplies then; `meanwhile` multiplies rows "
        "without elements of others before it waits.  `of waiting` is the ratio of the two in the same turn, "
        "with quartiles; `of apart` that to the same stages behind the wait: what overlap alone saves.  "
        "`moved` is spent in calls of MPI between stages and `awaited` in waiting at last, in the slowest "
        "process; `without calls` is what is awaited where no calls are made between stages."
    )

    def micro(form: str) -> Callable[[Row], str]:
        return lambda r: f"{1e6 * r[f'{form}_seconds']:,.0f}"

    def ratio(key: str) -> Callable[[Row], str]:
        return lambda r: f"{r[key][1]:.2f} ({r[key][0]:.2f} to {r[key][2]:.2f})"

    return section(
        "Products while messages are under way",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("by", "transport"),
            ("kB received", lambda r: f"{1e-3 * r['halo_bytes']:,.1f}"),
            ("messages", micro("messages")),
            ("waiting", micro("waiting")),
            ("meanwhile", micro("meanwhile")),
            ("of waiting", ratio("of_waiting")),
            ("of apart", ratio("of_apart")),
            ("moved", micro("moved")),
            ("awaited", micro("awaited")),
            ("without calls", micro("silent_awaited")),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )

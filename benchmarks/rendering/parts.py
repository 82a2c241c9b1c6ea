"""The sections on processes that share the states."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.published.spmv_papers import PAPER_II, PAPER_II_TWO
from benchmarks.rendering.markdown import Row, measured, milliseconds, number, section, source, table_of

__all__ = ["cards", "eight_on_paper", "explicit_on_cards", "halos", "on_paper", "whole_on_cards"]


def cards(record: Row) -> str:
    """Return the section on steps of several cards; of a record of whole runs `whole_on_cards`."""
    if any("command" in row for row in record["rows"]):
        return whole_on_cards(record)
    text = (
        f"One step of JOR on {record['cards']} cards of a machine, a process each, beside one card with all "
        "states, in the same job; medians of 5 turns, in milliseconds, set-up not counted.  `alone` is the "
        "one card; `straight` all cards, whose kernels write elements to each other's memory, `NCCL` all "
        "cards with elements carried by NCCL.  All these steps are recorded and repeated.  `efficiency` is "
        "alone by the number of cards times straight.  `stepping` is a step with what others sent before, "
        "`exchanging` the exchange by itself, and `hidden` the share of it that a step does not show: "
        "(stepping + exchanging - straight) / exchanging.  `by the hosts` is a step whose elements go "
        "through the memory of the host and MPI.  Steps of the decision process are those of whole "
        "answers, with all that goes between them."
    )

    def milli(key: str, way: str) -> Callable[[Row], str]:
        return lambda r: f"{1e3 * r[way][key]:,.3f}" if key in r.get(way, {}) else "-"

    def share(key: str) -> Callable[[Row], str]:
        return lambda r: f"{r['straight'][key]:.0%}" if key in r.get("straight", {}) else "-"

    return section(
        "Steps on several cards",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("states", lambda r: f"{r['states']:,}"),
            (
                "received / own",
                lambda r: (
                    f"{max(b / a for a, b in zip(r['own'], r['received'], strict=True)):.3f}"
                    if "own" in r
                    else "-"
                ),
            ),
            ("alone", lambda r: f"{1e3 * r['alone_seconds']:,.3f}"),
            ("straight", milli("seconds", "straight")),
            ("efficiency", share("efficiency")),
            ("stepping", milli("stepping_seconds", "straight")),
            ("exchanging", milli("exchanging_seconds", "straight")),
            ("hidden", share("hidden")),
            ("NCCL", milli("seconds", "NCCL")),
            ("by the hosts", milli("seconds", "host")),
        ),
    )


def explicit_on_cards(record: Row, tables: Row | None = None) -> str:
    """Return the section on explicit matrices in parts, [BESW10]'s column of two cards.

    Parameters
    ----------
    record : dict
        Of `cards --explicit`.
    tables : dict, optional
        Of `paper_tables`: iterations of whole solutions.
    """
    text = (
        f"[BESW10] table II's column of two cards: one step of JOR of an explicit matrix by M1, its rows on "
        f"{record['cards']} cards, a process each, beside one card with all rows, in the same job; medians "
        "of 5 turns, in milliseconds, set-up not counted.  Every card waits for others' elements first.  "
        "`solution` is a step by the iterations of the whole solution in the table of one card, in "
        "seconds, in brackets the paper's on a GeForce 285 GTX, or two; `gain` is that of the cards, in "
        "brackets the paper's."
    )
    solved = {row["model"]: row for row in (tables or {"rows": []})["rows"] if row.get("table") == "solve"}

    def way(row: Row) -> str:
        return next(way for way in ("straight", "NCCL", "host") if way in row)

    def solution(row: Row, seconds: float, paper: float | None) -> str:
        run = solved.get(row["model"].split()[0], {}).get("hybrid_gpu")
        found = "" if run is None else number(seconds * run["iterations"])
        return f"{found} ({paper:g})" if paper else found

    def papers(row: Row) -> tuple[float | None, float | None]:
        name = row["model"].split()[0]
        return (PAPER_II[name][1], PAPER_II_TWO[name]) if name in PAPER_II else (None, None)

    def gain(row: Row) -> str:
        one, two = papers(row)
        own = f"{row['alone_seconds'] / row[way(row)]['seconds']:.2f}"
        return f"{own} ({one / two:.2f})" if one and two else own

    return section(
        "An explicit matrix on two cards",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("states", "states"),
            ("received", lambda r: " / ".join(f"{int(n):,}" for n in r["received"])),
            ("one card", lambda r: milliseconds(r["alone_seconds"])),
            ("cards", lambda r: milliseconds(r[way(r)]["seconds"])),
            ("elements go", way),
            ("exchanging", lambda r: milliseconds(r[way(r)]["exchanging_seconds"])),
            ("solution, one card", lambda r: solution(r, r["alone_seconds"], papers(r)[0])),
            ("solution, cards", lambda r: solution(r, r[way(r)]["seconds"], papers(r)[1])),
            ("gain", gain),
        ),
    )


def whole_on_cards(record: Row) -> str:
    """Return the section on whole runs on several cards."""
    text = (
        f"Whole processes on {record['cards']} cards of a machine, one a card, from the start of `mpiexec` "
        "to its end: building, set-up on the devices and all iterations."
    )
    return section(
        "Whole runs on several cards",
        record,
        text,
        table_of(
            measured(record),
            ("command", "command"),
            ("states", lambda r: f"{r['states']:,}"),
            ("transitions", lambda r: f"{r['transitions']:,}"),
            ("wall s", lambda r: f"{r['wall_seconds']:,.1f}"),
            ("method", "method"),
            ("iterations", lambda r: f"{r['iterations']:,}"),
            ("ms an iteration", lambda r: f"{1e3 * r['seconds_per_iteration']:,.1f}"),
            ("value", lambda r: f"{r['value']:.9g}"),
            ("bounds", lambda r: "none" if r["lower"] is None else f"{r['lower']:.9g}, {r['upper']:.9g}"),
        ),
    )


def on_paper(record: Row) -> str:
    """Return the section on what many cards would do; of a record of --eight `eight_on_paper`."""
    if "link_rate" not in record:
        return eight_on_paper(record)
    text = (
        "Predicted, and not measured: steps of JOR on more cards than there were.  Parts and halos are those "
        "of `hybrid levels --parts`; one card's step and the rate of the link, "
        f"{record['link_rate'] / 1e9:.0f} GB/s with gathering, are those of `cards.json`.  With more cards "
        "than the eight of a machine all of a halo is counted by the network, for which a card is given "
        f"{record['network_rate'] / 1e9:.0f} GB/s, an assumption.  Efficiency lies between hiding nothing of "
        "the exchange and all of it; launches and waits are not counted, which matter below a millisecond.  "
        "`GB a card` is what JOR holds."
    )
    return section(
        "Many cards, on paper",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("cards", "cards"),
            ("states", lambda r: f"{r['states']:,}"),
            ("received / own", lambda r: f"{r['halo']:.3f}"),
            ("own ms", lambda r: f"{1e3 * r['own_seconds']:,.3f}"),
            ("exchange ms", lambda r: f"{1e3 * r['exchange_seconds']:,.3f}"),
            ("efficiency", lambda r: f"{r['least_efficiency']:.0%} to {r['most_efficiency']:.0%}"),
            ("GB a card", lambda r: f"{r['card_bytes'] / 1e9:,.2f}"),
        ),
    )


def eight_on_paper(record: Row) -> str:
    """Return the section on eight cards of one machine, by what four have taken."""
    return section(
        "Eight cards of a machine, on paper",
        record,
        "Predicted, and not measured: steps of JOR on eight cards, from steps on four H100 of one machine "
        "(straight, NVLink among all; 28 November 2026, commit 5af5fbf).  Own work keeps the ratio to one "
        "card's step that it had there, the exchange the ratio to elements received.  The same share of the "
        "exchange is hidden.  `four` is what was measured.  Kanban with `t=14` is that with `t=10`, by "
        "transitions.  `GB a card` is what JOR holds; elements that are sent straight need no room.",
        table_of(
            measured(record),
            ("model", "model"),
            ("states", lambda r: f"{r['states']:,}"),
            ("received / own, four", lambda r: f"{r['halo_of_four']:.3f}"),
            ("eight", lambda r: f"{r['halo']:.3f}"),
            ("own ms", lambda r: f"{1e3 * r['own_seconds']:,.3f}"),
            ("exchange ms", lambda r: f"{1e3 * r['exchange_seconds']:,.3f}"),
            ("step ms", lambda r: f"{1e3 * r['seconds']:,.3f}"),
            ("efficiency", lambda r: f"{r['efficiency']:.0%}"),
            ("four", lambda r: f"{e:.0%}" if (e := r.get("efficiency_of_four")) else "-"),
            ("GB a card", lambda r: f"{r['card_bytes'] / 1e9:,.2f}"),
        ),
    )


def halos(record: Row) -> str:
    """Return the table of what a part receives, by the number of parts."""
    rows = [row for row in measured(record) if row["cards"] <= 8]
    counts = sorted({row["cards"] for row in rows})
    shares: dict[str, Row] = {}
    for row in rows:
        shares.setdefault(row["model"], {"model": row["model"]})[str(row["cards"])] = f"{row['halo']:.2f}"
    columns = [(f"P = {count}", str(count)) for count in counts]
    return f"{table_of(shares.values(), ('model', 'model'), *columns)}\n\n{source(record)}"

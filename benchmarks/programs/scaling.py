"""What many cards would do, on paper: parts of the diagram, with the times and the link that were measured.

Nothing is multiplied.  Every row cuts a model's states into parts (`hybrid levels --parts`) and predicts a
step of JOR: its own work, that of one card by the share of the part with most of it, and the exchange, what
the part with the largest halo receives by the rate of the link.  One card's step is that of the record
`cards`, for larger kanban by transitions.  The rate is that of the exchange of kanban with t=10 in the same
record, gathering included, from card to card of one machine; --network is what a card has where there are
more than the eight of a machine, an assumption.  `least` is the efficiency if nothing of the exchange is
hidden, `most` if all of it is that the own work can hide.  Memory is that of JOR: two iterates, rates in a
byte an element, what is sent and received.

With --eight the rows are those of eight cards of one machine alone, from what four H100 of one machine took
(`FOUR`): own work and the exchange keep the ratios that they had there to one card's step and to the elements
received, and the same share of the exchange is hidden.  The efficiency of four is what these parts had then.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT, example
from benchmarks.library.records import Records
from benchmarks.programs.cards import MODELS
from hybrid.matrix.parts.plan import MatrixPart, measure_parts, plan_parts
from mtbdd.build.model import SymbolicModel

PARTS = 2, 4, 8, 16, 32, 64
"""Numbers of cards."""

LARGER = {"kanban t=13": ("kanban", 13), "kanban t=15": ("kanban", 15), "kanban t=17": ("kanban", 17)}
"""Models for which one card has no room, by name."""

FOUR = {
    "kanban t=7": (0.687, 0.376, 0.186, 0.242, 0.21, 6_413_760),
    "cluster N=512": (0.143, 0.058, 0.043, 0.021, 0.31, 32_816),
    "fms n=10": (0.670, 0.390, 0.194, 0.206, 0.05, 5_352_072),
    "tandem c=4095": (0.270, 0.086, 0.070, 0.022, 0.29, 12_288),
    "polling N=20": (0.391, 0.122, 0.117, 0.025, 0.81, 1_048_576),
    "kanban t=10": (21.83, 8.04, 5.45, 4.41, 0.41, 130_996_294),
}
"""Milliseconds of a step alone, on four cards, stepping and exchanging; the hidden share of the exchange;
elements that the part with the largest halo received then, when parts were cut otherwise.

Straight, four H100 80 GB with NVLink among all, 28 November 2026, commit 5af5fbf."""

_LEAST_EXCHANGE = 0.02e-3
"""Seconds of an exchange of few elements on four cards: words that wait for each other."""

_CARDS_OF_A_MACHINE = 8
_ITERATES = 2 * 8 + 1  # bytes a state


def measured() -> tuple[dict[str, float], float, float]:
    """Return seconds of a step on one card by model, those of a transition of kanban, bytes a second."""
    rows = {
        row["model"]: row for row in json.loads((ROOT / "benchmarks/results/cards.json").read_text())["rows"]
    }
    alone = {name: row["alone_seconds"] for name, row in rows.items()}
    kanban = rows["kanban t=10"]
    rate = 8.0 * max(kanban["received"]) / kanban["straight"]["exchanging_seconds"]
    return alone, kanban["alone_seconds"] / kanban["transitions"], rate


def parts_of(model: SymbolicModel, parts: int) -> tuple[MatrixPart, ...]:
    """Return what the planned parts of a model have and receive."""
    return measure_parts(model, plan_parts(model, parts))


def measure(
    row: dict[str, Any], model: SymbolicModel, parts: int, alone: float, rate: float, network: float
) -> None:
    """Fill a row with what the parts of a model would do."""
    found = parts_of(model, parts)
    received = max(part.received for part in found)
    own = alone * max(part.share for part in found) / parts
    link = rate if parts <= _CARDS_OF_A_MACHINE else network
    exchange = 8 * received / link
    row.update(
        states=model.n_states,
        transitions=model.n_transitions,
        received=received,
        halo=max(part.received / part.states for part in found if part.states),
        own_seconds=own,
        exchange_seconds=exchange,
        least_efficiency=alone / parts / (own + exchange),
        most_efficiency=alone / parts / max(own, exchange),
        card_bytes=max(_ITERATES * part.states + 8 * part.received for part in found) + 8 * received,
    )


def measure_eight(row: dict[str, Any], model: SymbolicModel, name: str) -> None:
    """Fill a row with what eight cards would do, by what four did; of a larger kanban as of t=10."""
    alone, four, stepping, exchanging, hidden, received = FOUR.get(name, FOUR["kanban t=10"])
    fewer, found = (parts_of(model, parts) for parts in (4, 8))
    grown = 1.0 if name in FOUR else model.n_transitions / example("kanban", 10).n_transitions
    seconds = 1e-3 * alone * grown
    own = seconds * (stepping / alone) * 4 * max(part.share for part in found) / 8
    most = max(part.received for part in found)
    exchange = max(1e-3 * exchanging * most / received, _LEAST_EXCHANGE)
    step = own + (1.0 - hidden) * exchange
    row.update(
        states=model.n_states,
        transitions=model.n_transitions,
        halo_of_four=max(part.received / part.states for part in fewer if part.states),
        halo=max(part.received / part.states for part in found if part.states),
        own_seconds=own,
        exchange_seconds=exchange,
        seconds=step,
        efficiency=seconds / 8 / step,
        card_bytes=max(_ITERATES * part.states + 8 * part.received for part in found),
    )
    if name in FOUR:
        row["efficiency_of_four"] = alone / 4 / four


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--eight", action="store_true", help="eight cards, by what four have taken")
    arguments.add_argument(
        "--network", type=float, default=50.0, metavar="GB", help="gigabytes a second of a card"
    )
    arguments.add_argument("--only", action="append", help="this model; may be repeated")
    options = arguments.parse_args()
    if options.eight:
        records = Records("scaling", options)
        for name in options.only or (*FOUR, "kanban t=14"):
            model = example(*(MODELS | {"kanban t=14": ("kanban", 14)})[name])
            records.run({"model": name, "cards": 8}, measure_eight, model, name)
        records.show()
        return
    alone, transition, rate = measured()
    records = Records("scaling", options, link_rate=rate, network_rate=1e9 * options.network)
    for name, of in {**MODELS, **LARGER}.items():
        if name == "kanban t=4" or name not in (options.only or (*MODELS, *LARGER)):
            continue
        model = example(*of)
        seconds = alone[name] if name in alone else transition * model.n_transitions
        for parts in PARTS:
            identity = {"model": name, "cards": parts}
            records.run(identity, measure, model, parts, seconds, rate, 1e9 * options.network)
    records.show()


if __name__ == "__main__":
    main()

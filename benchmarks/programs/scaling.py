"""What many cards would do, on paper: parts of the diagram, with the times and the link that were measured.

Nothing is multiplied.  Every row cuts a model's states into parts (`hybrid levels --parts`) and predicts a
step of JOR: its own work, that of one card by the share of the part with most of it, and the exchange, what
the part with the largest halo receives by the rate of the link.  One card's step is that of the record
`cards`, for larger kanban by transitions.  The rate is that of the exchange of kanban with t=10 in the same
record, gathering included, from card to card of one machine; --network is what a card has where there are
more than the eight of a machine, an assumption.  `least` is the efficiency if nothing of the exchange is
hidden, `most` if all of it is that the own work can hide.  Memory is that of JOR: two iterates, rates in a
byte an element, what is sent and received.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT, example
from benchmarks.library.records import Records
from benchmarks.programs.cards import MODELS
from hybrid.matrix.parts.plan import fields_of, plan_parts
from mtbdd.build.model import SymbolicModel

PARTS = 2, 4, 8, 16, 32, 64
"""Numbers of cards."""

LARGER = {"kanban t=13": ("kanban", 13), "kanban t=15": ("kanban", 15), "kanban t=17": ("kanban", 17)}
"""Models for which one card has no room, by name."""

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


def measure(
    row: dict[str, Any], model: SymbolicModel, parts: int, alone: float, rate: float, network: float
) -> None:
    """Fill a row with what the parts of a model would do."""
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    plan = plan_parts(model.index, matrices, parts, fields_of(model))
    received = max(part.received for part in plan.parts)
    own = alone * max(part.share for part in plan.parts) / parts
    link = rate if parts <= _CARDS_OF_A_MACHINE else network
    exchange = 8 * received / link
    row.update(
        states=model.n_states,
        transitions=model.n_transitions,
        received=received,
        halo=max(part.received / part.states for part in plan.parts if part.states),
        own_seconds=own,
        exchange_seconds=exchange,
        least_efficiency=alone / parts / (own + exchange),
        most_efficiency=alone / parts / max(own, exchange),
        card_bytes=max(_ITERATES * part.states + 8 * part.received for part in plan.parts) + 8 * received,
    )


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument(
        "--network", type=float, default=50.0, metavar="GB", help="gigabytes a second of a card"
    )
    arguments.add_argument("--only", action="append", help="this model; may be repeated")
    options = arguments.parse_args()
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

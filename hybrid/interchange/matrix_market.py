"""Matrices of models in the format MatrixMarket."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybrid.interchange.explicit_model import ExplicitModel
from hybrid.interchange.text.cells import ROWS, decimals, text_of_rows, whole_numbers

_MOST_STARTS = 1000


def matrix_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the transition matrix as MatrixMarket, coordinate real general.

    Rows are choices: of a chain its states, of an MDP the choices of state 0, then those of state 1, and so
    on; a comment tells where the choices of each state begin, if there are few. Rows and columns count from
    1, entries come by row. Numbers read as the same doubles; of entries at one place the format leaves open
    what they mean, most readers add them up. Time: some microsecond an entry.
    """
    what = "rates" if model.type.value == "ctmc" else "probabilities"
    rows = "choices" if model.is_mdp else "states"
    lines = [
        f"%%MatrixMarket matrix coordinate real general\n% {what} of a {model.type.value}; rows are {rows}\n"
    ]
    if model.choice_starts is not None and model.n_states <= _MOST_STARTS:
        starts = (model.choice_starts[:-1] + 1).tolist()
        lines += [f"% state {state}: rows from {row}\n" for state, row in enumerate(starts, 1)]
    lines.append(f"{model.n_choices} {model.n_states} {model.n_entries}\n")
    yield "".join(lines).encode()
    for first in range(0, model.n_entries, ROWS):
        end = min(first + ROWS, model.n_entries)
        own = np.searchsorted(model.row_starts, np.arange(first, end), side="right")
        columns = model.columns[first:end] + 1
        yield text_of_rows(
            end - first,
            [
                whole_numbers(own),
                b" ",
                whole_numbers(columns),
                b" ",
                decimals(model.values[first:end]),
                b"\n",
            ],
        )

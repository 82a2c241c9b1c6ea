"""Probabilities of runs that are fair and settle, on a decision process written out, without our automata.

A monitor written by hand reads the states and remembers something; runs count that visit some sets again and
again while the monitor's memory is, from some time on, one of those that count.  These are the runs that stay
in an end component of the pairs with such memories that meets every set; to reach one is a linear program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import networkx
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from mtbdd.language import load_model, resolve
from tests.oracles.mdps import explore_mdp

State = Mapping[str, bool | int]
Row = dict[int, float]
Monitor = Callable[[int, State], int]


class WrittenOut:
    """All states of an example and their choices."""

    def __init__(self, path: Path, constants: Mapping[str, float]) -> None:
        mdp = explore_mdp(resolve(load_model(str(path)), constants))
        (self.start,) = mdp.graph.initial
        self.states = [mdp.graph.valuation(i) for i in range(mdp.graph.n_states)]
        self.choices = [[{t: float(p) for t, p in row.items()} for _, row in own] for own in mdp.choices]

    def greatest(
        self, monitor: Monitor, counted: set[int], again_and_again: Sequence[Callable[[State], bool]]
    ) -> float:
        """Return the greatest probability of what the module's text says, from the initial state.

        `monitor` gives the memory when a state is read; before the first one it is 0.
        """
        pairs = [(self.start, monitor(0, self.states[self.start]))]
        place = {pairs[0]: 0}
        rows: list[list[Row]] = []
        for state, memory in pairs:
            own = []
            for row in self.choices[state]:
                entries: Row = {}
                for t, p in row.items():
                    pair = t, monitor(memory, self.states[t])
                    if pair not in place:
                        place[pair] = len(pairs)
                        pairs.append(pair)
                    entries[place[pair]] = p
                own.append(entries)
            rows.append(own)
        target: set[int] = set()
        for component in end_components(
            rows, {k for k, (_, memory) in enumerate(pairs) if memory in counted}
        ):
            met = [any(wanted(self.states[pairs[k][0]]) for k in component) for wanted in again_and_again]
            if all(met):
                target |= component
        return greatest_reachability(rows, target)


def end_components(rows: Sequence[Sequence[Row]], allowed: set[int]) -> list[set[int]]:
    """Return the maximal end components inside a set: choices that leave their component go, one round after
    the other."""
    kept = [(k, row) for k in allowed for row in rows[k] if row.keys() <= allowed]
    while True:
        graph = networkx.DiGraph((k, t) for k, row in kept for t in row)
        components = list(networkx.strongly_connected_components(graph))
        home = {k: number for number, component in enumerate(components) for k in component}
        staying = [(k, row) for k, row in kept if all(home[t] == home[k] for t in row)]
        if len(staying) == len(kept):
            return components
        kept = staying


def greatest_reachability(rows: Sequence[Sequence[Row]], target: set[int]) -> float:
    """Return the greatest probability of reaching a set from state 0: the least numbers no choice exceeds."""
    entries: list[tuple[int, int, float]] = []
    n = 0
    for k, own in enumerate(rows):
        for row in () if k in target else own:
            entries += [(n, t, p) for t, p in row.items()] + [(n, k, -1.0)]
            n += 1
    places, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_array((values, (places, columns)), shape=(n, len(rows)))
    low = np.array([float(k in target) for k in range(len(rows))])
    found = linprog(
        np.ones(len(rows)), matrix, np.zeros(n), bounds=np.column_stack([low, np.ones(len(rows))]),
        method="highs",
    )  # fmt: skip
    assert found.status == 0, found.message
    return float(found.x[0])

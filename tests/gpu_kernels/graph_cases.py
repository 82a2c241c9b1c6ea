"""Graphs for the tests of decompositions: the running example of [WKB16], borders, random ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_kernels import Device
from gpu_kernels.graph import Graph


class Lists(NamedTuple):
    """A decision process without probabilities."""

    offsets: np.ndarray
    targets: np.ndarray
    choice_offsets: np.ndarray

    @property
    def n_states(self) -> int:
        return len(self.offsets) - 1

    def graph(self, device: Device, wide: bool = False) -> Graph:
        return Graph.from_arrays(
            device, self.offsets, self.targets, choice_offsets=self.choice_offsets, wide=wide
        )


def from_choices(states: list[list[list[int]]]) -> Lists:
    """Lists of a process given by the targets of each choice of each state."""
    choices = [choice for state in states for choice in state]
    choice_offsets = np.concatenate([[0], np.cumsum([len(choice) for choice in choices])]).astype(np.int64)
    choice_ptr = np.concatenate([[0], np.cumsum([len(state) for state in states])]).astype(np.int64)
    targets = np.array([target for choice in choices for target in choice], dtype=np.int64)
    return Lists(choice_offsets[choice_ptr], targets, choice_offsets)


def chain(successors: list[list[int]]) -> Lists:
    """A process with one choice for every state that has successors."""
    return from_choices([[targets] if targets else [] for targets in successors])


# What the text of [WKB16] says of figure 1 is kept; s4, s5 and s7, of which it says less, agree with it.
RUNNING_EXAMPLE = from_choices(
    [
        [[1], [2, 4]],
        [[1, 2, 3], [2, 3]],
        [[2]],
        [[3]],
        [[5]],
        [[6]],
        [[5, 6], [4]],
        [[4, 5], [3]],
    ]
)

BORDERS: dict[str, Lists] = {
    "one state": chain([[]]),
    "one loop": chain([[0]]),
    "no edges": chain([[]] * 70),
    "loops alone": chain([[i] for i in range(70)]),
    "cycle": chain([[(i + 1) % 300] for i in range(300)]),
    "cycle backwards": chain([[(i - 1) % 65] for i in range(65)]),
    "path": chain([[i + 1] for i in range(299)] + [[]]),
    "path backwards": chain([[]] + [[i] for i in range(129)]),
    "dense": chain([list(range(20))] * 20),
    "two cycles and a bridge": chain([[1], [2], [0, 3], [4], [5], [4]]),
    "chain of pairs": chain([[i ^ 1, min(i + 2, 39)] for i in range(40)]),
    # A search from the pair is done long before it has been round the cycle.
    "cycle above a pair": chain([[1], [0], [0, 3], *([2 + i % 40] for i in range(2, 41))]),
    "cycle below a pair": chain([[1, 2], [0], *([2 + (i - 1) % 40] for i in range(40))]),
    "double edges": chain([[1, 1, 0], [2, 2], [2, 2, 2], [0, 0]]),
    # More edges than a thread takes, at one state: forwards, and in the transposed graph.
    "hub": chain([list(range(1, 150)), *([0] if i % 3 else [] for i in range(149))]),
    "long choices": from_choices(
        [[[*range(1, 100)], [1]], *[[[0, i], [i]] for i in range(1, 40)], *[[[0]] for _ in range(60)]]
    ),
}


def random_process(
    rng: np.random.Generator, n: int, most_choices: int, most_targets: int, spread: int
) -> Lists:
    """A process whose transitions mostly stay near, so that it has components of many sizes."""
    choices = rng.integers(0 if n > 3 else 1, most_choices + 1, n)
    choice_ptr = np.concatenate([[0], np.cumsum(choices)])
    lengths = rng.integers(1, most_targets + 1, choice_ptr[-1])
    choice_offsets = np.concatenate([[0], np.cumsum(lengths)])
    source = np.repeat(np.repeat(np.arange(n), choices), lengths)
    near = (source + rng.integers(-spread, spread + 1, len(source))) % n
    targets = np.where(rng.random(len(source)) < 0.9, near, rng.integers(0, n, len(source)))
    return Lists(choice_offsets[choice_ptr], targets, choice_offsets)

"""The graph format: words, transposed graphs, parts, segments, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device
from gpu_kernels.graph import Graph, part_of
from gpu_kernels.graph.fbt import build_layout
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.graph_cases import RUNNING_EXAMPLE, chain, from_choices, random_process
from tests.gpu_kernels.host_device import COMPILER, HostDevice


def triples(graph: Graph, back: bool = False) -> list[tuple[int, int, int]]:
    """Source, group and target of all transitions, in order."""
    offsets = to_numpy(graph.back_offsets if back else graph.offsets).astype(int)
    words = to_numpy(graph.back_trans if back else graph.trans).astype(int)
    ends = words & graph.mask
    groups = words >> graph.state_bits
    states = np.repeat(np.arange(graph.n_states), np.diff(offsets))
    columns = (ends, groups, states) if back else (states, groups, ends)
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("wide", [False, True])
def test_words_of_the_running_example(device: Device, wide: bool) -> None:
    graph = RUNNING_EXAMPLE.graph(device, wide)
    assert (graph.n_states, graph.n_choices, graph.n_transitions) == (8, 12, 18)
    assert (graph.bits, graph.state_bits) == (64 if wide else 32, 3)
    # Example 2 of [WKB16]: the choices of s1 and s6.
    assert [t for t in triples(graph) if t[0] == 1] == [(1, 0, 1), (1, 0, 2), (1, 0, 3), (1, 1, 2), (1, 1, 3)]
    assert [t for t in triples(graph) if t[0] == 6] == [(6, 0, 5), (6, 0, 6), (6, 1, 4)]
    assert graph.back_offsets is None
    assert triples(graph.with_transpose(device), back=True) == triples(graph)
    assert graph.with_transpose(device).nbytes > graph.nbytes


def test_choices_by_names(device: Device) -> None:
    graph = Graph.from_arrays(device, [0, 4, 6], [0, 1, 1, 0, 1, 0], choice_ids=[7, 7, 3, 9, 9, 9])
    assert triples(graph) == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 2, 0), (1, 0, 0), (1, 0, 1)]
    assert to_numpy(graph.choice_ptr).tolist() == [0, 3, 4]
    assert to_numpy(graph.choice_offsets).tolist() == [0, 2, 3, 4, 6]
    assert triples(Graph.from_arrays(device, [0, 2, 2], [0, 1])) == [(0, 0, 0), (0, 0, 1)]


def test_width_follows_states_and_groups(device: Device) -> None:
    few = from_choices([[[0]] * 3] + [[[0]]] * 1000)
    assert few.graph(device).bits == 32
    # 11 bits for a state and 21 for groups leave no bit for the lock.
    many = Graph.from_arrays(device, [0, 1 << 20, *([1 << 20] * 1024)], np.zeros(1 << 20, int),
                             choice_ids=np.arange(1 << 20))  # fmt: skip
    assert many.bits == 64
    assert int(to_numpy(many.trans)[-1]) >> many.state_bits == (1 << 20) - 1


@pytest.mark.parametrize(
    ("arguments", "choices", "message"),
    [
        (([0, 2], [0]), {}, "offsets: expected to rise from 0 to 1, got 0 to 2"),
        (([0, 2, 1, 2], [0, 0]), {}, "perhaps with falls between"),
        (([], []), {}, "offsets: expected a vector of at least one element"),
        (([0, 1], [1]), {}, "targets: expected states 0 to 0, got 1 to 1"),
        (([0, 1], [-1]), {}, "targets: expected states 0 to 0, got -1 to -1"),
        (([0, 1], [0]), {"choice_offsets": [0, 0, 1]}, "a choice without transitions"),
        (([0, 1, 2], [0, 0]), {"choice_offsets": [0, 2]}, "reaches over the border between two states"),
        (([0, 1], [0]), {"choice_ids": [0, 0]}, r"choice_ids: expected shape \(1,\), got \(2,\)"),
        (([0, 1], [0]), {"choice_ids": [0], "choice_offsets": [0, 1]}, "got both"),
    ],
)
def test_refuses(device: Device, arguments: tuple, choices: dict, message: str) -> None:
    offsets, targets = (np.array(a, dtype=np.int64) for a in arguments)
    with pytest.raises(ValueError, match=message):
        Graph.from_arrays(device, offsets, targets, **choices)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_memory_is_asked_for() -> None:
    with pytest.raises(MemoryError, match="making the graph needs 1224 bytes and 1000 are free on host"):
        RUNNING_EXAMPLE.graph(HostDevice(free=1000))
    graph = RUNNING_EXAMPLE.graph(HostDevice())
    with pytest.raises(MemoryError, match="the transposed graph needs 168 bytes and 100 are free"):
        graph.with_transpose(HostDevice(free=100))


def test_part_keeps_what_it_should(device: Device, rng: np.random.Generator) -> None:
    lists = random_process(rng, 80, 3, 2, 3)
    graph, xp = lists.graph(device), device.xp
    kept_state = rng.random(80) < 0.7
    choice = np.repeat(np.arange(graph.n_choices), np.diff(lists.choice_offsets))
    outside = np.bincount(choice, ~kept_state[lists.targets], minlength=graph.n_choices) > 0
    kept_choice = ~outside & (rng.random(graph.n_choices) < 0.8)
    part = part_of(device, graph, xp.asarray(kept_state), xp.asarray(kept_choice.astype(np.uint32)))
    np.testing.assert_array_equal(to_numpy(part.states), np.flatnonzero(kept_state))
    states = np.searchsorted(lists.offsets, lists.choice_offsets[:-1], side="right") - 1
    expected = np.flatnonzero(kept_choice & kept_state[states])
    np.testing.assert_array_equal(to_numpy(part.choices), expected)
    # The part's transitions, told by the numbers of the whole.
    of_choice = to_numpy(part.graph.choice_ptr).astype(int)
    parents, choices = to_numpy(part.states).astype(int), to_numpy(part.choices).astype(int)
    told = sorted((parents[s], choices[of_choice[s] + g], parents[t]) for s, g, t in triples(part.graph))
    wanted = [(states[c], c, t) for c, t in zip(choice, lists.targets, strict=True) if c in set(expected)]
    assert told == sorted(wanted)
    assert to_numpy(part.graph.choice_offsets)[-1] == part.graph.n_transitions
    assert part.graph.with_transpose(device).n_transitions == len(wanted)


@pytest.mark.parametrize("interval", [0, 1, 2, 4])
@pytest.mark.parametrize("transpose", [False, True])
def test_segments_hold_every_list(
    device: Device, rng: np.random.Generator, interval: int, transpose: bool
) -> None:
    graph = random_process(rng, 150, 2, 2, 3).graph(device).with_transpose(device)
    layout = build_layout(device, graph, interval, transpose)
    order = to_numpy(layout.order).astype(int)
    assert sorted(order.tolist()) == list(range(150))
    padding = (1 << 31) - 1
    found = []
    offsets, words = to_numpy(layout.offsets).astype(int), to_numpy(layout.trans).astype(int)
    for i in range(150):
        if i < layout.n_segmented:
            end, step = offsets[min((i // 32 + 1) * 32, layout.n_segmented)], 32
        else:
            end, step = offsets[i + 1], 1
        own = [w for w in words[offsets[i] : end : step].tolist() if w != padding]
        assert i >= layout.n_segmented or len(own) <= interval
        found += [(order[i], w >> graph.state_bits, order[w & graph.mask]) for w in own]
    assert sorted(found) == triples(graph)
    assert (layout.back_trans is None) == (not transpose)


def test_segments_of_figure_5(device: Device) -> None:
    # Two states of two transitions and one of three: interval 2 leaves the third to the tail.
    graph = chain([[0, 1], [0, 1, 2], [2, 0]]).graph(device)
    layout = build_layout(device, graph, 2, False)
    assert (layout.n_segmented, to_numpy(layout.order).tolist()) == (2, [0, 2, 1])
    assert to_numpy(layout.offsets).tolist() == [0, 1, 64, 67]
    assert to_numpy(layout.trans)[[0, 1, 32, 33]].tolist() == [0, 1, 2, 0]
    assert to_numpy(layout.trans)[64:].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("interval", "lanes", "tail", "padding", "accesses"),
    [
        (3, [[0, 0, 1], [1, 2, None], [2, None, None]], [], 3, 3),
        (2, [[2, 0], [1, None]], [2, 0, 1], 1, 5),
    ],
)
def test_padding_and_accesses_of_figures_4_and_5(
    device: Device,
    interval: int,
    lanes: list[list[int | None]],
    tail: list[int],
    padding: int,
    accesses: int,
) -> None:
    # Three states, of three, two and one transitions: all in one segment, or the first one in the tail.
    graph = chain([[0, 1, 2], [0, 2], [1]]).graph(device)
    layout = build_layout(device, graph, interval, False)
    n, end = layout.n_segmented, int(layout.offsets[layout.n_segmented])
    words = [None if w == (1 << 31) - 1 else int(w) for w in to_numpy(layout.trans).tolist()]
    found = [words[first : first + n] for first in range(0, end, 32)]
    assert found == lanes
    assert words[end:] == tail
    assert sum(row.count(None) for row in found) == padding
    assert len(found) + len(tail) == accesses

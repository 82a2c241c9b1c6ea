"""Strongly connected components: every variant and option against SciPy's, on borders and random graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_kernels import Device
from gpu_kernels import graph as components
from gpu_kernels.graph import ComponentOptions, scc
from gpu_kernels.graph.scc import SEARCH_LAUNCHES, components_of, trim_components
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.graph_cases import BORDERS, RUNNING_EXAMPLE, Lists, chain, random_process
from tests.oracles.graphs import reference_scc

PUBLISHED = ComponentOptions("fbt")
BOUNDED = ComponentOptions("bfbt")
OPTIONS = {
    "auto": ComponentOptions(),
    "max-id": ComponentOptions("max-id"),
    "fb": ComponentOptions("fb"),
    "fbt": PUBLISHED,
    "bfbt": BOUNDED,
    "fbt, separate kernels": replace(PUBLISHED, combined=False),
    "bfbt, separate kernels": replace(BOUNDED, combined=False),
    "fbt, no transposed graph": replace(PUBLISHED, transpose=False),
    "bfbt, no transposed graph, no segments": replace(BOUNDED, transpose=False, segment_interval=0),
    "fbt, no segments": replace(PUBLISHED, segment_interval=0),
    "fbt, interval 2": replace(PUBLISHED, segment_interval=2),
    "fbt, interval 1, separate kernels": replace(PUBLISHED, segment_interval=1, combined=False),
    "fbt, caches, interval 1": replace(PUBLISHED, iterations=3, segment_interval=1),
    "fbt, caches": replace(PUBLISHED, iterations=3),
    "bfbt, caches": replace(BOUNDED, iterations=4),
    "fbt, all lanes compete": replace(PUBLISHED, aggregate=False),
}


def check(device: Device, lists: Lists, options: ComponentOptions, wide: bool = False) -> dict[str, int]:
    expected = reference_scc(lists.offsets, lists.targets)
    result = scc(device, lists.graph(device, wide), options)
    labels = to_numpy(result.labels)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, expected)
    assert result.count == len(np.unique(expected))
    return result.rounds


@pytest.mark.parametrize("name", OPTIONS)
def test_running_example_and_pairs(device: Device, name: str) -> None:
    check(device, RUNNING_EXAMPLE, OPTIONS[name])
    labels = to_numpy(scc(device, RUNNING_EXAMPLE.graph(device), OPTIONS[name]).labels)
    assert labels.tolist() == [0, 1, 2, 3, 4, 4, 4, 7]
    check(device, BORDERS["chain of pairs"], OPTIONS[name])


@pytest.mark.parametrize("case", BORDERS)
@pytest.mark.parametrize("name", ["auto", "max-id", "fbt", "fbt, no transposed graph"])
def test_borders(device: Device, case: str, name: str) -> None:
    check(device, BORDERS[case], OPTIONS[name])


@pytest.mark.parametrize("case", ["cycle above a pair", "cycle below a pair"])
@pytest.mark.parametrize("name", [name for name in OPTIONS if "bfbt" in name])
def test_bounded_searches_divide_no_cycle(device: Device, case: str, name: str) -> None:
    check(device, BORDERS[case], OPTIONS[name])


@pytest.mark.parametrize("name", OPTIONS)
def test_random_graphs_match_reference(device: Device, rng: np.random.Generator, name: str) -> None:
    for n, wide in ((33, False), (100, True)):
        check(device, random_process(rng, n, 2, 2, 3), OPTIONS[name], wide)


@given(
    edges=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14),
    name=st.sampled_from(sorted(OPTIONS)),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_small_graphs_match_reference(device: Device, edges: list[tuple[int, int]], name: str) -> None:
    check(device, chain([[w for v, w in edges if v == u] for u in range(7)]), OPTIONS[name])


def test_no_states(device: Device) -> None:
    empty = Lists(np.zeros(1, int), np.zeros(0, int), np.zeros(1, int))
    for name in ("auto", "max-id", "fbt"):
        result = scc(device, empty.graph(device), OPTIONS[name])
        assert (len(result.labels), result.count) == (0, 0)


def test_untrimmed_components_match_reference(device: Device, rng: np.random.Generator) -> None:
    # As end components decompose what is left, with and without a transposed graph.
    for variant in ("auto", "max-id"):
        lists = random_process(rng, 60, 2, 2, 3)
        found, rounds, _ = components_of(device, lists.graph(device), variant, trims=False)
        names = np.stack([to_numpy(found).astype(np.int64), reference_scc(lists.offsets, lists.targets)])
        assert len(np.unique(names, axis=1).T) == len(np.unique(names[0])) == len(np.unique(names[1]))
        assert "sweeps" in rounds


def test_long_chains_need_few_launches(device: Device) -> None:
    # Both ends at once, 150 rounds; a block goes on by itself, and the host looks after a few launches.
    assert check(device, BORDERS["path"], ComponentOptions())["trim_launches"] <= 8


@pytest.mark.parametrize(("length", "variant"), [(20, "auto"), (2000, "max-id")])
def test_auto_gives_up_a_search_that_goes_deep(device: Device, length: int, variant: str) -> None:
    # A search has been round a ring after half its length of rounds, in both directions at once.
    ring = chain([[(v + 1) % length] for v in range(length)])
    result = scc(device, ring.graph(device))
    assert result.variant == variant
    assert result.count == 1
    assert 0 < result.rounds["search_launches"] <= SEARCH_LAUNCHES


def test_states_of_very_many_edges(device: Device) -> None:
    # Only the hub's edges can remove the leaves, by all blocks together: each leads to the pair as well.
    leaves = 17_000
    lists = chain([list(range(3, leaves + 3)), [2], [1], *([1] for _ in range(leaves))])
    graph = lists.graph(device).with_transpose(device)
    component, counts = (device.xp.full(leaves + 3, 2**32 - 1, np.uint32) for _ in range(2))
    trim_components(device, graph, component, counts, None)
    assert np.flatnonzero(to_numpy(component) == 2**32 - 1).tolist() == [1, 2]


@pytest.mark.parametrize("leaves", [255, 256, 257, 600])
def test_no_item_is_lost_where_a_block_finds_more_than_it_holds(device: Device, leaves: int) -> None:
    # The hub's edges remove the leaves, and each leaf alone removes the state that it leads to.
    first = 3 + leaves
    lists = chain(
        [
            list(range(3, first)),
            [2],
            [1],
            *([first + i] for i in range(leaves)),
            *([1] for _ in range(leaves)),
        ]
    )
    graph = lists.graph(device).with_transpose(device)
    component, counts = (device.xp.full(lists.n_states, 2**32 - 1, np.uint32) for _ in range(2))
    trim_components(device, graph, component, counts, None)
    assert np.flatnonzero(to_numpy(component) == 2**32 - 1).tolist() == [1, 2]


def test_a_decomposition_leaves_the_graph_as_it_was(device: Device, rng: np.random.Generator) -> None:
    graph = random_process(rng, 60, 2, 2, 3).graph(device).with_transpose(device)
    arrays = (graph.offsets, graph.trans, graph.back_offsets, graph.back_trans)
    before = [to_numpy(a).copy() for a in arrays]
    for name in ("auto", "fbt, no segments", "fbt"):
        scc(device, graph, OPTIONS[name])
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(to_numpy(array), copy)


def test_options_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="variant: expected one of"):
        ComponentOptions(variant="tarjan")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="iterations: expected at least 1, got 0"):
        ComponentOptions(iterations=0)


@pytest.mark.parametrize("name", ["SccOptions", "MecOptions"])
def test_options_of_the_release_before_say_what_to_use(name: str) -> None:
    with pytest.raises(ImportError, match=f"graph.{name} is gone; use ComponentOptions"):
        getattr(components, name)

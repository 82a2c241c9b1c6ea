"""Maximal end components: the examples of [WKB16], the definition, every variant on random processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_kernels import Device
from gpu_kernels.graph import ComponentOptions, MecResult, attractor, mec
from gpu_kernels.graph.fbt import Regions, laid_out, search_regions
from gpu_kernels.graph.mec import _by_state, _cut
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.graph_cases import BORDERS, RUNNING_EXAMPLE, Lists, chain, from_choices, random_process
from tests.oracles.graphs import reference_mec, reference_scc

PUBLISHED = ComponentOptions("fbt")
BOUNDED = ComponentOptions("bfbt")
OPTIONS = {
    "auto": ComponentOptions(),
    "max-id": ComponentOptions("max-id"),
    "fbt": PUBLISHED,
    "fbt, joins": replace(PUBLISHED, join_sets=True),
    "fbt, no transposed graph": replace(PUBLISHED, transpose=False),
    "bfbt, no segments": replace(BOUNDED, segment_interval=0),
    "bfbt, joins": replace(BOUNDED, join_sets=True),
    "bfbt, no transposed graph": replace(BOUNDED, transpose=False),
    "fbt, caches": replace(PUBLISHED, iterations=3),
    "fbt, caches, joins": replace(PUBLISHED, iterations=3, segment_interval=1, join_sets=True),
    "fbt, all lanes compete": replace(PUBLISHED, aggregate=False),
    "fbt, all lanes compete, joins": replace(PUBLISHED, aggregate=False, join_sets=True),
    "fbt, separate kernels": replace(PUBLISHED, combined=False),
    "fb": ComponentOptions("fb"),
    "fb, joins": ComponentOptions("fb", join_sets=True),
}
# Both states reach each other only by a choice that may leave them: no end component holds both.
LEAVING_LINK = from_choices([[[0], [1, 2]], [[1], [0]], [[2]]])


def choice_states(lists: Lists) -> np.ndarray:
    return np.searchsorted(lists.offsets, lists.choice_offsets[:-1], side="right") - 1


def check_definition(lists: Lists, labels: np.ndarray, kept: np.ndarray) -> None:
    """Every component is an end component, kept choices are those that stay, and nothing can be added."""
    n, states = lists.n_states, choice_states(lists)
    source = np.repeat(states, np.diff(lists.choice_offsets))
    choice = np.repeat(np.arange(len(states)), np.diff(lists.choice_offsets))
    inside = (labels[source] >= 0) & (labels[source] == labels[lists.targets])
    stays = np.bincount(choice, minlength=len(states)) == np.bincount(choice[inside], minlength=len(states))
    np.testing.assert_array_equal(kept, stays)
    has_choice = np.bincount(states[kept], minlength=n) > 0
    assert (has_choice == (labels >= 0)).all()
    live = kept[choice]
    counts = np.bincount(source[live], minlength=n)
    connected = reference_scc(np.concatenate([[0], np.cumsum(counts)]), lists.targets[live])
    np.testing.assert_array_equal(connected[labels >= 0], labels[labels >= 0])


def end_components(lists: Lists) -> list[int]:
    """Every end component of a small process, as a set of bits."""
    n, states = lists.n_states, choice_states(lists)
    targets = np.split(lists.targets, lists.choice_offsets[1:-1]) if len(states) else []
    bits = [sum(1 << int(t) for t in set(choice.tolist())) for choice in targets]
    found = []
    for members in range(1, 1 << n):
        step = [0] * n
        for state, goal in zip(states.tolist(), bits, strict=True):
            if members >> state & 1 and goal & ~members == 0:
                step[state] |= goal
        if all(step[s] for s in range(n) if members >> s & 1) and all(
            reached(step, s) == members for s in range(n) if members >> s & 1
        ):
            found.append(members)
    return found


def reached(step: list[int], start: int) -> int:
    """What can be reached by at least one step."""
    known, front = 0, step[start]
    while front & ~known:
        known |= front
        front = 0
        for state, goals in enumerate(step):
            if known >> state & 1:
                front |= goals
    return known


def check(device: Device, lists: Lists, name: str, wide: bool = False) -> MecResult:
    labels, kept = reference_mec(lists.offsets, lists.targets, lists.choice_offsets)
    result = mec(device, lists.graph(device, wide), OPTIONS[name])
    np.testing.assert_array_equal(to_numpy(result.labels), labels)
    np.testing.assert_array_equal(to_numpy(result.choice_kept), kept)
    assert result.count == len(set(labels.tolist()) - {-1})
    return result


@pytest.mark.parametrize("name", OPTIONS)
def test_running_example(device: Device, name: str) -> None:
    result = check(device, RUNNING_EXAMPLE, name)
    assert to_numpy(result.labels).tolist() == [-1, -1, 2, 3, 4, 4, 4, -1]
    assert result.count == 3
    assert to_numpy(result.choice_kept).tolist() == [False] * 4 + [True] * 6 + [False] * 2
    assert check(device, LEAVING_LINK, name).count == 3


@pytest.mark.parametrize(
    ("inside", "state", "closed"),
    [
        ([0, 1, 2, 3], 1, [True, True]),
        ([1, 2, 3], 1, [True, True]),
        ([1], 1, [False, False]),
        ([4, 5, 6], 6, [True, True]),
        ([5, 6], 6, [True, False]),
        ([6], 6, [False, False]),
    ],
)
def test_closed_states_of_example_2(
    device: Device, inside: list[int], state: int, closed: list[bool]
) -> None:
    # A state is e-closed for a set if one of its choices has all its targets inside (definition 4).
    xp = device.xp
    graph = RUNNING_EXAMPLE.graph(device)
    labels = np.arange(8)
    labels[inside] = min(inside)
    kept, _, _ = _cut(device, graph, xp.asarray(labels.astype(graph.word)))
    own = slice(*to_numpy(graph.choice_ptr)[[state, state + 1]].tolist())
    assert to_numpy(kept).astype(bool)[own].tolist() == closed


def test_targets_of_example_2() -> None:
    targets = np.split(RUNNING_EXAMPLE.targets, RUNNING_EXAMPLE.choice_offsets[1:-1])
    of_state = choice_states(RUNNING_EXAMPLE)
    assert [set(targets[c].tolist()) for c in np.flatnonzero(of_state == 6)] == [{5, 6}, {4}]
    assert [set(targets[c].tolist()) for c in np.flatnonzero(of_state == 1)] == [{1, 2, 3}, {2, 3}]


def test_attractors_of_the_running_example(device: Device) -> None:
    graph, xp = RUNNING_EXAMPLE.graph(device), device.xp

    def attracted(*states: int) -> list[int]:
        inside = xp.zeros(8, np.bool_)
        inside[list(states)] = True
        return np.flatnonzero(to_numpy(attractor(device, graph, inside))).tolist()

    assert attracted(3) == [1, 3]
    assert attracted(2) == [0, 1, 2]
    # Both choices of s6 hit {s4, s5}, and s4 has but one choice.
    assert attracted(5) == [4, 5, 6]
    # In two steps: s1 by s3, then s0 by s1 and s4; s7 by s4 and s3. s5 and s6 wait for each other.
    assert attracted(3, 4) == [0, 1, 3, 4, 7]
    with pytest.raises(ValueError, match="states: expected shape"):
        attractor(device, graph, xp.zeros(7, np.bool_))


@pytest.mark.parametrize("case", BORDERS)
@pytest.mark.parametrize("name", ["auto", "fbt"])
def test_borders(device: Device, case: str, name: str) -> None:
    check(device, BORDERS[case], name)


@pytest.mark.parametrize("name", OPTIONS)
def test_random_processes_match_reference(device: Device, rng: np.random.Generator, name: str) -> None:
    for n, wide in ((40, False), (90, True)):
        lists = random_process(rng, n, 3, 2, 2)
        result = check(device, lists, name, wide)
        check_definition(lists, to_numpy(result.labels), to_numpy(result.choice_kept))


@st.composite
def processes(draw: st.DrawFn) -> Lists:
    n = draw(st.integers(1, 5))
    choice = st.lists(st.integers(0, n - 1), min_size=1, max_size=2)
    return from_choices(draw(st.lists(st.lists(choice, max_size=3), min_size=n, max_size=n)))


@st.composite
def processes_side_by_side(draw: st.DrawFn) -> list[Lists]:
    return draw(st.lists(processes(), min_size=1, max_size=6))


def side_by_side(parts: list[Lists]) -> Lists:
    """One process of several that do not reach each other: one call decides about all of them."""
    states = [0, *np.cumsum([part.n_states for part in parts]).tolist()]
    edges = [0, *np.cumsum([len(part.targets) for part in parts]).tolist()]
    numbers = range(len(parts))
    return Lists(
        np.concatenate([[0], *(parts[i].offsets[1:] + edges[i] for i in numbers)]),
        np.concatenate([parts[i].targets + states[i] for i in numbers]),
        np.concatenate([[0], *(parts[i].choice_offsets[1:] + edges[i] for i in numbers)]),
    )


@pytest.mark.parametrize("name", OPTIONS)
@given(parts=processes_side_by_side())
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
def test_small_processes_match_reference(device: Device, name: str, parts: list[Lists]) -> None:
    lists = side_by_side(parts)
    result = check(device, lists, name)
    check_definition(lists, to_numpy(result.labels), to_numpy(result.choice_kept))


@given(lists=processes(), name=st.sampled_from(sorted(OPTIONS)))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_small_processes_by_definition(device: Device, lists: Lists, name: str) -> None:
    result = check(device, lists, name)
    labels, kept = to_numpy(result.labels), to_numpy(result.choice_kept)
    check_definition(lists, labels, kept)
    members = [
        sum(1 << s for s in range(lists.n_states) if labels[s] == name)
        for name in set(labels.tolist()) - {-1}
    ]
    every = end_components(lists)
    maximal = [one for one in every if not any(one != other and one & ~other == 0 for other in every)]
    assert sorted(members) == sorted(maximal)


def test_chains_have_bottom_components(device: Device) -> None:
    result = check(device, BORDERS["two cycles and a bridge"], "auto")
    assert to_numpy(result.labels).tolist() == [-1, -1, -1, -1, 4, 4]


def test_choices_of_very_many_transitions(device: Device) -> None:
    # One choice of state 0 leads to everything, and goes: a queue entry of its own, for all blocks.
    n = 17_000
    spread = [list(range(1, n)), [0]]
    lists = from_choices([spread, [], *([[0]] for _ in range(n - 2))])
    result = check(device, lists, "auto")
    assert result.count == 1
    assert "sweeps" not in result.rounds


def test_regions_without_a_pivot_keep_names_of_their_own(device: Device) -> None:
    # Searched from state 0 alone, the second pair is no component yet; it was in the first one's region.
    xp = device.xp
    graph = chain([[1], [0, 2], [3], [2]]).graph(device)
    every, first = xp.ones(4, np.bool_), xp.asarray(np.arange(4) == 0)
    layout = laid_out(device, graph, PUBLISHED, "a search")
    found = search_regions(device, graph, PUBLISHED, layout, Regions(xp.zeros(4, np.uint32), every, first))
    component, region = (to_numpy(words).tolist() for words in _by_state(device, graph, found))
    assert component == [0, 0, 2**32 - 1, 2**32 - 1]
    assert region == [0, 0, 2, 2]

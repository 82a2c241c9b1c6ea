"""Elements written to the windows of other processes, which one process plays here, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_kernels.runtime.pushes as pushes
from gpu_kernels import Device, Leaving, WindowPushes, window_words
from hybrid.base.arrays import to_host
from tests.gpu_kernels.devices import to_numpy

PARTS = 3


class Here:
    """A window of the same process, as others see it."""

    def __init__(self, words: Any, room: Any) -> None:
        self.words, self.room = (
            int(a.ctypes.data if isinstance(a, np.ndarray) else a.data.ptr) for a in (words, room)
        )

    def close(self) -> None:
        pass


def runs_of(rng: np.random.Generator, size: int, count: int) -> np.ndarray[Any, Any]:
    """Return ascending ranges that do not touch each other."""
    cuts = np.sort(rng.choice(size, 2 * count, replace=False)).reshape(-1, 2)
    return cuts.astype(np.int64)


def form_of(device: Device, runs: np.ndarray[Any, Any], kind: str) -> Leaving:
    xp, lengths = device.xp, runs[:, 1] - runs[:, 0]
    size = int(lengths.sum())
    if kind == "ranges":
        return Leaving(size, starts=xp.asarray(runs[:, 0].copy()), ends=xp.asarray(np.cumsum(lengths)))
    places = np.concatenate([np.arange(a, b) for a, b in runs] + [np.zeros(0)])
    return Leaving(size, places=xp.asarray(places.astype(kind)))


@pytest.mark.parametrize("kind", ["ranges", "int32", "int64"])
@pytest.mark.parametrize(("size", "counts"), [(90, (2, 3, 0)), (40000, (5, 1, 2)), (90, (0, 0, 0))])
def test_every_element_comes_to_its_place(
    device: Device, kind: str, size: int, counts: tuple[int, int, int], rng: np.random.Generator
) -> None:
    xp = device.xp
    runs = {
        (a, b): runs_of(rng, size, counts[(b - a) % PARTS])
        for a in range(PARTS)
        for b in range(PARTS)
        if a != b
    }
    sizes = np.zeros((PARTS, PARTS), np.int64)
    for (a, b), own in runs.items():
        sizes[a, b] = (own[:, 1] - own[:, 0]).sum()
    windows = [device.window(window_words(PARTS), int(sizes[:, k].sum())) for k in range(PARTS)]
    none = np.zeros((0, 2), np.int64)
    parts = [
        WindowPushes(
            device,
            rank,
            windows[rank],
            [None if k == rank else Here(windows[k].words, windows[k].room) for k in range(PARTS)],
            [form_of(device, runs.get((rank, k), none), kind) for k in range(PARTS)],
            sizes,
        )
        for rank in range(PARTS)
    ]
    for _ in range(3):
        vectors = rng.random((PARTS, size))
        for part in parts:
            part.announce()
        for part, x in zip(parts, vectors, strict=True):
            part.push(xp.asarray(x))
        for part in parts:
            part.await_arrivals()
        for rank, window in enumerate(windows):
            wanted = [vectors[k][a:b] for k in range(PARTS) if k != rank for a, b in runs[k, rank].tolist()]
            np.testing.assert_array_equal(to_numpy(window.room), np.concatenate([*wanted, np.zeros(0)]))
    turns = [to_host(window.words)[2 * PARTS :].tolist() for window in windows]
    assert turns == [[3 if sizes[k].any() or sizes[:, k].any() else 0, 0] for k in range(PARTS)]


def two(device: Device, runs: Any = ((0, 1),), kind: str = "ranges") -> tuple[list[Any], list[WindowPushes]]:
    """Return two processes, of which each sends the same elements, one if left out, to the other."""
    form = form_of(device, np.array(runs), kind)
    sizes = form.size * np.array([[0, 1], [1, 0]])
    windows = [device.window(window_words(2), form.size) for _ in range(2)]
    parts = [
        WindowPushes(
            device,
            rank,
            windows[rank],
            [None if k == rank else Here(windows[k].words, windows[k].room) for k in range(2)],
            [form, form],
            sizes,
        )
        for rank in range(2)
    ]
    return windows, parts


@pytest.mark.parametrize("kind", ["ranges", "int32", "int64"])
@pytest.mark.parametrize("size", [1, 127, 1023, 1024, 1025, 2048, 5000, 6144])
def test_blocks_go_on_where_elements_are_many(
    device: Device, kind: str, size: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two blocks of threads write 1,024 elements at a time, or less at the end.
    monkeypatch.setattr(pushes, "MOST_BLOCKS", 2)
    monkeypatch.setattr(pushes, "MOST_BLOCKS_OF_PLACES", 2)
    cut = size // 3
    windows, parts = two(device, ((1, 1 + cut), (cut + 5, size + 5)), kind)
    for _ in range(2):
        x = rng.random(size + 6)
        for part in parts:
            part.announce()
        for part in parts:
            part.push(device.xp.asarray(x))
        for part in parts:
            part.await_arrivals()
        for window in windows:
            wanted = np.concatenate((x[1 : 1 + cut], x[cut + 5 : size + 5]))
            np.testing.assert_array_equal(to_numpy(window.room), wanted)


def test_nothing_is_written_before_there_is_room_and_nothing_read_before_it_has_come() -> None:
    # The emulator runs one kernel after the other: what would have to wait ends with a fault there.
    from tests.gpu_kernels.host_device import COMPILER, HostDevice

    if COMPILER is None:
        pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
    windows, (first, second) = two(HostDevice())
    x = np.array([2.0])
    first.announce()
    with pytest.raises(AssertionError, match="push_ranges"):
        first.push(x)  # the second has announced no room
    assert np.isnan(windows[1].room[0])
    second.push(x)
    second.announce()
    with pytest.raises(AssertionError, match="await_arrivals"):
        second.await_arrivals()
    first.push(x)
    first.await_arrivals()
    second.await_arrivals()
    assert windows[0].room[0] == windows[1].room[0] == 2.0
    first.announce()
    with pytest.raises(AssertionError, match="push_ranges"):
        first.push(x)  # room that was announced is used once

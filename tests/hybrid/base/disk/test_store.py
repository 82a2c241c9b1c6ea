"""Long arrays in files: made, moved and given back as memory is, and what is told where a disk fails."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.base.errors import DiskError, HybridError, OptionError
from mtbdd.base.budget import Budget, BudgetError, resident_bytes
from mtbdd.base.memory import current_store, require_memory, stored_bytes
from tests.faults.processes import run

pytest.importorskip("numba")

from hybrid.base import disk
from hybrid.base.disk import FileStore  # noqa: E402 - needs Numba

LEAST = 4096


def mapped() -> list[str]:
    """The files without a name that this process has mapped, by device and number."""
    lines = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    return [" ".join(words[3:5]) for words in lines if words[-1] == "(deleted)"]


@pytest.fixture(params=[False, True], ids=["no names", "names"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """A store, with files that have a name for a moment, too, as on some file systems."""
    monkeypatch.setattr(disk, "_needs_names", lambda folder: request.param)
    return FileStore(tmp_path, LEAST)


def test_long_arrays_lie_in_files_without_names_until_they_go(place: FileStore) -> None:
    before, files = os.listdir("/proc/self/fd"), mapped()
    with place.used():
        assert current_store() is place
        short, long = np.ones(LEAST // 8 - 1), np.arange(LEAST // 8)
        assert place.held_bytes == LEAST and len(mapped()) == len(files) + 1
        assert list(place.folder.iterdir()) == []
        total = long * 2.0 + long
        assert place.held_bytes == 2 * LEAST
    assert current_store().peak() is None
    assert short.sum() == short.size and (total == 3 * np.arange(LEAST // 8)).all()
    later = np.zeros(LEAST)
    assert place.held_bytes == 2 * LEAST
    del long, total
    assert place.held_bytes == 0 and mapped() == files
    assert os.listdir("/proc/self/fd") == before and later.sum() == 0.0


def test_arrays_keep_their_elements_when_they_grow_and_shrink(
    place: FileStore, rng: np.random.Generator
) -> None:
    values = rng.random(4 * LEAST)
    with place.used():
        array = values[:7].copy()
        for size in (LEAST, 3 * LEAST, 2 * LEAST, 5):
            known = min(array.size, size)
            array.resize(size, refcheck=False)
            assert (array[:known] == values[:known]).all() and not array[known:].any()
            array[:] = values[:size]
            assert place.held_bytes == (8 * size if 8 * size >= LEAST else 0)
        assert not np.zeros(LEAST).any()


def test_peak_is_that_since_it_was_last_asked(place: FileStore) -> None:
    assert stored_bytes() is None
    with place.used():
        kept = np.zeros(LEAST)
        np.zeros(2 * LEAST)
        assert stored_bytes() == 24 * LEAST and stored_bytes() == 8 * LEAST
        assert kept.size == LEAST


def test_what_is_free_decides_before_anything_is_made(tmp_path: Path) -> None:
    place = FileStore(tmp_path, LEAST, most=1 << 28)
    with place.used():
        held = np.empty(1 << 24)
        require_memory(1 << 27, "a vector", "ask for less")
        with pytest.raises(DiskError, match=r"a vector needs .* are free in .*: make room there, give spill"):
            require_memory((1 << 27) + 1, "a vector", "ask for less")
        assert held.nbytes == 1 << 27
    huge = FileStore(tmp_path)
    with huge.used(), pytest.raises(DiskError, match="are free in"):
        require_memory(1 << 60, "a vector", "ask for less")


def test_stores_have_nothing_in_common_while_they_or_their_arrays_last(tmp_path: Path) -> None:
    files, one, other = mapped(), FileStore(tmp_path, LEAST), FileStore(tmp_path, 2 * LEAST)
    with one.used():
        first = np.ones(LEAST, np.uint8)
        with other.used():
            second = np.ones(LEAST, np.uint8)
            assert current_store() is other and other.held_bytes == 0
    memories = len(disk._memories)
    assert one.held_bytes == LEAST and second.sum() == LEAST
    del one, other, second
    FileStore(tmp_path, 3 * LEAST)  # takes the place of the second
    assert len(mapped()) == len(files) + 1 and first.sum() == LEAST
    assert len(disk._memories) == memories
    del first
    assert mapped() == files


def test_pages_of_files_are_no_memory_of_a_budget(tmp_path: Path) -> None:
    with FileStore(tmp_path).used():
        array = np.ones(1 << 22)
        room = resident_bytes(files=False) + (1 << 24)
        Budget.of(None, room, files=False).check()
        with pytest.raises(BudgetError, match="the memory limit"):
            Budget.of(None, room).check()
    assert array.nbytes == 1 << 25


@contextmanager
def limited(which: int, soft: int) -> Iterator[None]:
    before = resource.getrlimit(which)
    resource.setrlimit(which, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


def told_by(place: FileStore) -> str:
    fault = place.fault()
    assert isinstance(fault, HybridError)
    return str(fault)


def test_a_disk_that_has_no_room_is_told(tmp_path: Path) -> None:
    place = FileStore(tmp_path, LEAST, most=2 * LEAST)
    with place.used():
        kept = np.zeros(LEAST, np.uint8)
        with pytest.raises(MemoryError):
            np.zeros(LEAST + 1, np.uint8)
        assert "no room for an array of 4.1 kB" in (told := told_by(place)), told
        assert os.strerror(errno.ENOSPC) in told and "give spill another folder" in told
        assert place.held_bytes == kept.nbytes


def test_what_the_system_refuses_is_told(place: FileStore) -> None:
    before = os.listdir("/proc/self/fd")
    with place.used():
        with limited(resource.RLIMIT_FSIZE, 1 << 20), pytest.raises(MemoryError):
            np.empty((1 << 20) + 1, np.uint8)
        assert os.strerror(errno.EFBIG) in told_by(place)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + (1 << 24)
        with limited(resource.RLIMIT_AS, room), pytest.raises(MemoryError):
            np.empty(1 << 26, np.uint8)
        assert "ulimit -v" in told_by(place)
    assert place.held_bytes == 0 and os.listdir("/proc/self/fd") == before


def test_where_no_further_file_can_be_opened_memory_holds_what_is_not_much_longer(place: FileStore) -> None:
    number = os.open("/dev/null", os.O_RDONLY)
    os.close(number)
    with place.used(), limited(resource.RLIMIT_NOFILE, number):
        array = np.ones(LEAST)
        assert place.held_bytes == 0 and array.sum() == LEAST
        with pytest.raises(MemoryError):
            np.ones(64 * LEAST)
    assert os.strerror(errno.EMFILE) in told_by(place)


def test_what_the_disk_lost_is_an_error_for_good(place: FileStore) -> None:
    with pytest.raises(DiskError, match="did not keep what was written there"), place.used():
        place._state[disk.LOST] = errno.EIO
    with pytest.raises(DiskError):
        place.check()


def test_every_file_is_asked_whether_it_was_written(
    place: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    with place.used():
        arrays = [np.zeros(LEAST) for _ in range(3)]
        monkeypatch.setattr(
            disk, "note_lost", lambda state, row: asked.append(int(state[disk.TABLE + 3 * row]))
        )
        place.check()
    assert sorted(asked[:3]) == sorted(array.ctypes.data for array in arrays)


def test_folders_that_files_cannot_be_made_in_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for name, why in (("none", "it is not there"), ("file", "it is no folder")):
        with pytest.raises(
            OptionError, match=f"spill: no file can be made in .*{name}: {why}; give a folder"
        ):
            FileStore(tmp_path / name)

    def refused(*arguments: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OptionError, match="Permission denied; give a folder .*that you may write to"):
        FileStore(tmp_path)


def test_a_folder_in_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(disk, "_kind_of", lambda folder: "tmpfs")
    with caplog.at_level(logging.WARNING, "hybrid.base.disk"):
        FileStore(tmp_path)
    assert "lies in memory (tmpfs)" in caplog.text
    monkeypatch.undo()
    assert disk._kind_of(Path("/proc/self")) == "proc" and disk._kind_of(tmp_path) not in ("", "proc")


KILLED = """
import os, sys, signal
import numpy as np
from hybrid.base.disk import FileStore
place = FileStore(sys.argv[1], 4096)
with place.used():
    array = np.ones(1 << 20)
    assert place.held_bytes == array.nbytes
    os.kill(os.getpid(), signal.SIGKILL)
"""

GONE = """
import mmap, os, sys
from hybrid.base.disk import bus_errors_told
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 4096)
pages = mmap.mmap(file, 4096)
with bus_errors_told(sys.argv[1]):
    os.ftruncate(file, 0)
    pages[0]
"""


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    assert run(str(tmp_path), code=KILLED).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_read_ends_the_process_with_a_word(tmp_path: Path) -> None:
    done = run(str(tmp_path), code=GONE)
    assert done.returncode == -signal.SIGBUS
    assert f"a page of a file in {tmp_path} cannot be read or written any more" in done.stderr


def test_handlers_of_bus_errors_are_put_back(tmp_path: Path) -> None:
    within, behind = (
        "    os.ftruncate(file, 0)\n    pages[0]\n",
        "    pass\nos.ftruncate(file, 0)\npages[0]\n",
    )
    done = run(str(tmp_path), code=GONE.replace(within, behind))
    assert done.returncode == -signal.SIGBUS and done.stderr == ""

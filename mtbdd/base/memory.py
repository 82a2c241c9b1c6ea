"""Memory left to this process: of the machine, of its control group, of its address space."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# The control groups that this process is in, of versions 1 and 2: what a container may use is reported there.


def groups_of(base: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the folders of the groups that may limit a resource, each with the version of its files.

    `base`: where ``proc`` and ``sys`` are. `controller`: {'memory', 'cpu'}.
    """
    for line in lines_of(base / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            version, mount = 2, base / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            version, mount = 1, base / "sys/fs/cgroup" / controller
        else:
            continue
        # The path may be that of the host, of which a container sees the last part alone, or nothing.
        parts = Path(path.lstrip("/"))
        for group in (parts, *parts.parents):
            yield version, mount / group


def cores_of_groups(root: str = "/") -> int | None:
    """Return the cores' worth of time that control groups leave to this process; None without a limit.

    `root`: where ``proc`` and ``sys`` are; tests put other files there. Returns int or None: rounded down, at
    least 1: one thread too many has all of them stopped for the rest of a period.
    """
    found = []
    for version, group in groups_of(Path(root), "cpu"):
        if version == 2:
            words = " ".join(lines_of(group / "cpu.max")).split()
        else:
            words = [*lines_of(group / "cpu.cfs_quota_us"), *lines_of(group / "cpu.cfs_period_us")]
        if len(words) == 2 and all(word.isdigit() and int(word) > 0 for word in words):
            found.append(max(int(words[0]) // int(words[1]), 1))
    return min(found, default=None)


def number_of(path: Path) -> int | None:
    """Return the first number in a file; None for other words ("max") and missing files."""
    words = " ".join(lines_of(path)).split()
    return int(words[0]) if words and words[0].isdigit() else None


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of the kernel; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


_UNLIMITED = 1 << 62

_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Of a control group by version: its limit, what it uses, and the part of that which can be dropped."""

_SMALL = 1 << 26
"""Bytes that are allocated without a check."""


class Store:
    """A store of long arrays: memory, or what a subclass has."""

    def require(self, needed: int, what: str, advice: str) -> None:
        """Refuse what there is no room for; see `require_memory`."""
        free = free_memory_bytes()
        if needed > free:
            raise MemoryError(
                f"{what} needs {needed} bytes ({needed / 1e9:.1f} GB), {free} ({free / 1e9:.1f} GB) are "
                f"free; {advice}"
            )

    def check(self) -> None:
        """Raise if something that was put there is lost."""

    def peak(self) -> int | None:
        """Return the bytes that were held there at most since this was last asked; None of memory."""
        return None

    def fault(self) -> Exception | None:
        """Return why an array could not be made last; None if that was not the store's."""
        return None


_MEMORY = Store()
_store: ContextVar[Store] = ContextVar("store", default=_MEMORY)


def current_store() -> Store:
    """Return where long arrays lie."""
    return _store.get()


def stored_bytes() -> int | None:
    """Return the bytes that a store held at most since this was last asked; None where memory holds all."""
    return _store.get().peak()


def check_stored() -> None:
    """Raise what the store raises that holds here, if something that was put there is lost."""
    _store.get().check()


@contextmanager
def stored_in(store: Store) -> Iterator[None]:
    """Ask a store for room in the place of memory, while the block lasts."""
    token = _store.set(store)
    try:
        yield
    finally:
        _store.reset(token)


def free_memory_bytes(root: str = "/") -> int:
    """Return the memory that can be had without swapping and without meeting a limit.

    `root`: where ``proc`` and ``sys`` are; tests put other files there. Returns int: the least of what the
    machine has available, what the limits of the control groups leave (versions 1 and 2; cached files that
    can be dropped count as free) and what the limits of the address space (``ulimit -v``) and of data
    (``ulimit -d``) leave; very large where nothing is known. Not below 0.
    """
    base = Path(root)
    rooms = [_available(base), *_group_rooms(base)]
    rooms += [_limit_room(base, resource.RLIMIT_AS, 0), _limit_room(base, resource.RLIMIT_DATA, 5)]
    return max(0, min(rooms))


def is_small(needed: int) -> bool:
    """Return whether bytes are so few that they are allocated without a check."""
    return needed <= _SMALL


def require_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what there is no room for, before any of it is made, in memory or in the store that holds here.

    `needed`: bytes; few are not examined. `what`, `advice`: what needs them, and what to do instead, for the
    message. Raises MemoryError: more bytes than are free. Of a store, an error of its own. Time: some 0.1 ms,
    for reading files of the kernel.
    """
    if is_small(needed):
        return
    _store.get().require(needed, what, advice)


def _available(base: Path) -> int:
    """Return what the machine can give without swapping."""
    for line in lines_of(base / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return _UNLIMITED


def _limit_room(base: Path, which: int, word: int) -> int:
    """Return what a limit of this process leaves, of which a word of ``statm`` is the pages in use."""
    limit, _ = resource.getrlimit(which)
    if limit == resource.RLIM_INFINITY:
        return _UNLIMITED
    words = " ".join(lines_of(base / "proc/self/statm")).split()
    return limit - (int(words[word]) * resource.getpagesize() if len(words) > word else 0)


def _group_rooms(base: Path) -> Iterator[int]:
    """Yield what is left of the limits of the control groups that this process is in."""
    for version, group in groups_of(base, "memory"):
        limit, usage, cached = _FILES[version]
        most, used = number_of(group / limit), number_of(group / usage)
        if most is not None and used is not None:
            yield most - used + min(_statistic(group / "memory.stat", cached), used)


def _statistic(path: Path, name: str) -> int:
    """Return a line's number in a control group's statistics; 0 if there is no such line."""
    for line in lines_of(path):
        key, _, number = line.partition(" ")
        if key == name:
            return int(number)
    return 0

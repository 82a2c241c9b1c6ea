"""The control groups that this process is in, of versions 1 and 2: what a container may use is told there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def groups_of(base: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the folders of the groups that may limit a resource, each with the version of its files.

    Parameters
    ----------
    base : Path
        Where ``proc`` and ``sys`` are.
    controller : {'memory', 'cpu'}
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

    Parameters
    ----------
    root : str
        Where ``proc`` and ``sys`` are; tests put other files there.

    Returns
    -------
    int or None
        Rounded down, at least 1: one thread too many has all of them stopped for the rest of a period.
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

"""What memory is free: of the machine, of control groups of both versions, of the address space."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from mtbdd.base import memory
from mtbdd.base.memory import free_memory_bytes, require_memory

GB = 10**9


def files(root: Path, **texts: str) -> str:
    """Write files below a root; names have ``__`` for a slash and ``_`` before the ending for a dot."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GB available, of whose address space nothing is limited."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    files(
        tmp_path, proc__meminfo=f"MemTotal: 99999999 kB\nMemAvailable:   {8 * GB // 1024} kB\nBuffers: 1 kB\n"
    )
    return tmp_path


def test_without_limits_the_machine_decides(machine: Path) -> None:
    assert free_memory_bytes(str(machine)) == pytest.approx(8 * GB, abs=1024)
    # The real one.
    assert 0 <= free_memory_bytes() < 1 << 60


def test_nothing_is_refused_where_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    assert free_memory_bytes(str(tmp_path)) > 1 << 60


@pytest.mark.parametrize(
    ("current", "cached", "left"), [(1, 0, 2), (3, 0, 0), (3, 1, 1), (4, 0, 0), (1, 9, 3)]
)
def test_control_group_of_version_2(machine: Path, current: int, cached: int, left: int) -> None:
    files(
        machine,
        proc__self__cgroup="0::/box/inner\n",
        sys__fs__cgroup__box__memory_DOT_max=f"{3 * GB}\n",
        sys__fs__cgroup__box__memory_DOT_current=f"{current * GB}\n",
        sys__fs__cgroup__box__memory_DOT_stat=f"anon 5\ninactive_file {cached * GB}\nactive_file 7\n",
        sys__fs__cgroup__box__inner__memory_DOT_max="max\n",
        sys__fs__cgroup__box__inner__memory_DOT_current="17\n",
    )
    assert free_memory_bytes(str(machine)) == left * GB


def test_control_group_of_version_1_with_the_path_of_the_host(machine: Path) -> None:
    files(
        machine,
        proc__self__cgroup="9:name=systemd:/x\n4:cpu,memory:/docker/abc\n0::/\n",
        sys__fs__cgroup__memory__memory_DOT_limit_in_bytes=f"{2 * GB}\n",
        sys__fs__cgroup__memory__memory_DOT_usage_in_bytes=f"{GB}\n",
        sys__fs__cgroup__memory__memory_DOT_stat=f"inactive_file 1\ntotal_inactive_file {GB // 4}\n",
    )
    assert free_memory_bytes(str(machine)) == GB + GB // 4
    files(machine, sys__fs__cgroup__memory__memory_DOT_limit_in_bytes=f"{2**63 - 4096}\n")
    assert free_memory_bytes(str(machine)) == pytest.approx(8 * GB, abs=1024)


def test_limit_of_the_address_space(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (5 * GB, 5 * GB))
    files(machine, proc__self__statm="1000 7 7 7 0 7 0\n")
    assert free_memory_bytes(str(machine)) == 5 * GB - 1000 * resource.getpagesize()


def test_what_does_not_fit_is_refused_and_little_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(memory, "free_memory_bytes", lambda: looks.append(1) or GB)
    require_memory(1 << 26, "little", "do not ask")
    assert looks == []
    require_memory(GB, "a vector", "buy more")
    with pytest.raises(
        MemoryError, match=r"a vector needs 1000000001 bytes \(1.0 GB\), 1000000000 .*; buy more"
    ):
        require_memory(GB + 1, "a vector", "buy more")
    assert len(looks) == 2

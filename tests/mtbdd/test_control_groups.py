"""Cores that control groups of both versions give the time of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtbdd.base.memory import cores_of_groups


def machine(root: Path, groups: str, **files: str) -> str:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2),
        ("250000 100000\n", 2),
        ("50000 100000\n", 1),
        ("max 100000\n", None),
        ("", None),
        ("100000\n", None),
        ("100000 0\n", None),
    ],
)
def test_version_2(tmp_path: Path, text: str, cores: int | None) -> None:
    assert cores_of_groups(machine(tmp_path, "0::/box\n", box__cpu_DOT_max=text)) == cores


def test_the_least_of_all_groups_holds(tmp_path: Path) -> None:
    root = machine(
        tmp_path, "0::/box/inner\n", box__cpu_DOT_max="300000 100000", box__inner__cpu_DOT_max="800000 100000"
    )
    assert cores_of_groups(root) == 3


@pytest.mark.parametrize(("quota", "cores"), [("-1", None), ("400000", 4)])
def test_version_1(tmp_path: Path, quota: str, cores: int | None) -> None:
    root = machine(
        tmp_path, "4:cpu,cpuacct:/docker/abc\n2:memory:/x\n",
        cpu__cpu_DOT_cfs_quota_us=f"{quota}\n", cpu__cpu_DOT_cfs_period_us="100000\n",
    )  # fmt: skip
    assert cores_of_groups(root) == cores


def test_nothing_is_known_where_there_are_no_groups(tmp_path: Path) -> None:
    assert cores_of_groups(str(tmp_path)) is None


def test_threads_are_as_many_as_the_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from hybrid.matrix.cpu import threads

    monkeypatch.setattr(threads, "_cores_to_run_on", lambda: 64)
    for limit, cores in ((2, 2), (None, 64), (100, 64)):
        monkeypatch.setattr(threads, "cores_of_groups", lambda limit=limit: limit)
        assert threads.available_cores.__wrapped__() == cores

"""Where the kernels compiled for the host are kept: loaded from nowhere that others can write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu_kernels import host_device


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let files be kept below a folder of the test, and compile nothing."""
    monkeypatch.setattr(host_device, "BUILD", tmp_path / "build")
    monkeypatch.setattr(host_device, "_compile", lambda arguments, target: None)
    return tmp_path


def test_folder_is_in_the_checkout_and_this_users_alone(folder: Path) -> None:
    found = host_device._folder.__wrapped__()
    assert found.parent == folder / "build"
    assert found.stat().st_mode & 0o777 == 0o700


def test_folder_that_others_can_write_to_is_left_alone(folder: Path) -> None:
    expected = host_device._folder.__wrapped__()
    for hostile in (expected, folder / "build"):
        hostile.chmod(0o777)
        found = host_device._folder.__wrapped__()
        assert found != expected
        assert folder not in found.parents
        assert found.stat().st_mode & 0o777 == 0o700
        hostile.chmod(0o700)
    assert host_device._folder.__wrapped__() == expected

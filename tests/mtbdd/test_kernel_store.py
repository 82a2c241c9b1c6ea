"""Files of compiled functions: whole or not read, out of reach of others or not read, and never an error."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from mtbdd.base import kernel_store
from mtbdd.base.kernel_store import KernelStore, kernel_folder

NAME, VERSION = "package.module.function", "0123456789abcdef-fedcba9876543210"
PAYLOAD = bytes(range(256)) * 3


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the warning that is given once be given in every test."""
    monkeypatch.setattr(kernel_store, "_told", False)


@pytest.fixture
def store(tmp_path: Path) -> KernelStore:
    return KernelStore(str(tmp_path / "kept"), "/sources")


def only_file(store: KernelStore) -> Path:
    assert store.folder is not None
    (path,) = store.folder.iterdir()
    return path


def test_what_is_written_is_read_by_name_and_version(store: KernelStore) -> None:
    assert store.read(NAME, VERSION) is None
    store.write(NAME, VERSION, PAYLOAD)
    assert store.read(NAME, VERSION) == PAYLOAD
    assert store.read(NAME, VERSION[:-1] + "1") is None
    assert store.read("package.module.other", VERSION) is None
    assert only_file(store).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("length", [0, 5, 16, 40, 48, 49, 300, 48 + len(PAYLOAD) - 1])
def test_cut_files_are_dropped(store: KernelStore, length: int) -> None:
    store.write(NAME, VERSION, PAYLOAD)
    path = only_file(store)
    path.write_bytes(path.read_bytes()[:length])
    assert store.read(NAME, VERSION) is None
    assert not path.exists()
    store.write(NAME, VERSION, PAYLOAD)
    assert store.read(NAME, VERSION) == PAYLOAD


def test_changed_files_are_dropped(store: KernelStore) -> None:
    store.write(NAME, VERSION, PAYLOAD)
    whole = only_file(store).read_bytes()
    for place in range(0, len(whole), 7):
        path = only_file(store)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert store.read(NAME, VERSION) is None, place
        store.write(NAME, VERSION, PAYLOAD)


def test_files_that_others_may_write_and_links_are_not_read(store: KernelStore, tmp_path: Path) -> None:
    store.write(NAME, VERSION, PAYLOAD)
    path = only_file(store)
    path.chmod(0o606)
    assert store.read(NAME, VERSION) is None
    path.chmod(0o600)
    assert store.read(NAME, VERSION) == PAYLOAD
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert store.read(NAME, VERSION) is None
    path.unlink()
    os.mkfifo(path)
    assert store.read(NAME, VERSION) is None


def test_folders_that_others_may_write_to_are_left_alone_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = KernelStore(str(tmp_path), "/sources")
    owner.write(NAME, VERSION, PAYLOAD)
    assert owner.folder is not None
    owner.folder.chmod(0o777)
    for _ in range(2):
        store = KernelStore(str(tmp_path), "/sources")
        assert store.read(NAME, VERSION) is None
        store.write(NAME, "1-2", PAYLOAD)
        store.drop(NAME, VERSION)
    assert len(list(owner.folder.iterdir())) == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"others may write to {owner.folder}" in record.getMessage()
    assert "set NUMBA_CACHE_DIR" in record.getMessage()


def test_folders_that_cannot_be_made_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    store = KernelStore(str(tmp_path / "file"), "/sources")
    store.write(NAME, VERSION, PAYLOAD)
    assert store.read(NAME, VERSION) is None
    (record,) = caplog.records
    assert "is no folder" in record.getMessage()


def test_a_write_that_fails_leaves_nothing_and_is_told_once(
    store: KernelStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(self))

    store.write(NAME, VERSION, PAYLOAD)
    monkeypatch.setattr(Path, "replace", full)
    for version in ("1-1", "1-2"):
        store.write(NAME, version, PAYLOAD)
        assert store.read(NAME, version) is None
    assert store.read(NAME, VERSION) == PAYLOAD
    assert only_file(store).name == f"{NAME}-{VERSION}.nbc"
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()


def test_other_source_texts_and_old_unfinished_files_are_removed(store: KernelStore) -> None:
    assert store.folder is not None
    store.write(NAME, "aaaa-1", PAYLOAD)
    store.write(NAME, "aaaa-2", PAYLOAD)
    store.write(NAME + "s", "aaaa-1", PAYLOAD)
    unfinished = [store.folder / f"{NAME}-aaaa-1.nbc.{pid}.tmp" for pid in (1, 2)]
    for path in unfinished:
        path.write_bytes(b"cut")
    os.utime(unfinished[0], (time.time() - 7200,) * 2)
    store.write(NAME, "bbbb-1", PAYLOAD)
    left = {path.name for path in store.folder.iterdir()}
    assert left == {f"{NAME}-bbbb-1.nbc", f"{NAME}s-aaaa-1.nbc", unfinished[1].name}


def test_the_folder_is_what_is_chosen_or_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.chdir(tmp_path)
    assert kernel_folder("/elsewhere") == Path("/elsewhere")
    assert kernel_folder("near") == tmp_path / "near"
    assert kernel_folder() == Path("/caches/hybrid-model-checker")
    for wrong in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", wrong)
        assert kernel_folder() == Path("/home/anna/.cache/hybrid-model-checker")
    # A user without an entry and without HOME: "~" stays as it is, and must not become a folder.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(OSError, match="no home directory"):
        kernel_folder()
    assert KernelStore("", "/sources").folder is None


def test_files_that_others_finish_meanwhile_are_no_fault(
    store: KernelStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert store.folder is not None
    gone = store.folder / "f-a-b.nbc.1.tmp"
    monkeypatch.setattr(Path, "glob", lambda *_: iter([gone]))
    store.write("f", "a-b", b"payload")
    store.write("g", "a-b", b"another")
    assert not caplog.records
    assert (store.read("f", "a-b"), store.read("g", "a-b")) == (b"payload", b"another")

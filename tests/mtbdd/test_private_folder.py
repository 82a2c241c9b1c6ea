"""Folders that only this user can write to: owner and permissions of the folder and of those above it."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from mtbdd.base.kernel_store import is_private_file, private_folder


def test_missing_folders_are_made_for_this_user_alone(tmp_path: Path) -> None:
    found = private_folder(tmp_path / "a" / "b")
    assert found == tmp_path / "a" / "b"
    assert [folder.stat().st_mode & 0o777 for folder in (found, found.parent)] == [0o700, 0o700]
    assert private_folder(found) == found


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o722, 0o702])
def test_folders_that_others_may_write_to_are_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match=f"others may write to {folder} .mode {mode:04o}"):
        private_folder(folder)
    if mode != 0o1777:
        with pytest.raises(PermissionError, match=f"others may write to {folder} "):
            private_folder(folder / "below")
        assert not (folder / "below").exists()
    else:
        # In a sticky folder nobody can take the place of another user's folder.
        private_folder(folder / "below")


def given_away(found: os.stat_result) -> os.stat_result:
    """Return what would be found if user 4711 had it."""
    return os.stat_result((*found[:4], 4711, *found[5:]))


def test_folders_of_other_users_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, real = private_folder(tmp_path / "theirs"), os.lstat
    (folder / "below").mkdir()
    monkeypatch.setattr(os, "lstat", lambda p: given_away(real(p)) if Path(p) == folder else real(p))
    for path in (folder, folder / "below"):
        with pytest.raises(PermissionError, match=f"{folder} belongs to user 4711, not to this one"):
            private_folder(path)


def test_links_are_followed_before_the_folder_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to("open")
    with pytest.raises(PermissionError, match="others may write"):
        private_folder(tmp_path / "link")


def test_a_file_in_the_way_and_relative_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is no folder"):
        private_folder(tmp_path / "file" / "below")
    with pytest.raises(OSError, match="no absolute path"):
        private_folder("~/cache")


def test_the_private_group_of_the_user_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o770)
    own = folder.stat().st_gid
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_gid=own, pw_name="anna"))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name="anna", gr_mem=[]))
    assert private_folder(folder) == folder
    for group in (
        SimpleNamespace(gr_name="staff", gr_mem=[]),
        SimpleNamespace(gr_name="anna", gr_mem=["bert"]),
    ):
        monkeypatch.setattr(grp, "getgrgid", lambda gid, group=group: group)
        with pytest.raises(PermissionError, match="others may write"):
            private_folder(folder)


def test_files_of_others_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("")
    path.chmod(0o644)
    with path.open("rb") as file:
        assert is_private_file(file.fileno())
        path.chmod(0o666)
        assert not is_private_file(file.fileno())
        path.chmod(0o600)
        real = os.fstat
        monkeypatch.setattr(os, "fstat", lambda descriptor: given_away(real(descriptor)))
        assert not is_private_file(file.fileno())

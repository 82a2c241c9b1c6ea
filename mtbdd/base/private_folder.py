"""Folders for files that are run when they are read: only folders that nobody else can write to.

Caches hold compiled code. Whoever can put a file there runs code as the user who reads it, so owner and
permissions of a folder, and of every folder above it, are looked at before anything is read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, unless it is there, that nobody but this user and root can put files into.

    Parameters
    ----------
    path : path-like
        Absolute; missing folders above it are made as well, with mode 0700.

    Returns
    -------
    Path
        Without symbolic links.

    Raises
    ------
    OSError
        If the folder cannot be made. PermissionError if others could put files there: it
        belongs to somebody else, its group or others may write to it, or this holds of a folder above it
        that is not sticky as ``/tmp`` is. A group without other members, named like the user, is no other.
    """
    if not os.path.isabs(path):
        raise OSError(f"{os.fspath(path)} is no absolute path")
    folder = Path(os.path.realpath(path))
    above = [*reversed(folder.parents), folder]
    for each in above:
        try:
            found = os.lstat(each)
        except FileNotFoundError:
            # Another process may make it at the same moment.
            each.mkdir(mode=0o700, exist_ok=True)
            found = os.lstat(each)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(f"{each} is no folder")
        is_last = each == folder
        if found.st_uid not in (os.geteuid(), 0):
            raise PermissionError(f"{each} belongs to user {found.st_uid}, not to this one ({os.geteuid()})")
        if _others_may_write(found) and (is_last or not found.st_mode & stat.S_ISVTX):
            raise PermissionError(f"others may write to {each} (mode {stat.S_IMODE(found.st_mode):04o})")
    return folder


def is_private_file(descriptor: int) -> bool:
    """Whether an open file is a plain one of this user or root that others may not write to."""
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0) and not _others_may_write(found)


def _others_may_write(found: os.stat_result) -> bool:
    """Whether the mode lets others write; a group of this user alone does not count."""
    if not found.st_mode & _OTHERS:
        return False
    return bool(found.st_mode & stat.S_IWOTH) or not _is_own_group(found.st_gid)


def _is_own_group(gid: int) -> bool:
    """Whether a group is the private one of this user: the primary one, of the same name, without others."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}

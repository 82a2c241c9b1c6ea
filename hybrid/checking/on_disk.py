"""Checks whose long arrays lie on a disk: what goes with that, and what does not."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import OptionError
from mtbdd.base.wording import option


def options_on_disk(options: CheckOptions) -> CheckOptions:
    """Return what a check is done with whose long arrays lie on a disk; refuse what it does not offer.

    Raises
    ------
    OptionError
    """
    refused = {
        "engine": options.engine == "explicit",
        "backend": options.backend in ("gpu", "reference"),
        "exact": options.exact,
    }
    named = [name for name, is_asked in refused.items() if is_asked]
    if named:
        raise OptionError(
            f"{option('spill')} is for the hybrid engine on the cpu: leave "
            f"{' and '.join(map(option, named))} out, or {option('spill')}"
        )
    return replace(options, engine="hybrid", backend="cpu")


@contextmanager
def arrays_on_disk(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Have long arrays lie in files of a folder while the block lasts; None leaves them in memory.

    Raises
    ------
    OptionError
        No file can be made there, or the system has no such files.
    DiskError
        At the end: the disk lost what was written.
    """
    if folder is None:
        yield
        return
    if not sys.platform.startswith("linux") or importlib.util.find_spec("numba") is None:
        raise OptionError(f"{option('spill')} needs Linux and the package numba; leave it out")
    from hybrid.base.disk.store import FileStore  # compiled functions: most checks need none of them

    with FileStore(folder).used():
        yield

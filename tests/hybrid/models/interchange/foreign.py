"""Files that other tools wrote: in a folder beside the project, for tests that compare with these tools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["foreign"]

_VARIABLE = "HYBRID_FOREIGN_MODELS"


def foreign(name: str) -> Path:
    """Return the path of a file as ``coin2.prism.drn``, which lies in the subfolder of its model ``coin2``.

    A model's name ends with the value of its constant, one digit; a digit more numbers a reward structure.
    The test is skipped if the environment does not name the folder; a file missing there is an error of the
    test's own.
    """
    folder = os.environ.get(_VARIABLE)
    if not folder:
        pytest.skip(f"compares with files of other tools; set {_VARIABLE} to the folder that has them")
    stem = name.partition(".")[0]
    model = stem.rstrip("0123456789")
    return Path(folder) / stem[: len(model) + 1] / name

"""Installed packages where this process runs: this one, and how a missing one is installed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

DISTRIBUTION = "hybrid-model-checker"
"""The distribution of this package; dwave-hybrid installs another package of the same name."""


def install_command(package: str) -> str:
    """Return the command that installs a package for the interpreter that runs."""
    return f"{shlex.quote(sys.executable or 'python3')} -m pip install {package}"


def installed_version() -> str:
    """Return the version of the package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+checkout"  # a folder of sources that is on the path, and not installed


def package_folder() -> Path:
    """Return the folder of the package `hybrid`."""
    return Path(str(sys.modules["hybrid"].__file__)).resolve().parent

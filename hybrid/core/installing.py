"""How a package that is missing is installed where this one runs."""

from __future__ import annotations

import shlex
import sys


def install_command(package: str) -> str:
    """Return the command that installs a package for the interpreter that runs."""
    return f"{shlex.quote(sys.executable or 'python3')} -m pip install {package}"

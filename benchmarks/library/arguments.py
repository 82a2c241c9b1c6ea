"""Options that programs have in common, so that a word means the same in all of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["existing", "parser"]

_COMMON: dict[str, dict[str, Any]] = {
    "quick": {"action": "store_true", "help": "small sizes, to try the program"},
    "only": {"action": "append", "metavar": "NAME", "help": "measure this one only; may be repeated"},
    "seconds": {"type": float, "metavar": "S", "help": "begin no row after this time"},
    "resume": {"action": "store_true", "help": "keep the finished rows of --out"},
    "out": {"type": Path, "metavar": "FILE.json", "help": "where to write the record"},
}


def parser(doc: str | None, *common: str) -> argparse.ArgumentParser:
    """Return a parser with options of all programs; its text is the program's docstring.

    Parameters
    ----------
    doc : str
    *common
        Of ``quick``, ``only``, ``seconds``, ``resume``; every program has ``out``.
    """
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.programs.{Path(sys.argv[0]).stem}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in (*common, "out"):
        made.add_argument(f"--{name}", **_COMMON[name])
    return made


def existing(text: str) -> Path:
    """Return the path of a file or folder that is not in the repository, for ``type=`` of an option.

    Raises
    ------
    argparse.ArgumentTypeError
        If there is none.
    """
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"no such file or folder: {text}; it is not in the repository")
    return path

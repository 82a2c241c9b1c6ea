"""Files that a command writes: none of them may be one that it reads."""

from __future__ import annotations

import argparse
import os

from hybrid.base.errors import OptionError

_READ = ("model", "property")
_WRITTEN = (
    "csv",
    "values",
    "scheduler",
    "certificate",
    "plot",
    "plot_convergence",
    "diagram",
    "output",
    "to",
)


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Refuse an output that is the model, the properties, or another output.

    Raises
    ------
    OptionError
        Two options name one file.
    """
    # A file may be replaced by itself in another form: it is read before, and replaced at once.
    read = () if options.command == "export" else _READ
    taken = [(name, path) for name in read if (path := getattr(options, name, None)) is not None]
    for name in _WRITTEN:
        given = getattr(options, name, None)
        for path in [given] if isinstance(given, str) else given or []:
            for other, known in taken:
                if _same(path, known):
                    what = f"the {other}" if other in _READ else f"what --{other.replace('_', '-')} writes"
                    raise OptionError(
                        f"--{name.replace('_', '-')}: {path} is {what} as well; give another file"
                    )
            taken.append((name, path))


def _same(path: str, other: str) -> bool:
    """Return whether two paths lead to one file, which need not exist."""
    try:
        return os.path.realpath(path) == os.path.realpath(other) or os.path.samefile(path, other)
    except (OSError, ValueError):
        return False

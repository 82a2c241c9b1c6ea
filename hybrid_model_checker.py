"""Where the console script begins: a look at whose package `hybrid` is, and then its command line.

The distribution dwave-hybrid installs a package named `hybrid`, too. Installed into one environment, the two
write into one folder, and the one that came first is damaged. This module bears the distribution's own name,
so that it is there to say so.
"""

from __future__ import annotations

import os
import sys

_FOREIGN = ("decomposers.py", "samplers.py", "traits.py")
"""Files in the folder `hybrid` that dwave-hybrid has and this distribution has not."""

_ADVICE = (
    "install hybrid-model-checker in an environment of its own: "
    "python -m venv ENV && ENV/bin/pip install hybrid-model-checker"
)

__all__ = ["command", "main"]


def main() -> int:
    """Run the command line `hybrid`, or say why it is not the one that was found; return the exit status.

    Returns
    -------
    int
        That of `hybrid.__main__.main`; 2 if another package `hybrid` is in the way.
    """
    try:
        import hybrid
        from hybrid.__main__ import main as run
    except Exception:
        fault = _fault(_found())
        if fault is None:
            raise
        print(f"error: {fault}; {_ADVICE}", file=sys.stderr)
        return 2
    fault = None if getattr(hybrid, "DISTRIBUTION", None) == "hybrid-model-checker" else _fault(_found())
    if fault is not None:
        print(f"error: {fault}; {_ADVICE}", file=sys.stderr)
        return 2
    if "--quiet" not in sys.argv and _mixed(_own()):
        print(
            f"warning: dwave-hybrid has files in {_own()}, too: of the two packages named hybrid the last "
            f"installed one works, and removing either damages it; {_ADVICE}",
            file=sys.stderr,
        )
    return run()


def command() -> int:
    """Begin and end the process of the console script: `main`, and then `hybrid.app.cli.signals.end`."""
    status = main()
    try:
        from hybrid.app.cli.signals import end
    except ImportError:
        return status  # the package is another one
    return end(status)


# Paths are texts here: an interrupt while `pathlib` is imported would show a traceback.


def _own() -> str:
    """Return where this distribution's package `hybrid` belongs."""
    return os.path.join(os.path.dirname(os.path.realpath(__file__)), "hybrid")


def _mixed(folder: str) -> bool:
    """Return whether another distribution's files are in a folder."""
    return any(os.path.exists(os.path.join(folder, name)) for name in _FOREIGN)


def _found() -> str | None:
    """Return the folder, or the file, that `import hybrid` reads; None if there is none."""
    from importlib.util import find_spec

    try:
        spec = find_spec("hybrid")
    except (ImportError, ValueError):
        # What failed to import leaves nothing to ask for.
        sys.modules.pop("hybrid", None)
        spec = find_spec("hybrid")
    if spec is None or spec.origin is None:
        return None
    path = os.path.realpath(spec.origin)
    return os.path.dirname(path) if os.path.basename(path) == "__init__.py" else path


def _fault(found: str | None) -> str | None:
    """Return what is wrong with the package found; None if it is this distribution's and whole."""
    if found is None:
        return "the package hybrid has lost files: another distribution replaced and removed them"
    if _mixed(found):
        return f"the package hybrid in {found} is that of dwave-hybrid, which has replaced this one's files"
    if found != _own():
        return f"the package hybrid that Python finds first, {found}, is not that of hybrid-model-checker"
    return None

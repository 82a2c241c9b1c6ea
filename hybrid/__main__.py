"""The console script `hybrid`; `python -m hybrid` is the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from hybrid.cli.console import Console

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of the process's own.

    Returns
    -------
    int
        0 everything answered, 1 a property could not be answered (or no memory), 2 wrong usage or
        a model that does not parse or build, 130 interrupted.
    """
    from hybrid.cli.arguments import parse_arguments
    from hybrid.cli.console import Console

    options = parse_arguments(arguments)
    if options.version:
        from hybrid import __version__

        print(__version__)
        return 0
    with Console(options.quiet) as console:
        return _guarded(options, console)


def _guarded(options: Namespace, console: Console) -> int:
    """Run the chosen command; turn every expected failure into a message and a status."""
    from importlib import import_module

    from hybrid.options import OptionError
    from mtbdd.language import LanguageError

    try:
        command = import_module(f"hybrid.cli.{options.command.replace('-', '_')}")
        return int(command.run(options, console))
    except LanguageError as error:
        for line in str(error).splitlines():
            console.error(line)
        return 2
    except OptionError as error:
        console.error(str(error))
        return 2
    except MemoryError as error:
        text = str(error) or "not enough memory; choose another --level, or a smaller model"
        console.error(f"out of memory: {text}")
        return 1
    except KeyboardInterrupt:
        console.error("interrupted")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1


if __name__ == "__main__":
    sys.exit(main())

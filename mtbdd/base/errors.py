"""The root of all errors whose message says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Names in messages for what their reader can change: arguments of functions, or options of the command line.
#
# A message is made where a fault is found, without knowledge of the caller.  The command line declares
# itself with `on_command_line`; all other callers call functions.

_asked_there: ContextVar[bool] = ContextVar("asked_there", default=False)

_ARGUMENTS = {"const": "constants", "every": "checkpoint_minutes", "max-iters": "max_iterations"}
"""Arguments that are not named as their option is."""


@contextmanager
def on_command_line() -> Iterator[None]:
    """Name options in all messages that are made in a block."""
    token = _asked_there.set(True)
    try:
        yield
    finally:
        _asked_there.reset(token)


def either(there: str, here: str) -> str:
    """Return the first text on the command line, the second for callers of functions."""
    return there if _asked_there.get() else here


def option(name: str, *values: str | float) -> str:
    """Return an option, or the argument that it stands for.

    `name`: of the option, without dashes in front. `*values`: what may be given, to choose from.

    Examples
    --------
    >>> option("max-iters"), option("method", "jacobi", "jor")
    ('max_iterations', "method='jacobi' or 'jor'")
    >>> with on_command_line():
    ...     option("max-iters"), option("method", "jacobi", "jor")
    ('--max-iters', '--method jacobi or jor')
    """
    argument = _ARGUMENTS.get(name, name.replace("-", "_"))
    there = " or ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    here = " or ".join(f"{value:g}" if isinstance(value, float) else repr(value) for value in values)
    return either(f"--{name} {there}".rstrip(), f"{argument}={here}" if values else argument)


def constants_given(names: Iterable[str], value: str | None = None) -> str:
    """Return the advice how to give values to constants.

    `value`: of each; default the word VALUE in its place.

    Examples
    --------
    >>> constants_given(["N", "p"]), constants_given(["N"], "1:10")
    ("constants={'N': VALUE, 'p': VALUE}", "constants={'N': '1:10'}")
    >>> with on_command_line():
    ...     constants_given(["N", "p"])
    '--const N=VALUE,p=VALUE'
    """
    given = list(names)
    there = ",".join(f"{name}={value or 'VALUE'}" for name in given)
    here = ", ".join(f"{name!r}: {'VALUE' if value is None else repr(value)}" for name in given)
    return either(f"--const {there}", f"constants={{{here}}}")


class HybridError(Exception):
    """A text, an option, a property or a file that cannot be used, or work that did not end with an answer.

    The message says what was expected, what came and what to do.  Other exceptions, but for `MemoryError` and
    `KeyboardInterrupt`, are defects of the program.
    """


class NumberingError(HybridError, OverflowError):
    """More than 2^62 states, which indices of 64 bits cannot number, where numbers are needed."""


class PackageError(HybridError, ImportError, ValueError):
    """A BDD package that does not exist, or is not installed."""

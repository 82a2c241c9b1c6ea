"""The root of all errors that tell a user what to do."""

from __future__ import annotations


class HybridError(Exception):
    """A text, an option, a property or a file that cannot be used, or work that did not end with an answer.

    The message says what was expected, what came and what to do.  Other exceptions, but for `MemoryError` and
    `KeyboardInterrupt`, are defects of the program.
    """

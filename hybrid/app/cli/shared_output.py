"""A file that processes of one command write together: tried by the first one, and told to all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile, told_of
from hybrid.base.errors import OptionError
from mtbdd.base.communicator import Communicator


def first_does(communicator: Communicator, run: Callable[[], None]) -> None:
    """Let the first process do something; all come here at once.

    Raises
    ------
    OptionError
        What it fails for; in all processes alike.
    """
    failure: OptionError | None = None
    if communicator.rank == 0:
        try:
            run()
        except OptionError as error:
            failure = error
    text = communicator.first_text(None if failure is None else str(failure))
    if text is not None:
        raise OptionError(text) from failure


class SharedOutput:
    """An `OutputFile` that the first process has, written to by all; all of them make it at once.

    Parameters
    ----------
    path : str
        What was asked for.
    option : str
        The option that asked for it, for messages.
    communicator : Communicator

    Attributes
    ----------
    temporary : Path
        What to write to, the same file for all.

    Raises
    ------
    OptionError
        The file cannot be written, or is a device or a pipe, which takes no pieces; in all processes alike.
    """

    def __init__(self, path: str, option: str, communicator: Communicator) -> None:
        self._path, self._option, self._communicator = path, option, communicator
        self._file: OutputFile | None = None
        first_does(communicator, self._open)
        chosen = None if self._file is None else str(self._file.temporary.absolute())
        self.temporary = Path(communicator.first_text(chosen) or "")

    def told(self) -> AbstractContextManager[None]:
        """Turn errors of the operating system, which all have alike, into errors of the option."""
        return told_of(self._path, self._option)

    def publish(self, console: Console | None = None) -> None:
        """Let the temporary file take the place of what is there; see `OutputFile.publish`."""

        def replaced() -> None:
            if self._file is not None:
                self._file.publish(console)

        first_does(self._communicator, replaced)

    def discard(self) -> None:
        """Remove the temporary file if it was not published."""
        if self._file is not None:
            self._file.discard()

    def _open(self) -> None:
        self._file = OutputFile(self._path, self._option)
        if self._file.temporary == self._file.target:
            raise OptionError(
                f"{self._option}: expected a file that several processes can write to, got {self._path}"
            )

"""Files that a command writes: tried before the work begins, and replaced when they are whole."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from hybrid.app.cli.console import Console
from hybrid.base.errors import OptionError

# Files that a command writes: none of them may be one that it reads.

_READ = ("model", "property")
_WRITTEN = (
    "csv", "values", "scheduler", "certificate", "plot", "plot_convergence", "diagram", "output", "to",
)  # fmt: skip


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Refuse an output that is the model, the properties, or another output."""
    # Input and output may be the same file: it is read before, and replaced at once.
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


class OutputFile:
    """A file under a temporary name in the same folder, until it takes the place of what is there.

    On failure an older file stays as it was. Devices and pipes are written to as they are. Where the
    folder takes no new files, the temporary one lies elsewhere and is copied in the end. `temporary` exists,
    is empty, and has the suffix of `path`; an `OptionError` names the option that requested what cannot be
    written.
    """

    def __init__(self, path: str, option: str) -> None:
        self._path, self._option = path, option
        self._target = Path(path)
        self._is_open = True
        with self.told():
            self.temporary = self._choose()

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Turn errors of the operating system into errors of the option."""
        with told_of(self._path, self._option):
            yield

    @property
    def target(self) -> Path:
        """The file itself, without symbolic links."""
        return self._target

    def publish(self, console: Console | None = None) -> None:
        """Let the temporary file, closed by its writer, take the place of what is there; once.

        The console reports that the file was written, unless it is a device or a pipe. Where it cannot
        be, what is there stays.
        """
        from hybrid.analysis.run.state_files import to_disk

        if not self._is_open:
            return
        if self.temporary != self._target:
            with self.told():
                to_disk(self.temporary)
                try:
                    self.temporary.replace(self._target)
                except OSError:
                    # A file mounted by itself, or a folder that takes no new files.
                    import shutil

                    shutil.copyfile(self.temporary, self._target)
                    self.temporary.unlink(missing_ok=True)
            if console is not None:
                console.wrote(self._path)
        self._is_open = False

    def discard(self) -> None:
        """Remove the temporary file if it was not published."""
        if self._is_open and self.temporary != self._target:
            self.temporary.unlink(missing_ok=True)
        self._is_open = False

    def _choose(self) -> Path:
        """Return where to write to."""
        try:
            found = self._target.stat()
        except FileNotFoundError:
            found = None
        if found is not None:
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not os.access(self._target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if not stat.S_ISREG(found.st_mode) or _is_standard_stream(found):
                return self._target
        self._target = Path(os.path.realpath(self._target))
        name = f".{self._target.stem[:80]}.{os.urandom(4).hex()}{self._target.suffix[:40]}"
        temporary = self._target.with_name(name)
        try:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except OSError:
            if found is None:
                raise
            import tempfile

            descriptor, elsewhere = tempfile.mkstemp(suffix=self._target.suffix)
            os.close(descriptor)
            return Path(elsewhere)
        if found is not None:
            temporary.chmod(stat.S_IMODE(found.st_mode))
        return temporary


@contextlib.contextmanager
def output_of(path: str | None, option: str) -> Iterator[OutputFile | None]:
    """Yield the file that an option asks for, tried before the work begins; None where it is not given."""
    if path is None:
        yield None
        return
    with OutputFile(path, option) as file:
        yield file


@contextlib.contextmanager
def told_of(path: str, option: str) -> Iterator[None]:
    """Turn errors of the operating system into errors of an option that asks for a file."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{option}: cannot write {path}: {error.strerror or error}") from None


def _is_standard_stream(found: os.stat_result) -> bool:
    """Return whether this process prints to the file: its output would go to the replaced one."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(found, os.fstat(descriptor)):
                return True
    return False

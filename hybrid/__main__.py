"""The console script `hybrid`; `python -m hybrid` is the same."""

from __future__ import annotations

import gc
import os
import sys

from hybrid.app.cli.signals import Interrupted, Signals

# `typing.TYPE_CHECKING` without importing `typing`, during which an interrupt would show a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from argparse import Namespace

    from hybrid.app.cli.console import Console


_YOUNG = 10_000
"""Objects made and kept before garbage is looked for: arrays are freed without, and few cycles hold any."""

_TEXTS = ("completion", "man")
"""Commands whose output comes from the parser alone."""

_BESIDE = {"explore": "levels", "info": "export", "plot_matrix": "levels"}
"""Commands whose function, `run_` and their name, stands in the module of another one."""

_ON_DEVICES = ("auto", "gpu")
"""Backends that use a device where there is one."""

_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
"""Variables in which Open MPI, MPICH and Slurm tell a process its number among those of its machine."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of the process's own, which is the command's alone without them.

    Returns
    -------
    int
        0 everything answered, 1 a property could not be answered (or no memory), 2 wrong usage, a model that
        does not parse or build or a file that cannot be written, 130 interrupted, 143 terminated.
    """
    alone = arguments is None
    if alone:
        # Loading makes much and no garbage; looking for some again and again takes a tenth of a start.
        gc.disable()
    with Signals(is_last=alone) as signals:
        from hybrid.app.cli.arguments import parse_arguments

        options = parse_arguments(arguments)
        if options.version:
            from hybrid.app.cli.manual import print_versions

            return print_versions(options.json_version)
        if options.command in _TEXTS:
            from hybrid.app.cli.manual import print_text

            return print_text(options)
        from hybrid.app.cli.console import Console
        from hybrid.app.cli.limited_run import run_limited
        from mtbdd.base.errors import on_command_line

        with on_command_line(), Console(options.quiet, signals, options.verbose) as console:
            return run_limited(lambda: _guarded(options, console, signals, alone), options, console)


def _guarded(options: Namespace, console: Console, signals: Signals, alone: bool) -> int:
    """Run the chosen command; turn every expected failure into a message and a status."""
    from importlib import import_module

    from hybrid.app.cli.console import StreamError
    from hybrid.app.cli.limited_run import limited_threads
    from hybrid.base.errors import CheckpointError, HybridError, InterchangeError, OptionError
    from mtbdd.base.errors import NumberingError, PackageError
    from mtbdd.base.lazy_loading import import_numpy_alone
    from mtbdd.language.errors import LanguageError

    try:
        _begin_device(options)
        with limited_threads(options.threads, alone):
            if alone:
                import_numpy_alone()
            name = options.command.replace("-", "_")
            module = import_module(f"hybrid.app.cli.{_BESIDE.get(name, name)}")
            run = getattr(module, f"run_{name}" if name in _BESIDE else "run")
            if alone:
                gc.freeze()  # loaded modules stay
                gc.set_threshold(_YOUNG)
                gc.enable()
            signals.loaded()
            return int(run(options, console))
    except LanguageError as error:
        from hybrid.app.cli.excerpts import Excerpts

        excerpts = Excerpts(options)
        for line in str(error).splitlines():
            console.error(excerpts.added(line))
        return 2
    except InterchangeError as error:
        from hybrid.app.cli.excerpts import Excerpts

        console.error(Excerpts(options).added(str(error)))
        return 2
    except (CheckpointError, NumberingError, OptionError, PackageError, StreamError) as error:
        console.error(str(error))
        return 2
    except MemoryError as error:
        text = str(error) or "not enough memory; choose another --level, or a smaller model"
        console.error(text if isinstance(error, HybridError) else f"out of memory: {text}")
        return 1
    except KeyboardInterrupt as error:
        found = error if isinstance(error, Interrupted) else Interrupted(2)
        console.ended(found.word)
        return found.status
    except BrokenPipeError:
        return 1
    except Exception:
        # While extension modules load, an interrupt becomes another exception.
        if signals.received is None:
            raise
        console.error(signals.received.word)
        return signals.received.status


def _begin_device(options: Namespace) -> None:
    """Have CUDA start beside the imports where the command will ask for a device, the first one.

    Each of several processes starts the card of its number, which the launcher gives; without one, none.
    """
    backend, card = getattr(options, "backend", None), 0
    if backend not in _ON_DEVICES or getattr(options, "list", False):
        return
    if getattr(options, "distributed", False):
        number = next((os.environ[name] for name in _LOCAL_RANKS if name in os.environ), "")
        if backend != "gpu" or not number.isdecimal():
            return
        card = int(number)
    from gpu_kernels import begin_start

    begin_start(card)


def _is_alone() -> bool:
    """Return whether the process is ``python -m hybrid``, and not a program that runs this module."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "hybrid.__main__"


if __name__ == "__main__":
    status = main()
    if _is_alone():
        from hybrid.app.cli.signals import end

        status = end(status)
    sys.exit(status)

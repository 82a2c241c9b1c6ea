"""`hybrid check --spill`: long arrays in files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.base.errors import OptionError
from hybrid.checking.on_disk import arrays_on_disk

_REFUSED = ("distributed", "certificate", "bisimulation")
"""Options whose work lies elsewhere than in arrays, or in several processes."""


@contextmanager
def arrays_spilt(options: argparse.Namespace) -> Iterator[None]:
    """Have long arrays of the command lie in the folder that it was given, if it was given one.

    Raises
    ------
    OptionError
        No file can be made there, or an option is given that does not go with it.
    """
    refused = [name for name in _REFUSED if options.spill is not None and getattr(options, name)]
    if refused:
        raise OptionError(f"--spill: {' and '.join(f'--{name}' for name in refused)} is not offered with it")
    with arrays_on_disk(options.spill):
        yield

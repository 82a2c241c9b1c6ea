"""Schedulers of several points in one file."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hybrid.analysis.choice_table import SUFFIXES
from hybrid.analysis.multi.endings import Endings
from hybrid.analysis.multi.queries import Found
from hybrid.analysis.scheduler import Scheduler
from hybrid.errors import UnsupportedError
from hybrid.run.state_files import check_suffix


@dataclass(frozen=True, eq=False)
class PointSchedulers:
    """Deterministic schedulers with memory, one a point, and how they are mixed.

    Attributes
    ----------
    schedulers : tuple of Scheduler
        Memoryless ones of the product: the variable before the model's is what is remembered.
    shares : tuple of (Fraction or None)
        With which probability to play each of them, drawn once at the start; None where none is asked for.
    """

    schedulers: tuple[Scheduler, ...]
    shares: tuple[Fraction | None, ...]

    def __repr__(self) -> str:
        return f"<PointSchedulers of {len(self.schedulers)} points>"

    def write(self, path: str | Path) -> None:
        """Write what every scheduler chooses, to a file that ends with ``.csv`` or ``.json``.

        CSV: the number of the point from 1, its share, the memory and the state's variables, the action
        (empty if unlabelled), the layer, the command.  JSON: an array of objects with `point`, `share`, and
        `choices`, an array of objects with `state`, `action`, `layer` and `command`.

        Raises
        ------
        OptionError
            The name has another suffix.
        OSError
            The file cannot be written.
        """
        check_suffix(path, "path", SUFFIXES)
        numbered = enumerate(zip(self.schedulers, self.shares, strict=True), start=1)
        with Path(path).open("w", newline="", encoding="utf-8") as lines:
            if Path(path).suffix == ".json":
                found = [
                    {
                        "point": number,
                        "share": None if share is None else float(share),
                        "choices": list(scheduler.records()),
                    }
                    for number, (scheduler, share) in numbered
                ]
                json.dump(found, lines)
                return
            writer = csv.writer(lines)
            names = self.schedulers[0].variables() if self.schedulers else []
            writer.writerow(["point", "share", *names, *Scheduler.columns])
            for number, (scheduler, share) in numbered:
                head = [number, "" if share is None else float(share)]
                writer.writerows([*head, *cells] for cells in scheduler.cells())


def point_schedulers(ends: Endings | None, found: Found) -> PointSchedulers:
    """Return the schedulers of all points.

    Raises
    ------
    UnsupportedError
        Some objective looks at what happens again and again: there a scheduler needs more memory than the
        product has.
    """
    search = found.search
    if search is None or ends is None:
        return PointSchedulers((), ())
    if ends.space.conditions:
        raise UnsupportedError(
            "multi: schedulers are given for objectives that runs decide once and for all, not for what has "
            "to happen again and again; ask without a scheduler"
        )
    makers = search.weighing.schedulers
    made = tuple(makers.scheduler(point.policy) for point in search.points)
    shares = [found.shares.get(i, Fraction(0)) if found.shares else None for i in range(len(made))]
    return PointSchedulers(made, tuple(shares))

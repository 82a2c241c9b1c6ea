"""Schedulers of several points in one file."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hybrid.analysis.choice_table import SUFFIXES
from hybrid.analysis.memory_scheduler import MemoryScheduler
from hybrid.analysis.multi.endings import Endings
from hybrid.analysis.multi.queries import Found
from hybrid.analysis.multi.staying import staying_scheduler
from hybrid.analysis.run.state_files import check_suffix
from mtbdd.build.model import SymbolicModel


@dataclass(frozen=True, eq=False)
class PointSchedulers:
    """Deterministic schedulers with memory, one a point, and how they are mixed.

    Attributes
    ----------
    schedulers : tuple of MemoryScheduler
        Of the model: they remember what the automata have read, and where they have stopped to stay.
    shares : tuple of (Fraction or None)
        With which probability to play each of them, drawn once at the start; None where none is asked for.
    """

    schedulers: tuple[MemoryScheduler, ...]
    shares: tuple[Fraction | None, ...]

    def __repr__(self) -> str:
        return f"<PointSchedulers of {len(self.schedulers)} points>"

    def write(self, path: str | Path) -> None:
        """Write what every scheduler chooses, to a file that ends with ``.csv`` or ``.json``.

        CSV: the number of the point from 1, its share, and the columns of `MemoryScheduler.write`: the
        state's variables, the memory, the action (empty if unlabelled), the layer, the next memory, the
        command.
        JSON: an array of objects with `point`, `share`, and `choices`, an array of objects with `state`,
        `memory`, `action`, `layer`, `next` and `command`.

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
            writer.writerow(["point", "share", *names, *MemoryScheduler.columns])
            for number, (scheduler, share) in numbered:
                head = [number, "" if share is None else float(share)]
                writer.writerows([*head, *cells] for cells in scheduler.cells())


def point_schedulers(owner: SymbolicModel, ends: Endings | None, found: Found) -> PointSchedulers:
    """Return the schedulers of all points of an MDP."""
    search = found.search
    if search is None or ends is None:
        return PointSchedulers((), ())
    made = tuple(staying_scheduler(owner, ends, point) for point in search.points)
    shares = [found.shares.get(i, Fraction(0)) if found.shares else None for i in range(len(made))]
    return PointSchedulers(made, tuple(shares))

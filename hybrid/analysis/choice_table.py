"""What schedulers choose, as a table: files in CSV and JSON, and the first rows for a notebook."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from hybrid.analysis.run.state_files import check_suffix
from hybrid.base.notebook import block, paragraph, rows_table

SUFFIXES = (".csv", ".json")
"""Of files that schedulers are written to."""

MOST_TOLD = 1_000_000
"""Rows beyond which a glance at the table takes too long: their number is told, and no more."""

_SHOWN = 10  # rows in a notebook


class ChoiceTable(ABC):
    """A table with a row a state, or a row a state and memory.

    Attributes
    ----------
    columns : tuple of str
        What a row has beside the state's variables.
    """

    columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record a row: `state`, by variable name, and the columns."""

    @abstractmethod
    def variables(self) -> Sequence[str]:
        """Return the names of the state's variables."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of rows."""

    def write(self, path: str | Path) -> None:
        """Write the table.

        Parameters
        ----------
        path : str or Path
            ``.csv``: a column a variable, then `columns`, empty for None.  ``.json``: an array of records.

        Raises
        ------
        OptionError
            The name has another suffix.
        OSError
            The file cannot be written.
        """
        check_suffix(path, "path", SUFFIXES)
        with Path(path).open("w", newline="", encoding="utf-8") as lines:
            if Path(path).suffix == ".json":
                lines.write("[")
                for place, record in enumerate(self.records()):
                    lines.write(("," if place else "") + "\n" + json.dumps(record))
                lines.write("\n]\n")
                return
            writer = csv.writer(lines)
            writer.writerow([*self.variables(), *self.columns])
            writer.writerows(self.cells())

    def cells(self) -> Iterator[list[Any]]:
        """Yield the cells of every row."""
        for record in self.records():
            values = [str(value).lower() for value in record["state"].values()]
            rest = (record[name] for name in self.columns)
            yield [*values, *("" if cell is None else cell for cell in rest)]

    def _repr_html_(self) -> str:
        title = paragraph(repr(self).strip("<>"))
        if self.size > MOST_TOLD:
            return block("scheduler", title)
        rows = list(islice(self.cells(), _SHOWN))
        header = [*self.variables(), *self.columns]
        return block("scheduler", title, rows_table(header, rows, self.size - len(rows)))

"""The list of mutations: TOML files next to this one, a table `[[mutation]]` each.

file    path from the root of the repository
old     exact text that stands there once
new     what stands there instead
breaks  what goes wrong then
lemma   the statement or the reason that the line is there for
tests   what pytest runs to notice: files, or tests in files; with -k expressions after a space
equal   only where no test can notice: why the mutated program does the same
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
FIELDS = {"file", "old", "new", "breaks", "lemma", "tests"}


@dataclass(frozen=True)
class Mutation:
    """One mutation; see the fields above. `name` is the file's, with a number within its list."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    lemma: str
    tests: tuple[str, ...]
    equal: str | None = None

    def problem(self, root: Path = ROOT) -> str | None:
        """Say why the mutation does not apply to a tree; None if it does."""
        path = root / self.file
        if not path.is_file():
            return f"{self.name}: there is no file {self.file}; name the file that the line has moved to"
        count = path.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return (
                f"{self.name}: its text stands {count} times in {self.file}, not once; write the line down "
                f"as it is, or take the mutation out if what it breaks is gone ({self.breaks}): {self.old!r}"
            )
        for test in self.tests:
            file, _, name = test.partition(" ")[0].partition("::")
            function = name.rpartition("::")[2].partition("[")[0]
            text = (root / file).read_text(encoding="utf-8") if (root / file).is_file() else ""
            if not (root / file).exists() or (function and f"def {function}(" not in text):
                return f"{self.name}: there is no test {test}; name the one that has taken its place"
            left_out = rf"^ *@pytest\.mark\.nightly\n(?:(?! *def ).*\n)*? *def {function}\("
            if function and re.search(left_out, text, re.MULTILINE):
                return f"{self.name}: {test} is nightly; name one that `make test` runs"
        return None

    def apply(self, root: Path) -> None:
        """Write the mutated file."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def read_mutations(folder: Path = FOLDER) -> list[Mutation]:
    """Return all mutations of all lists, in order.

    Raises
    ------
    ValueError
        If a table lacks a field, has one too many, or changes nothing.
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
        for number, table in enumerate(tables, start=1):
            name = f"{path.stem}-{number:02d}"
            if not FIELDS <= set(table) <= FIELDS | {"equal"}:
                raise ValueError(f"{name}: expected the fields {sorted(FIELDS)}, got {sorted(table)}")
            if table["old"] == table["new"]:
                raise ValueError(f"{name}: the new text is the old one")
            found.append(Mutation(name, **{**table, "tests": tuple(table["tests"])}))
    return found

"""`hybrid examples`: the models that come with the package, to look at and to copy."""

from __future__ import annotations

import argparse
import difflib
import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path

from hybrid.app.cli.console import Console
from hybrid.base.errors import OptionError
from hybrid.base.installing import package_folder

SIZES = {
    "biased_die": "N=9,first=0",
    "brp": "N=64,MAX=5",
    "cluster": "N=8",
    "coin": "K=2",
    "disk": "Q=6",
    "fms": "n=3",
    "herman": "",
    "inventory": "M=12",
    "jobs": "N=2",
    "kanban": "t=3",
    "mutex": "M=2",
    "philosophers": "",
    "polling": "",
    "quick_sort": "limit=12",
    "relay": "H=3,M=2",
    "servers": "N=20",
    "tandem": "c=15",
    "tasks": "delay=0.125",
    "teams": "",
    "wakeup": "K=2",
}
"""Examples by name, with constants with which they are answered in a second or so."""


@dataclass(frozen=True)
class Example:
    """A model that comes with the package, in a sentence, with constants to begin with and its two files."""

    name: str
    about: str
    constants: str
    files: tuple[str, str]


def run(options: argparse.Namespace, console: Console) -> int:
    """List or copy; return the exit status."""
    found = {example.name: example for example in examples()}
    for name in options.names:
        if name not in found:
            near = difflib.get_close_matches(name, found, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise OptionError(f"examples: there is no {name}; {hint}they are {', '.join(found)}")
    chosen = [found[name] for name in dict.fromkeys(options.names or found)]
    if options.to is not None:
        written = _copied(chosen, Path(options.to), options.force)
        if options.json:
            console.print(json.dumps({"written": [str(path) for path in written]}))
        else:
            for path in written:
                console.print(str(path))
        return 0
    if options.json:
        folder = str(examples_folder())
        console.print(json.dumps({"folder": folder, "examples": [asdict(example) for example in chosen]}))
        return 0
    for example in chosen:
        console.print(f"{example.name:<12}  {example.about}")
        console.print(f"{'':<12}  {_command(example)}")
    console.print("\nhybrid examples NAME... --to FOLDER copies models and properties")
    return 0


def examples() -> list[Example]:
    """Return the examples by name, from the first lines of their texts."""
    found = []
    for name, constants in SIZES.items():
        files = f"{name}.prism", f"{name}.props"
        try:
            text = (examples_folder() / files[0]).read_text(encoding="utf-8")
        except OSError as error:
            raise OptionError(f"examples: they are not installed: {error}") from None
        lines = [line.removeprefix("//").strip() for line in text.splitlines()[:2]]
        # A sentence may go on in the second line.
        first = lines[0] if lines[0].endswith(".") else " ".join(lines)
        found.append(Example(name, first.partition(". ")[0].rstrip(".") + ".", constants, files))
    return found


def examples_folder() -> Path:
    """Return where the examples are: within the package, or in a checkout beside it."""
    package = package_folder()
    within = package / "examples"
    return within if within.is_dir() else package.parent / "examples"


def _command(example: Example) -> str:
    given = f" --const {example.constants}" if example.constants else ""
    return f"hybrid check {example.files[0]} {example.files[1]}{given}"


def _copied(chosen: list[Example], folder: Path, force: bool) -> list[Path]:
    """Copy files, none of them if one is there already; return where they are."""
    targets = [folder / file for example in chosen for file in example.files]
    there = [path for path in targets if path.exists()]
    if there and not force:
        names = ", ".join(shlex.quote(str(path)) for path in there)
        raise OptionError(f"--to: there already: {names}; give --force to replace, or another folder")
    source = examples_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in targets:
            path.write_bytes((source / path.name).read_bytes())
    except OSError as error:
        raise OptionError(f"--to: cannot write to {folder}: {error.strerror or error}") from None
    return targets

"""The questions of `whole_answers`: the rows of the thesis's tables, and decision processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.library.models import EXAMPLES, ROOT, example_file
from benchmarks.published.thesis import STUDIES, THESIS

__all__ = ["Question", "questions"]


@dataclass(frozen=True)
class Question:
    """A property of a model of a size.

    Attributes
    ----------
    name : str
        Model and size.
    place : int
        In the tables, from 0.
    model, properties : Path
        Files.
    constants : str
        Of the model.
    options : tuple of str
        Further arguments of `hybrid check`: which property of the file, and the file's own constants.
    cost : float
        What to measure the cheap ones first by; of no unit.
    """

    name: str
    place: int
    model: Path
    properties: Path
    constants: str
    options: tuple[str, ...]
    cost: float

    @property
    def info_arguments(self) -> tuple[str, ...]:
        """Arguments of `hybrid info`."""
        return (str(self.model), *self._constants)

    @property
    def check_arguments(self) -> tuple[str, ...]:
        """Arguments of `hybrid check`."""
        return (str(self.model), str(self.properties), *self._constants, *self.options)

    def shown(self, models: Path | None) -> str:
        """Return the arguments of `hybrid check` without the folders of this machine."""
        files = (_below(path, models) for path in (self.model, self.properties))
        return " ".join([*files, *self._constants, *self.options])

    @property
    def _constants(self) -> tuple[str, ...]:
        return ("--const", self.constants) if self.constants else ()


_PROCESSES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("relay 100", "relay.prism", "relay.props", "H=100,M=100", ("--property", "least")),
    ("consensus 4", "consensus/coin4.nm", "disagree.pctl", "K=4", ()),
    ("csma 2 6", "csma/csma2_6.nm", "time_max.pctl", "", ()),
    ("relay 300", "relay.prism", "relay.props", "H=300,M=300", ("--property", "least")),
    ("firewire 36", "firewire/firewire.nm", "time_max.pctl", "delay=36", ()),
    ("zeroconf 20 4", "zeroconf/zeroconf.nm", "correct_max.pctl", "N=20,K=4,reset=false", ()),
    ("wlan 4", "wlan/wlan4.nm", "cost_max.pctl", "COL=0", ()),
    ("phil-nofair 6", "phil/phil-nofair6.nm", "phil.pctl", "", ("--prop", "3", "--const", "K=10")),
    ("consensus 6", "consensus/coin6.nm", "disagree.pctl", "K=2", ()),
    ("csma 3 4", "csma/csma3_4.nm", "all_before_max.pctl", "", ()),
    (
        "dining_crypt 8",
        "dining_crypt/dining_crypt8.nm",
        "anonymity.pctl",
        "",
        ("--prop", "2", "--const", "k=7"),
    ),
    ("leader 7", "leader_async/leader7.nm", "leader.pctl", "", ("--prop", "6", "--const", "K=10")),
)
"""Name, model, property file beside it, constants of the model and options, by number of states.

Models without a folder are examples; those with one are not in the repository.
"""


def questions(models: Path | None, written: Path) -> list[Question]:
    """Return the questions in the order of the tables.

    Parameters
    ----------
    models : Path or None
        Folder with a folder ``mdp`` of published models; without it these are left out.
    written : Path
        Folder for models that a generator writes.
    """
    found: list[Question] = []
    for study, of_study in STUDIES.items():
        for size in of_study.sizes:
            path, values = example_file(of_study.model, size, written, **of_study.constants)
            found.append(
                Question(
                    f"{study} {size}",
                    len(found),
                    path,
                    EXAMPLES / f"{of_study.model}.props",
                    ",".join(f"{name}={value}" for name, value in values.items()),
                    ("--property", of_study.prop),
                    THESIS[study][size][0],
                )
            )
    for number, (name, model, properties, constants, options) in enumerate(_PROCESSES):
        if "/" in model and models is None:
            continue
        folder = EXAMPLES if models is None or "/" not in model else models.resolve() / "mdp"
        path, place = folder / model, sum(map(len, THESIS.values())) + number
        question = Question(name, place, path, path.with_name(properties), constants, options, number)
        found.append(question)
    return found


def _below(path: Path, models: Path | None) -> str:
    """Return a path from the root of the repository or from the folder of models, or its name alone."""
    for folder in (ROOT, *(() if models is None else (models.resolve(),))):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return path.name

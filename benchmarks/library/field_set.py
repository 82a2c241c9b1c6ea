"""Questions of a folder in the layout of the Quantitative Verification Benchmark Set.

An index.json describes a model, or is a list of such descriptions: ``short``, ``type``, ``parameters``,
``properties``, ``files`` and ``results``. What the set does not have may stand in it as well: states and
values beside the constants that they belong to. Models without a source in the PRISM language are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

__all__ = ["FieldQuestion", "Reference", "field_questions"]

_SOURCES = (".prism", ".pm", ".nm", ".sm")
_PROPERTIES = (".props", ".prctl", ".pctl", ".csl")

Json = dict[str, Any]


@dataclass(frozen=True)
class Reference:
    """A value that the set has.

    Attributes
    ----------
    value : Fraction
        1 and 0 of what is true and false.
    exact : bool
        It is one of rational numbers; others are as precise as the tool that found them.
    """

    value: Fraction
    exact: bool


@dataclass(frozen=True)
class FieldQuestion:
    """A property of a model with its constants.

    Attributes
    ----------
    model, prop : str
        Their names; that of an instance is the model's with the values of its parameters.
    instance : str
    type : str
        ``dtmc``, ``ctmc``, ``mdp`` or another.
    source, properties : Path
        Files in the PRISM language.
    constants : str
        As ``--const`` takes them; empty without any.
    states : int or None
        Number of states that the set tells; a power of ten where it tells no more.
    reference : Reference or None
    """

    model: str
    instance: str
    prop: str
    type: str
    source: Path
    properties: Path
    constants: str
    states: int | None
    reference: Reference | None

    @property
    def name(self) -> str:
        """Instance and property."""
        return f"{self.instance} {self.prop}"

    @property
    def shown(self) -> str:
        """Arguments of `hybrid check`, without the folders of this machine."""
        words = [self.source.name, self.properties.name]
        words += ["--const", self.constants] if self.constants else []
        return " ".join([*words, "--property", self.prop])


def field_questions(folder: Path) -> list[FieldQuestion]:
    """Return the questions of all models below a folder, in the order of their files.

    Raises
    ------
    ValueError
        If there is no index.json, or one that does not describe a model.
    """
    indices = sorted(folder.rglob("index.json"))
    if not indices:
        raise ValueError(f"{folder}: expected an index.json in it or below it")
    found = []
    for index in indices:
        described = json.loads(index.read_text(encoding="utf-8"))
        for model in described if isinstance(described, list) else [described]:
            try:
                found += list(_of_model(model, index.parent))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{index}: expected the description of a model: {error!r}") from None
    return found


def _of_model(model: Json, folder: Path) -> Iterator[FieldQuestion]:
    """Yield the questions of a model."""
    results = [_read(folder / path) for path in model.get("results", ()) if isinstance(path, str)]
    for file in model["files"]:
        originals = file.get("original-file", ())
        originals = [originals] if isinstance(originals, str) else originals
        paths = [folder / name for name in (*originals, file["file"])]
        source = next((path for path in paths if path.suffix in _SOURCES and path.exists()), None)
        properties = next((path for path in paths if path.suffix in _PROPERTIES and path.exists()), None)
        if source is None or properties is None:
            continue
        fixed = _values(file.get("file-parameter-values", ()))
        for case in file.get("open-parameter-values") or [{}]:
            chosen = _values(case.get("values", ()))
            parts = _in_order(model.get("parameters", ()), fixed | chosen)
            own = [
                one for one in results
                if Path(one.get("file", "")).name == Path(file["file"]).name
                and _values(one.get("open-parameter-values", ())) == chosen
            ]  # fmt: skip
            for prop in model["properties"]:
                name = prop["name"] if isinstance(prop, dict) else prop
                yield FieldQuestion(
                    model=model["short"],
                    instance=f"{model['short']} {'-'.join(parts)}".rstrip(),
                    prop=name,
                    type=model["type"].lower(),
                    source=source,
                    properties=properties,
                    constants=",".join(f"{key}={value}" for key, value in chosen.items()),
                    states=_states(case.get("states", ())),
                    reference=_reference(name, [case.get("results", ()), *(one["data"] for one in own)]),
                )


def _read(path: Path) -> Json:
    """Return a file of results; one without any where it is missing."""
    found: Json = {"data": []}
    if path.exists():
        found |= json.loads(path.read_text(encoding="utf-8"))
    return found


def _values(given: Any) -> dict[str, str]:
    """Return values of parameters by name, spelt as the PRISM language does."""
    return {
        one["name"]: str(one["value"]).lower() if isinstance(one["value"], bool) else str(one["value"])
        for one in given
    }


def _in_order(parameters: Any, values: dict[str, str]) -> list[str]:
    """Return values in the order of the model's parameters, then the others."""
    names = [one["name"] if isinstance(one, dict) else one for one in parameters]
    order = dict.fromkeys(name for name in names if name in values)
    return [values[name] for name in (order | dict.fromkeys(values))]


def _states(told: Any) -> int | None:
    """Return a number of states, an exact one if there is one."""
    for one in told:
        if "number" in one:
            return int(one["number"])
    return next((10 ** int(one["order"]) for one in told if "order" in one), None)


def _reference(prop: str, results: list[Any]) -> Reference | None:
    """Return the value of a property from lists of results, an exact one if there is one."""
    all_values = (
        _value(one["value"]) for several in results for one in several
        if one.get("property") == prop and one.get("value") is not None
    )  # fmt: skip
    found = [value for value in all_values if value is not None]
    return next((one for one in found if one.exact), found[0] if found else None)


def _value(value: Any) -> Reference | None:
    """Return a value: true or false, a number, a text such as 34900/27, or an object with num and den.

    None where it is infinite or no number.
    """
    try:
        if isinstance(value, dict):
            if "num" in value and "den" in value:
                return Reference(Fraction(int(value["num"]), int(value["den"])), True)
            return Reference(Fraction(value["approx"]), False)
        return Reference(Fraction(value), not isinstance(value, float))
    except (ValueError, OverflowError):
        return None

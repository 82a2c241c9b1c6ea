"""What the command line says about a model: the JSON object and the text."""

from __future__ import annotations

import resource
import sys
from typing import Any

from mtbdd.build.model import SymbolicModel


def model_record(model: SymbolicModel) -> dict[str, Any]:
    """Return the model's part of the JSON output."""
    found = model.statistics
    return {
        "file": model.source.file,
        "type": model.type.value,
        "constants": dict(model.source.constants),
        "states": found.states,
        "transitions": found.transitions,
        "choices": found.choices,
        "build": _build(model),
        "build_seconds": found.seconds,
        "mtbdd_nodes": found.mtbdd_nodes,
        "terminals": found.terminals,
        "peak_rss_mb": peak_rss_mb(),
    }


def _build(model: SymbolicModel) -> str | None:
    """Return how a text was built; None for what is no text."""
    if model.given is None:
        return "symbolic"
    return "explicit" if model.given.is_listed else None


def peak_rss_mb() -> float:
    """Return the greatest resident memory of this process so far, in MB (10^6 bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def model_text(record: dict[str, Any]) -> str:
    """Return the model's part of the plain output."""
    constants = ", ".join(f"{k}={_plain(v)}" for k, v in record["constants"].items())
    lines = [
        f"model        {record['file']} ({record['type']})",
        f"constants    {constants}" if constants else "",
        f"states       {record['states']:,}",
        f"choices      {record['choices']:,}" if record["choices"] is not None else "",
        f"transitions  {record['transitions']:,}",
        f"MTBDD        {record['mtbdd_nodes']:,} nodes, {record['terminals']:,} terminals",
        f"built in     {record['build_seconds']:.3f} s, peak memory {record['peak_rss_mb']:.0f} MB",
    ]
    return "\n".join(line for line in lines if line)


def _plain(value: bool | int | float) -> str:
    """Return a constant as the language writes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"

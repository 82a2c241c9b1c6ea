"""What a model says of itself: a block of text, and the same as HTML with its level curve as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.base.notebook import block, facts_table, facts_text, memory_picture
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.levels.layers import layer_curve
from hybrid.matrix.levels.table import LevelTable

if TYPE_CHECKING:
    from mtbdd.build.model import SymbolicModel
    from mtbdd.diagrams.encoding import EncodedVariable

_MOST_NODES = 200_000  # beyond, the curve takes longer than a glance
_MOST_VARIABLES = 12  # beyond, the others are counted


def text_of(model: SymbolicModel) -> str:
    """Return a model's type, sizes and variables as a block of text."""
    return facts_text(_facts(model))


def html_of(model: SymbolicModel) -> str:
    """Return the same as HTML, with the memory of every injection level as a small picture.

    All text of the model is escaped.  Large diagrams have no picture.
    """
    return block("model", facts_table(_facts(model)), _picture(model))


def _facts(model: SymbolicModel) -> list[tuple[str, str]]:
    """Return what there is to say, by name."""
    found = model.statistics
    facts = [("model", f"{model.type.value}, {model.source.file}")]
    constants = ", ".join(f"{k}={_plain(v)}" for k, v in model.source.constants.items())
    if constants:
        facts.append(("constants", constants))
    facts.append(("states", f"{found.states:,}"))
    if found.choices is not None:
        facts.append(("choices", f"{found.choices:,}"))
    facts.append(("transitions", f"{found.transitions:,}"))
    facts.append(("variables", _variables(model.encoding.shown)))
    for name, known in (
        ("labels", [label.name for label in model.source.labels]),
        ("rewards", [str(n if r.name is None else r.name) for n, r in enumerate(model.source.rewards)]),
    ):
        if known:
            facts.append((name, ", ".join(known)))
    facts.append(("MTBDD", f"{found.mtbdd_nodes:,} nodes, {found.terminals:,} terminals"))
    return facts


def _variables(variables: tuple[EncodedVariable, ...]) -> str:
    """Return variables with their ranges, the first of many."""
    shown = [f"{v.name}: bool" if v.is_bool else f"{v.name}: {v.low}..{v.high}" for v in variables]
    more = len(shown) - _MOST_VARIABLES
    return ", ".join(shown[:_MOST_VARIABLES]) + (f" and {more} more" if more > 0 else "")


def _plain(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _picture(model: SymbolicModel) -> str:
    """Return the level curve as SVG: bytes in tasks by level, on a logarithmic axis."""
    matrices = [model.layer_transitions(k) for k in range(len(model.layers))]
    if not matrices[0].n_levels or sum(sum(matrix.nodes) for matrix in matrices) > _MOST_NODES:
        return ""
    curve: LevelTable = layer_curve(matrices) if model.is_mdp else level_curve(matrices[0])
    return memory_picture([candidate.bytes_worst_case for candidate in curve.levels], curve.min_memory)

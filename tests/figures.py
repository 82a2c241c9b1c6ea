"""Figures in the prose of README and docs: where they stand, and which need no record.

A figure is a number with a unit or a word of measure. One that was measured comes from a record by a marker
(`benchmarks/rendering/figures.py`); what the sources say is computed in `COMPUTED`; what defines, sets an
example or tells of a paper is in `GIVEN`. Code, tables that are rendered, links' addresses and the page of
results are left out.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Callable, Iterator

import hybrid
from benchmarks.rendering.figures import MARKER
from hybrid.base.disk import LEAST_BYTES
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.levels.curve import LevelCurve, level_curve
from hybrid.matrix.space.base import Criterion
from hybrid.solvers.forecast import CHAINS
from mtbdd.language.limit_defaults import DEFAULT_LIMITS
from tests.pages import blocks_of
from tests.source_tree import ROOT

__all__ = ["COMPUTED", "GIVEN", "figures_without_record", "wrong_figures"]

# What stands for a figure from a record: part of a range, but no number.
_RECORDED = "¤"
_NUMBER = r"(?:\d+(?:[,.]\d+)*(?:e[-+]?\d+)?(?:·10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?|10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|2\^\d+|" + _RECORDED + ")"
_WORD = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|(?:a |one |two |three |some )?(?:hundred|thousand|million|billion))"
)
_MEASURE = r"(?:[nµm]?s|min|h|[kMGT]?i?B|[KMGT]iB|%|per cent|percent|×)"
_DURATION = r"(?:(?:nano|micro|milli)?seconds?|minutes?|hours?)"
_COUNTED = (
    _DURATION + r"|days?|(?:kilo|mega|giga|tera)?bytes?|times|products?"
    r"|iterations?|steps?|sweeps?|states?|transitions?|entries|choices|models?|questions?|cases?|values?|answers?"
    r"|non-zeros?|passed|skipped|failed|mutants?|mutations?|tests?|cores?|threads?|processes|cards?|rows?|nodes?"
    r"|blocks?|levels?|kernels?|formulas?|words|files?|points|runs?|paths?|million|billion"
)
_JOINED = r"\s*(?:,|–|-|/|to|and|or|of)\s*"
FIGURE = re.compile(
    rf"(?<![\w.,§^·-]){_NUMBER}(?:{_JOINED}{_NUMBER})*"
    rf"(?:\s*{_MEASURE}(?![\w-])|(?:\s+[a-z]+)?[\s-](?:{_COUNTED})\b)"
    rf"|\b{_WORD}(?:{_JOINED}{_WORD})*\s(?:{_DURATION}|times|gigabytes|megabytes|per cent)\b",
    re.IGNORECASE,
)
"""A number with what it counts or measures; words for numbers only with times and durations."""
_BARE = re.compile(r"(?<![\w.,§^·*/=-])\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+|(?:,\d{3})+)(?!\w|[.,]\d)")
"""A number without a word of measure that is no small whole one."""
_PLACE = re.compile(
    r"(?:sections?|figures?|chapter|tables?|Python|CuPy|Spot|versions?|run on)\s(?:[\d.,\s]|to|and|or)*$"
)
"""What stands before a number that names a place of a text, or a version."""
_CELL = re.compile(r"(?<=\|)[^|A-Za-z`\n]*\d[.,]\d[^|A-Za-z`\n]*(?=\|)")
"""A cell of a table with nothing but decimals or large numbers."""

Source = str | Callable[[], object]
"""What fills a pair of braces: the name of a constant in a module, or what a function returns."""


def value_of(source: Source) -> object:
    """Return what the sources say."""
    if callable(source):
        return source()
    module, _, name = source.partition(":")
    return getattr(importlib.import_module(module), name)


def _power(source: str) -> Callable[[], int]:
    """Return what tells the exponent of a constant that is a power of two."""

    def exponent() -> int:
        found = math.log2(float(str(value_of(source))))
        assert found == int(found), source
        return int(found)

    return exponent


def _percent(source: str) -> Callable[[], str]:
    """Return what tells by how many per cent a factor is above one."""
    return lambda: f"{100 * float(str(value_of(source))) - 100:.0f}"


def _hundredths(source: str) -> Callable[[], str]:
    """Return what tells a share in per cent."""
    return lambda: f"{100 * float(str(value_of(source))):.0f}"


def _limit(name: str) -> Callable[[], int]:
    return lambda: DEFAULT_LIMITS[name]


@functools.cache
def _curve(name: str) -> tuple[int, LevelCurve]:
    """Return the states and the levels of a model of docs/concepts.md."""
    if name == "kanban":
        model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 3})
    else:
        (text,) = (block.text for block in blocks_of("docs/concepts.md") if f"module {name}\n" in block.text)
        model = hybrid.parse(text)
    return model.n_states, level_curve(model.transitions)


def _bytes(name: str, level: int, unit: float = 1.0) -> Callable[[], float]:
    """Return what tells the most bytes of a level."""
    return lambda: float(_curve(name)[1][level].bytes_worst_case / unit)


def _transitions() -> int:
    """Return the entries of the matrix of docs/injection.md, without a diagonal."""
    return hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 3}).n_transitions


def _tasks() -> int:
    """Return into how many tasks its rows are cut."""
    return -(-_curve("kanban")[0] // int(str(value_of("hybrid.matrix.injection.injected:TASK_ROWS"))))


def _answer(name: str, prop: str) -> Callable[[], float]:
    """Return what tells the answer to a property of an example."""

    def answer() -> float:
        lines = (ROOT / f"examples/{name}.props").read_text(encoding="utf-8").splitlines()
        (text,) = (line.partition(": ")[2] for line in lines if line.startswith(f'"{prop}": '))
        found = hybrid.check(hybrid.load(ROOT / f"examples/{name}.prism"), text)
        assert isinstance(found.value, float)
        return found.value

    return answer


def _exponential(source: Source) -> Callable[[], str]:
    """Return what tells a number as it is written in texts, 1e-8."""
    return lambda: f"{float(str(value_of(source))):.0e}".replace("e-0", "e-")


_TOLERANCE = _exponential("hybrid.models.interchange.explicit_model:TOLERANCE")
_EPSILON = _exponential(lambda: Criterion.epsilon)
_ITERATIONS: Source = lambda: Criterion.max_iterations  # noqa: E731

_EVERYWHERE: dict[str, tuple[Source, ...]] = {
    "tasks of {} rows": ("hybrid.matrix.injection.injected:TASK_ROWS",),
    "cut at every {} rows": ("hybrid.matrix.injection.injected:TASK_ROWS",),
}

COMPUTED: dict[str, dict[str, tuple[Source, ...]]] = {
    "docs/bounds.md": {
        "below {:,}, as many as were made": (lambda: CHAINS.late,),
        "neither follows {}": ("hybrid.matrix.space.swept:_WORTH",),
        "after {:,} steps over all rows": ("hybrid.solvers.block_row_bounds:_BEGIN",),
        "from {:,} states, components": ("hybrid.analysis.choice_systems:_LEAST_STATES",),
        "at most {:,} steps are left": ("hybrid.solvers.average_reward:_SINGLE",),
        "at least every {} steps": ("hybrid.matrix.space.base:_MOST",),
        "has grown by {} % more": (_percent("hybrid.solvers.forecast:_FASTER"),),
        "After {:,} products": (lambda: CHAINS.late,),
        "in steps, {} products": (lambda: int(CHAINS.least),),
        "at least {} products": ("hybrid.solvers.krylov_bounds:_LEAST",),
    },
    "docs/building.md": {
        "add up to 1 within {}": (_TOLERANCE,),
        "at most {} bits of variables": ("hybrid.models.modelling.translator:MOST_BITS",),
    },
    "docs/certificates.md": {
        "than {} are refused": (_TOLERANCE,),
    },
    "docs/dd.md": {
        "which may be off by {};": (_TOLERANCE,),
    },
    "docs/formats.md": {
        "add up to 1 within {}": (_TOLERANCE,),
    },
    "docs/modelling.md": {
        "add up to 1 (up to {})": (_TOLERANCE,),
    },
    "docs/from-prism.md": {
        "{} by default, is their distance": (_EPSILON,),
        "{:,} by default |": (_ITERATIONS,),
    },
    "docs/from-storm.md": {
        "{} by default, of the distance": (_EPSILON,),
    },
    "docs/concepts.md": {
        "**tasks** of {} consecutive rows": ("hybrid.matrix.injection.injected:TASK_ROWS",),
        "takes least, {:.0f} bytes, and level 2 takes {:.0f}": (_bytes("ring", 0), _bytes("ring", 2)),
        "has {:,} states and takes": (lambda: _curve("kanban")[0],),
        "{:.2f} MB at level 0 and {:.2f} MB at level 32": (
            _bytes("kanban", 0, 1e6),
            _bytes("kanban", 32, 1e6),
        ),
    },
    "docs/design/symbolic-matrices.md": {
        "stay under {} nodes": ("mtbdd.build.reach:_GROUP_NODES",),
    },
    "docs/distributed.md": {
        "over {:,} states at most": ("hybrid.checking.filters:MOST_GATHERED",),
        "listings of {:,} states at most": ("hybrid.checking.filters:MOST_LISTED",),
        "{} MiB at a time": (lambda: int(str(value_of("hybrid.analysis.run.state_files:_PIECE"))) >> 20,),
    },
    "docs/explicit.md": {
        "up to {:,} distinct values": ("hybrid.matrix.explicit.operators:_DICTIONARY",),
        "more than {} entries on average, or one of more than {}": (
            "hybrid.matrix.explicit.operators:_LONG_MEAN",
            "hybrid.matrix.explicit.operators:_LONG_ROW",
        ),
        "in the {}-byte lines that {} consecutive rows read": (
            "hybrid.matrix.explicit.density:LINE_BYTES",
            "hybrid.matrix.explicit.density:WARP_ROWS",
        ),
    },
    "docs/explorer.md": {
        "at most {} × {} cells": ("hybrid.app.explorer.blocks:CELLS", "hybrid.app.explorer.blocks:CELLS"),
    },
    "docs/gallery.md": {
        "if the first has 0.8 | {:.4f} |": (_answer("teams", "rest"),),
    },
    "docs/glossary.md": {
        "| task | {} consecutive rows,": ("hybrid.matrix.injection.injected:TASK_ROWS",),
    },
    "docs/gpu.md": {
        "has 2^{} ({:,}) non-zeros or more": (
            _power("hybrid.matrix.gpu.cost:SMALL_ENTRIES"),
            "hybrid.matrix.gpu.cost:SMALL_ENTRIES",
        ),
        "{:,} states or more are unknown": ("hybrid.matrix.operators.hybrid_choices:_SMALL_STATES",),
        "have 2^{} non-zeros or more together": (_power("hybrid.matrix.gpu.cost:SMALL_ENTRIES"),),
        "takes at most {} times the least": ("hybrid.matrix.levels.table:_MOST_TIMES",),
        "Where rows have {} entries on average, or one has {:,}": (
            "hybrid.matrix.gpu.cost:LONG_ROW",
            "hybrid.matrix.gpu.cost:LONGEST_ROW",
        ),
        "an item to a block of {} threads": ("hybrid.matrix.gpu.tuning:_THREADS",),
        "until it has at most {} entries": (lambda: LayoutOptions.entries,),
    },
    "docs/graphs.md": {
        "at most {} states": ("hybrid.models.interchange.write_out:MOST_STATES",),
    },
    "docs/injection.md": {
        "then one of {:,}": (_transitions,),
        "## {:,} entries": (_transitions,),
        "{:,} rows are {} tasks": (lambda: _curve("kanban")[0], _tasks),
    },
    "docs/library.md": {
        "The text ends after {:,}": ("hybrid.app.cli.check:MAX_LISTED",),
        "at an epsilon of {};": (_exponential("hybrid.models.model:_EPSILON"),),
        "Up to {:,} states": ("hybrid.checking.formulas:KEPT",),
    },
    "docs/limits.md": {
        "steps ({:,}), leaves": (_ITERATIONS,),
        **{f"| `{name}` | {{:,}} |": (_limit(name),) for name in DEFAULT_LIMITS},
        "at most {} bytes, got a larger": (_limit("source_bytes"),),
        "at most {} words, numbers and signs": (_limit("tokens"),),
        "at most {} values where they": (_limit("values"),),
        "{:,} transitions of a state where": ("hybrid.models.exploration.search:_MOST_OF_STATE",),
        "are {} levels of nesting": ("mtbdd.language.expression_parser:_DEEPEST",),
        "{:,} combinations of `--const` ranges": ("hybrid.app.experiments:MOST_RUNS",),
        "arrays of NumPy of {} MiB or more": (lambda: LEAST_BYTES >> 20,),
        "windows of {:,} rows": ("hybrid.matrix.cpu.layout:WINDOW_ROWS",),
    },
    "docs/ltl.md": {
        "up to {:,} steps; each": ("hybrid.properties.automata.formulas:MOST_STEPS",),
        "more than {} MiB": (lambda: int(str(value_of("hybrid.properties.automata.choosing:_BYTES"))) >> 20,),
        "At most {} different atomic propositions and {:,} states": (
            "hybrid.properties.automata.automaton:MOST_PROPOSITIONS",
            "hybrid.properties.automata.translation:MOST_STATES",
        ),
    },
    "docs/multi.md": {
        "first k steps, up to {:,}": ("hybrid.properties.automata.formulas:MOST_STEPS",),
        "up to {:,} transitions of the product": ("hybrid.analysis.exact.reading:MAX_TRANSITIONS",),
        "more than {} objectives, {} about what happens again and again, {:,} states of all automata": (
            "hybrid.analysis.multi.memory:MOST_OBJECTIVES",
            "hybrid.analysis.multi.memory:MOST_REPEATED",
            "hybrid.properties.automata.automaton:MOST_JOINED",
        ),
    },
    "docs/numbers.md": {
        "add up to 1 within {}": (_TOLERANCE,),
        "at most {:,} digits": ("mtbdd.language.reals:LONGEST",),
        "of more than {:,} bits are": ("mtbdd.language.reals:MOST_BITS",),
        "of up to {:,} transitions": ("hybrid.analysis.exact.reading:MAX_TRANSITIONS",),
    },
    "docs/parts.md": {
        "none gains half a percent. Where no sum gains {} %": (
            _hundredths("hybrid.matrix.parts.cuts:_PLAIN"),
        ),
        "takes as long as {:.0f} entries": ("hybrid.matrix.parts.cuts:_EXCHANGED",),
        "Up to {} of the exchange": ("hybrid.matrix.parts.cuts:_HIDDEN",),
        "among blocks of {} rows": ("hybrid.matrix.parts.cuts:BLOCK_ROWS",),
        "doubles the nodes costs {} % of the": (_hundredths("hybrid.matrix.parts.cuts:_GROWTH"),),
        "at most {} times as many": ("hybrid.matrix.parts.plan:_FEWER_NODES",),
    },
    "docs/pictures.md": {
        "A picture shows {} states at most": ("hybrid.models.interchange.write_out:MOST_STATES",),
        "{} nodes at most": ("hybrid.base.graph_drawing:MOST_NODES",),
    },
    "docs/properties.md": {
        "the first {:,} as text": ("hybrid.app.cli.check:MAX_LISTED",),
        "(default {:,}) is refused": (_ITERATIONS,),
        "within {:,} iterations or whose": ("hybrid.checking.formulas:_FEW_ITERATIONS",),
        "on models of at most {:,} states | `exact`": ("hybrid.checking.formulas:_FEW_STATES",),
        "(default {}) bounds their distance": (_EPSILON,),
        "Values below {} are printed as": (_exponential("hybrid.matrix.space.bounded_solution:TINY"),),
        "take omega {} by default": ("hybrid.matrix.space.repeated:OMEGA",),
        "with epsilon {}, and": (_exponential("hybrid.checking.checker:_FINE"),),
        "Runs of {:,} steps or more on chains of up to {} states": (
            "hybrid.analysis.transient:FEWEST_STEPS",
            "hybrid.analysis.transient:MOST_STATES",
        ),
        "up to {:,} transitions, {:,} unknown states": (
            "hybrid.analysis.exact.reading:MAX_TRANSITIONS",
            "hybrid.analysis.exact.formulas:MAX_UNKNOWN",
        ),
        "up to {:,} transitions and {:,} unknown states. For long-run": (
            "hybrid.analysis.exact.reading:MAX_TRANSITIONS",
            "hybrid.analysis.exact.optima:MAX_UNKNOWN",
        ),
    },
    "docs/scipy.md": {
        "every {} steps": ("hybrid.analysis.linear.uniformisation:_LOOK_EVERY",),
    },
    "docs/simulation.md": {
        "`--steps` ({:,}) is counted": ("hybrid.app.cli.simulate:_STEPS",),
        "up to {:,} combinations of values": ("hybrid.checking.simulation.functions:TABLE",),
        "one generator for {:,} paths": ("hybrid.checking.simulation.walk:WIDTH",),
        "tested for absorption every {} steps": ("hybrid.checking.simulation.estimates:_LOOK",),
    },
}
"""Texts with figures that the sources say, by page; each with what fills its braces."""

GIVEN: dict[str, tuple[str, ...]] = {
    # Of definitions and reasons.
    "docs/bounds.md": (
        "65,536 at a time or so",
        "after about 0.2/(1 - rho) steps",
        "where these are 2,000 or more",
        "stops at 0.0 for a probability",
        "waits for four times the steps",
        "about 2 to 3 in rows of a few entries",
        "this change is 100 %",
    ),
    "docs/dd.md": ("with probability 0.1 and to every state in which two lamps differ with 0.02",),
    "docs/from-prism.md": (
        "within 1e-6 of each other",
        "1e-3 by default: in parts",
    ),
    "docs/pictures.md": ("Figure 5.2 of [Tealdi13]",),
    "docs/references.md": ("deliverable 1.6",),
    "docs/simulation.md": ("(`--confidence`, 0.99)",),
    "docs/building.md": (
        "costs 0.2 for every unit",
        "4 million combinations",
    ),
    "docs/concepts.md": ("7 nodes above 8 leaves",),
    "docs/design/symbolic-matrices.md": ("more than 10,000 nodes together",),
    "docs/checkpoints.md": ("every 5 minutes (10 without `--every`)",),
    "docs/design/tiles.md": (
        "one of the 32 threads of a warp",
        "32 rows of a tile, a lane each",
        "a slice is 8 rows",
    ),
    "docs/explicit.md": (
        "it, which adds up to 24 bytes a row",
        "goes through its products three times",
        # Sizes of a paper's matrices.
        "with 10 % density (figures 2 and 3)",
    ),
    "docs/gpu.md": (
        "a distinct cell (32 rows of a tile)",
        "Levels of up to 2^20 entries and slots",
        "both limits are four times as high",
        "A block of up to 256 threads has up to 128 rows side by side",
        "1 to 32 threads share the slots",
        "Herman's ring of 15 processes",
        "A tile of over 128 rows is halved",
        # Variants that were tried.
        "tiles of 512 rows, branches around missing entries",
        "blocks of 128 threads instead of 256",
        "tiles of 256 to 4096 rows",
        "a block of 1,024 threads for each multiprocessor",
        "128- and 256-byte prefetch",
        "a warp reads 32 rows of X",
        "blocks of 512 threads, two groups",
    ),
    "docs/graphs.md": (
        "| 2.2, algorithm 1 |",
        "| 5.2, algorithm 4 |",
        "| 5.3, algorithm 6 |",
        "or 64 where states and distribution groups need them",
        "twelve times as many transitions",
        # Sections of a paper.
        "| 2.2 |",
        "| 5.1 |",
        "| 5.2 |",
        "| 5.3.1 |",
        "| 2.4, 5.3.2 |",
    ),
    # Those of answers: tests/test_case_studies.py.
    "docs/gallery.md": (
        "before anybody eats | 0.125 |",
        "and another enters | 0.875 |",
        "energy of at most 1400 | 14.5734 |",
        "with two servers | 2.42 |",
        "with an average power of `2.8` | 3.741 |",
        "that the servers take | 3.665 |",
        "the queue is full | 8.633e-05 |",
        "cost of a day | 2.835 |",
        "the store is empty | 0.007449 |",
        "can be made a day | 0.3729 |",
        "an order every five days | 0.02098 |",
        "requests that are lost | 6.082 |",
        "that can be wasted | 13.55 |",
        "a request waits | 0.1389 |",
        "least power with one request that waits | 4.974 |",
        "longest rest with one request that waits | 0.6462 |",
        "power of six nodes | 4.301 |",
        "delay of alarms | 0.1769 |",
        "both sides sleep | 0.1571 |",
        "delay of at most `0.05` | 4.51 |",
    ),
    # Versions of Python.
    "docs/install.md": ("| 3.11, 3.12, 3.13 |", "| 3.14 |"),
    # Those of options: tests/hybrid/test_check_options.py.
    "docs/library.md": (
        "takes 8 bytes a state",
        "relaxation of jor (default 0.9)",
        "precision (default 1e-8)",
        "objective's range (default 1e-3)",
    ),
    "docs/limits.md": (
        "More than 5,000 `bits`",
        "8 to 200 times more to become diagrams",
        "2^62 states and transitions",
        "2^60 nodes as a text",
        "in 90s, 5m, 1.5h",
    ),
    "docs/ltl.md": ("takes 44/15 steps until", "takes ten minutes"),
    "docs/lumping.md": (
        "0.1 + 0.2 and 0.3 are one number",
        "some 50 bytes each, 60 a choice and 100 a state",
    ),
    "docs/modelling.md": ("about 100 bytes a transition",),
    "docs/numbers.md": (
        "`0.3 - 0.2999999` is 1e-7",
        "would leave at 1e-17",
        "is printed between 0.3",
        "between 1.7976931348623157e308 and infinity",
        "exponents from -10,000 to 10,000",
        "the range of doubles, 1.79e308",
        "or at least 2.23e-308",
        "three times `0.333333` means three times a third",
    ),
    "docs/properties.md": (
        "at most 1,000 distinct ones",
        "printed as `[0, 1e-290]`",
        "A walk of 2n+1 states",
        "above 1 rows relaxed together",
    ),
    "docs/quickstart.md": ("= 1/21 = 0.047619", "once in 100 hours", "one in five seconds of an iteration"),
    "docs/scipy.md": ("Eight vectors take eight times the room", "once instead of eight times"),
}
"""Texts with figures that define, set an example or tell of a paper, by page."""


def _blank(found: re.Match[str]) -> str:
    """Return the lines of a match without what stands on them."""
    return "\n" * found[0].count("\n")


def prose(text: str) -> str:
    """Return a page's prose, line for line, with a sign in the place of every figure from a record."""
    text = re.sub(r"^( *)```.*?^\1```", _blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- rendered: ([^>]*) -->.*?<!-- end: \1 -->", _blank, text, flags=re.DOTALL)
    text = MARKER.sub(_RECORDED, text)
    text = re.sub(r"`[^`]*`", lambda found: "`" + _blank(found), text)
    return re.sub(r"\]\([^()\s]*\)", "]", text)


def templates(page: str) -> dict[str, tuple[Source, ...]]:
    """Return the computed texts of a page."""
    return {**_EVERYWHERE, **COMPUTED.get(page, {})}


def pattern_of(template: str) -> str:
    """Return what finds a text whatever fills its braces, and however its lines break."""
    words = r"\s+".join(re.escape(word) for word in template.split())
    return re.sub(r"\\\{[^{}]*\\\}", r"\\d(?:[\\d,.]*\\d)?(?:e-?\\d+)?", words)


def _in_page(page: str, text: str, template: str) -> bool:
    return re.search(pattern_of(template), text) is not None


@functools.cache
def _right(page: str, template: str) -> str:
    """Return a text with what the sources say."""
    return template.format(*(value_of(source) for source in templates(page)[template]))


def wrong_figures(page: str, text: str) -> Iterator[str]:
    """Yield the computed texts of a page that say something else than the sources."""
    for template in templates(page):
        right = _right(page, template)
        found = {" ".join(match[0].split()) for match in re.finditer(pattern_of(template), text)}
        yield from (f"{page}: stands {one!r}, the sources say {right!r}" for one in sorted(found - {right}))


def figures_without_record(page: str, text: str) -> Iterator[str]:
    """Yield the figures of a page without a record that are not stated either, and what is stated in vain."""
    for phrase in (*COMPUTED.get(page, {}), *GIVEN.get(page, ())):
        if not _in_page(page, text, phrase):
            yield f"{page}: no longer there: {phrase}"
    for phrase in (*templates(page), *GIVEN.get(page, ())):
        text = re.sub(pattern_of(phrase), lambda found: "`" + _blank(found) + "`", text)
    text = prose(text)
    for found in _found(text):
        line = text.count("\n", 0, found.start()) + 1
        yield f"{page}:{line}: {' '.join(found[0].split())}"


def _found(text: str) -> Iterator[re.Match[str]]:
    """Yield the figures of prose, each once."""
    end = 0
    whole = (*FIGURE.finditer(text), *_CELL.finditer(text), *_BARE.finditer(text))
    for found in sorted(whole, key=lambda found: (found.start(), -found.end())):
        is_place = _PLACE.search(text, max(found.start() - 60, 0), found.start()) is not None
        is_recorded = _RECORDED in found[0] and re.search(r"\d", found[0]) is None
        if found.start() >= end and not is_place and not is_recorded:
            end = found.end()
            yield found

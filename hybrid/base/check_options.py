"""The options of checks, a record each, and the names that they take.

`hybrid.CheckOptions` makes its fields of them, the command line its flags, help and completion, and the
table in docs/library.md is theirs.
"""

from __future__ import annotations

from hybrid.base.errors import OptionError

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hybrid.base.option_types import Representation


# In which formats the explicit engine may store a matrix, by name, for those who load no format.

STORAGES = (
    "auto", "msr", "cmsr", "msr-scan", "cmsr-scan", "msr-stream", "cmsr-stream", "msr-wl", "cmsr-wl",
    "msr-hwl", "cmsr-hwl", "sell", "csell", "cusparse",
)  # fmt: skip
"""Names of storage on a device; `gpu_kernels.FORMATS` has the format of each, in the same order."""

HOST_STORAGES = ("csr",)
"""Names of storage on the host: compressed sparse rows, which SciPy multiplies."""

EARLIER_STORAGES = {
    "msr-subwarp": "msr",
    "cmsr-subwarp": "cmsr",
    "sell-sorted": "sell",
    "csell-sorted": "csell",
    "delta-sell": "sell",
    "delta-csell": "csell",
    "delta-sell-sorted": "sell",
    "delta-csell-sorted": "csell",
}
"""Names of the release before, and what to choose in their place."""


def replacement_of(storage: object) -> str:
    """Return what a message says of a name of the release before, or nothing."""
    found = EARLIER_STORAGES.get(str(storage))
    return "" if found is None else f"; {storage!r} was taken out, choose {found!r} in its place"


REPRESENTATIONS: tuple[Representation, ...] = ("row-types", "tasks")
"""Rows of equal sequences of blocks together, or instances in tasks of 256 rows ([Tealdi13] §4.4.1.2)."""


def check_representation(name: str) -> None:
    """Refuse a name that stands for no representation, by OptionError."""
    if name not in REPRESENTATIONS:
        # Only a faulty name pays for this import.
        from mtbdd.language.errors import suggestion

        near = suggestion(str(name), REPRESENTATIONS)
        raise OptionError(f"representation: expected one of {', '.join(REPRESENTATIONS)}, got {name!r}{near}")


# `typing.TYPE_CHECKING` without importing `typing`, which takes long.


# The registry of iterative methods: what each applies to, needs and keeps, a record a method.
#
# Options, the command line's choices, parts, decision processes and refusals read it; a method that is not
# recorded here is offered nowhere.

# The command line's help comes here, and does without `typing` and `dataclasses`, which take long to import.


WITH_BOUNDS, ESTIMATE = "certified", "estimate"


class MethodRecord:
    """The record of a method: its `name` in options, what it applies to, what it needs.

    `advice` is its rank among the alternatives that a refusal names. Of a linear
    system it makes bounds that are verified ("certified") or an "estimate", and `average` says so of an
    average in the long run, empty where it solves no equation of one. It holds at most so many `vectors` of
    the size of a linear system before guesses need more. It finds distributions in the long run, as estimates
    (`steady`), solves minima and maxima over the choices of a decision process (`choices`) and systems with
    any matrix (`general`, `hybrid.analysis.linear`); processes that share the states may use it (`parts`);
    it takes a relaxation, omega (`relaxed`); a checkpoint keeps all of its state (`resumes`), otherwise it
    begins again from the iterate that is kept.
    """

    __slots__ = (
        "advice", "average", "choices", "general", "linear", "name", "parts", "relaxed", "resumes", "steady",
        "vectors",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        advice: int,
        linear: str,
        average: str,
        vectors: int,
        *,
        steady: bool = False,
        choices: bool = False,
        general: bool = False,
        parts: bool = True,
        relaxed: bool = False,
        resumes: bool = True,
    ) -> None:
        self.name, self.advice, self.linear, self.average = name, advice, linear, average
        self.vectors, self.steady, self.choices, self.general = vectors, steady, choices, general
        self.parts, self.relaxed, self.resumes = parts, relaxed, resumes


METHODS = {
    method.name: method
    for method in (
        MethodRecord("auto", 0, WITH_BOUNDS, WITH_BOUNDS, 8, steady=True, choices=True),
        MethodRecord("jacobi", 5, ESTIMATE, ESTIMATE, 4, steady=True, choices=True, general=True),
        MethodRecord("jor", 4, ESTIMATE, ESTIMATE, 4, steady=True, general=True, relaxed=True),
        MethodRecord("power", 6, ESTIMATE, ESTIMATE, 4, steady=True, choices=True),
        MethodRecord("gauss-seidel", 7, ESTIMATE, ESTIMATE, 5, steady=True, parts=False, relaxed=True),
        MethodRecord("bicgstab", 3, ESTIMATE, WITH_BOUNDS, 9, general=True, resumes=False),
        MethodRecord("interval", 2, WITH_BOUNDS, WITH_BOUNDS, 10, choices=True),
        MethodRecord("optimistic", 1, WITH_BOUNDS, "", 8, choices=True),
    )
}  # fmt: skip

ENCLOSING = tuple(name for name, method in METHODS.items() if method.linear == WITH_BOUNDS)
RELAXED = tuple(name for name, method in METHODS.items() if method.relaxed)
OF_GENERAL_SYSTEMS = tuple(name for name, method in METHODS.items() if method.general)


def advised(names: Iterable[str], last: str = " or ") -> str:
    """Return methods as a refusal lists them, the first to be tried first.

    Examples
    --------
    >>> advised(["jacobi", "auto", "jor"])
    'auto, jor or jacobi'
    """
    *first, end = sorted(names, key=lambda name: METHODS[name].advice)
    return last.join(filter(None, (", ".join(first), end)))


MINUTES = 10.0
"""Between two states that a checkpoint keeps."""


class OptionRecord:
    """An option of a check: a keyword of the library with its default, and a flag of the command line.

    The `flag_default` is the keyword's, but for flags that take a file. `choices` are the names that the flag
    takes, none where it takes others; `kind` is the type of its value, `bool` for a flag without value, None
    for a text, and `metavar` what help writes for it. `unit` is that of a number; `applies` says what the
    option has a part in, where that is not every check.
    """

    __slots__ = (
        "applies", "choices", "default", "flag", "flag_default", "help", "keyword", "kind", "metavar", "unit",
    )  # fmt: skip

    def __init__(
        self,
        keyword: str,
        default: Any,
        help: str,
        *,
        flag: str | None = None,
        flag_default: Any = ...,
        choices: Iterable[str] = (),
        kind: Any = None,
        metavar: str | None = None,
        unit: str = "",
        applies: str = "",
    ) -> None:
        self.keyword, self.default, self.help = keyword, default, help
        self.flag = flag or "--" + keyword.replace("_", "-")
        self.flag_default = default if flag_default is ... else flag_default
        self.choices, self.kind, self.metavar = tuple(choices), kind, metavar
        self.unit, self.applies = unit, applies

    @property
    def dest(self) -> str:
        """Return the name that the parsed command line has it by."""
        return self.flag.lstrip("-").replace("-", "_")


_RECORDS = (
    OptionRecord(
        "engine",
        "hybrid",
        "the matrix compressed, or written out: on the cpu, with --backend gpu on the device; auto "
        "writes out what diagrams do not compress, takes symbolic where vectors have no room, and says so; "
        "symbolic: vectors are diagrams as well, for huge and regular models",
        choices=("auto", "hybrid", "explicit", "symbolic"),
    ),
    OptionRecord(
        "backend",
        "auto",
        "what multiplies: the device where there is one and the system is large enough (default), the "
        "cores, the device, or plain NumPy, which few equations have by default as well",
        choices=("auto", "cpu", "gpu", "reference"),
    ),
    OptionRecord(
        "level",
        "auto",
        "injection level: a policy or the number of variables above it",
        metavar="auto|min-memory|min-time|N",
        unit="variables",
        applies="hybrid engine",
    ),
    OptionRecord(
        "method",
        "auto",
        "auto, interval, optimistic: answers with bounds; the others: estimates without",
        choices=METHODS,
    ),
    OptionRecord(
        "omega",
        None,
        "relaxation of jor (default 0.9) or gauss-seidel (default 1)",
        kind=float,
        metavar="W",
        applies="jor, gauss-seidel",
    ),
    OptionRecord("epsilon", 1e-8, "precision (default 1e-8)", kind=float, metavar="E"),
    OptionRecord("absolute", False, "epsilon is absolute, not relative to the value", kind=bool),
    OptionRecord(
        "max_iterations",
        100_000,
        "give up after K iterations (default 100000)",
        flag="--max-iters",
        kind=int,
        metavar="K",
        unit="iterations",
    ),
    OptionRecord(
        "storage",
        "auto",
        f"format of the explicit engine's matrix: on the cpu {', '.join(HOST_STORAGES)} alone; with "
        f"--backend gpu {', '.join(STORAGES)} (default auto)",
        metavar="NAME",
        applies="explicit engine",
    ),
    OptionRecord(
        "representation",
        "row-types",
        "how a compressed matrix is held: in row types, the engine's own form (default), or in tasks of "
        "256 rows, the published one",
        choices=REPRESENTATIONS,
        applies="hybrid engine",
    ),
    OptionRecord(
        "automaton_tool",
        "auto",
        "who makes automata of LTL: our translation (own), the package spottl (spot), or a command that "
        "is given the formula (in place of %%f, or as its last word) and prints a deterministic automaton in "
        "the HOA format; default: own, or spot where it is installed and smaller",
        metavar="own|spot|COMMAND",
        applies="LTL",
    ),
    OptionRecord("exact", False, "answer in rational numbers, or not at all", kind=bool),
    OptionRecord(
        "pareto_epsilon",
        1e-3,
        "precision of Pareto curves of multi(...), in parts of each objective's range (default 1e-3)",
        kind=float,
        metavar="E",
        unit="parts of a range",
        applies="multi(...)",
    ),
    OptionRecord(
        "values",
        False,
        "also write the value of every state and its bounds, of one property: a table of variables, "
        "value, lower and upper, or the arrays value, lower, upper and states; with --distributed each "
        "process writes a part of it",
        flag_default=None,
        metavar="FILE.csv|.npz",
    ),
    OptionRecord(
        "scheduler",
        False,
        "also write a scheduler of an MDP that attains the answer, as a table or as JSON: "
        "of every state the action of its choice, empty where the command has no label, the layer, "
        "and the command in the text with its guard, which tell such choices apart",
        flag_default=None,
        metavar="FILE.csv|.json",
        applies="MDPs",
    ),
    OptionRecord(
        "witness", False, "also show a path why E [ ] holds, or why A [ ] does not", kind=bool, applies="A, E"
    ),
    OptionRecord(
        "checkpoint",
        None,
        "keep iterations in a folder while they run; the same command goes on where the last one was, "
        "with another engine, backend or number of processes if you like",
        metavar="DIR",
    ),
    OptionRecord(
        "checkpoint_minutes",
        MINUTES,
        "minutes between two states that are kept (default 10)",
        flag="--every",
        flag_default=None,
        kind=float,
        metavar="MIN",
        unit="minutes",
        applies="checkpoint",
    ),
    OptionRecord(
        "spill",
        None,
        "hold vectors and other long arrays in files of a folder, which vanish with the process, where "
        "memory is too small for them (hybrid engine on the cpu)",
        metavar="DIR",
        applies="hybrid engine",
    ),
    OptionRecord(
        "bisimulation",
        False,
        "answer each property from the quotient by strong bisimulation: states that it cannot tell "
        "apart become one; large chains are not listed for it",
        kind=bool,
    ),
)

OPTIONS = {record.keyword: record for record in _RECORDS}


def options_table() -> str:
    """Return the options as a table in Markdown, as docs/library.md has it."""
    lines = ["| keyword | flag | default | unit | applies to | what |", "| --- " * 6 + "|"]
    for record in _RECORDS:
        text = record.help.replace("%%", "%").replace("|", r"\|")
        lines.append(
            f"| `{record.keyword}` | `{record.flag}` | `{record.default!r}` | {record.unit} | "
            f"{record.applies} | {text} |"
        )
    return "\n".join(lines)

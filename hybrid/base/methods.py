"""The registry of iterative methods: what each applies to, needs and keeps, a record a method.

Options, the command line's choices, parts, decision processes and refusals read it; a method that is not
recorded here is offered nowhere.
"""

from __future__ import annotations

# The command line's help comes here, and does without `typing` and `dataclasses`, which take long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

WITH_BOUNDS, ESTIMATE = "certified", "estimate"


class MethodRecord:
    """What a method applies to, and what it needs.

    Attributes
    ----------
    name : str
        As options have it.
    advice : int
        Place among what a refusal tells to choose, the first to be tried first.
    linear : {"certified", "estimate"}
        What it makes of a linear system: bounds that are verified, or an estimate.
    average : {"certified", "estimate", ""}
        What it makes of an average in the long run; empty where it solves no equation of one.
    vectors : int
        Of the size of a linear system, held at most before guesses need more.
    steady : bool
        It finds distributions in the long run, as estimates.
    choices : bool
        It solves minima and maxima over the choices of a decision process.
    general : bool
        It solves systems with any matrix, `hybrid.analysis.linear`.
    parts : bool
        Processes that share the states may use it.
    device_tasks : bool
        A device solves by it above tasks, and not above row types alone.
    relaxed : bool
        It takes a relaxation, omega.
    resumes : bool
        A checkpoint keeps all of its state; otherwise it begins again from the iterate that is kept.
    """

    __slots__ = (
        "advice", "average", "choices", "device_tasks", "general", "linear", "name", "parts", "relaxed",
        "resumes", "steady", "vectors",
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
        device_tasks: bool = True,
        relaxed: bool = False,
        resumes: bool = True,
    ) -> None:
        self.name, self.advice, self.linear, self.average = name, advice, linear, average
        self.vectors, self.steady, self.choices, self.general = vectors, steady, choices, general
        self.parts, self.device_tasks, self.relaxed, self.resumes = parts, device_tasks, relaxed, resumes


METHODS = {
    method.name: method
    for method in (
        MethodRecord("auto", 0, WITH_BOUNDS, WITH_BOUNDS, 8, steady=True, choices=True),
        MethodRecord("jacobi", 5, ESTIMATE, ESTIMATE, 4, steady=True, choices=True, general=True),
        MethodRecord("jor", 4, ESTIMATE, ESTIMATE, 4, steady=True, general=True, relaxed=True),
        MethodRecord("power", 6, ESTIMATE, ESTIMATE, 4, steady=True, choices=True),
        MethodRecord(
            "gauss-seidel", 7, ESTIMATE, ESTIMATE, 5,
            steady=True, parts=False, device_tasks=False, relaxed=True,
        ),
        MethodRecord("bicgstab", 3, ESTIMATE, WITH_BOUNDS, 9, general=True, resumes=False),
        MethodRecord("interval", 2, WITH_BOUNDS, WITH_BOUNDS, 10, choices=True),
        MethodRecord("optimistic", 1, WITH_BOUNDS, "", 8, choices=True),
    )
}  # fmt: skip

ENCLOSING = tuple(name for name, method in METHODS.items() if method.linear == WITH_BOUNDS)
RELAXED = tuple(name for name, method in METHODS.items() if method.relaxed)
OF_PARTS = tuple(name for name, method in METHODS.items() if method.parts)
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

"""Options of a check, verified once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from hybrid.base.check_options import (
    ENCLOSING,
    ESTIMATE,
    HOST_STORAGES,
    METHODS,
    OPTIONS,
    RELAXED,
    STORAGES,
    WITH_BOUNDS,
    advised,
    check_representation,
    replacement_of,
)
from hybrid.base.errors import OptionError
from hybrid.base.option_types import (
    BackendName,
    CheckEngine,
    LevelOption,
    MethodName,
    ModelTypeName,
    OrderName,
    PackageName,
    Representation,
    StorageName,
)
from hybrid.base.units import counted
from hybrid.matrix.backends import FEW_ENTRIES, FEW_EQUATIONS, TIMES_SWEPT, Backend, choose_backend
from hybrid.matrix.space.base import Criterion
from mtbdd.base.errors import option
from mtbdd.base.records import Record
from mtbdd.language.errors import suggestion
from mtbdd.language.limits import Limits

if TYPE_CHECKING:
    from hybrid.solvers.average_reward import AverageReward
    from hybrid.solvers.bicgstab import BiCGStab
    from hybrid.solvers.interval import Interval
    from hybrid.solvers.iteration import GaussSeidel, Jacobi, Power
    from hybrid.solvers.optimistic import Optimistic

# Keywords of functions that hand them on, as types; `hybrid.check_all` and `hybrid.load` explain each.

FileName = str | os.PathLike[str]


class SolutionKeywords(TypedDict, total=False):
    """Keywords of `hybrid.CheckOptions`: how values are found."""

    engine: CheckEngine
    backend: BackendName
    level: LevelOption
    method: MethodName
    omega: float | None
    epsilon: float
    absolute: bool
    max_iterations: int
    storage: StorageName
    representation: Representation
    automaton_tool: str
    exact: bool
    pareto_epsilon: float


class AnswerKeywords(SolutionKeywords, total=False):
    """Keywords of all answers: how they are found, and from what."""

    scheduler: bool
    bisimulation: bool


class KeptKeywords(AnswerKeywords, total=False):
    """Keywords of an experiment's answers."""

    values: bool


class CheckKeywords(AnswerKeywords, total=False):
    """Keywords of `hybrid.check_all` that `hybrid.check` hands on."""

    values: bool | FileName
    progress: Callable[[int, float], None] | None
    witness: bool
    ranks: Any
    checkpoint: FileName | None
    checkpoint_minutes: float
    spill: FileName | None


class LoadKeywords(TypedDict, total=False):
    """Keywords of `hybrid.load` that `hybrid.experiment` hands on."""

    fix_deadlocks: bool
    package: PackageName
    order: OrderName
    timeout: float | None
    memory: int | None
    limits: Limits | None
    type: ModelTypeName | None
    states: FileName | None
    labels: FileName | None
    state_rewards: Sequence[FileName]
    transition_rewards: Sequence[FileName]


class ExperimentKeywords(LoadKeywords, KeptKeywords, total=False):
    """Keywords of `hybrid.experiment`."""


ENGINES = ("auto", "hybrid", "explicit", "symbolic")
FEW_STEPS = 500
"""Steps of few equations that are made sooner than compiled code is loaded."""

_STEADY_OMEGA = 0.9  # breaks the period of jump chains, for which plain Jacobi never settles


def _stated(keyword: str) -> Any:
    """Return the field of an option: its default, and its record as metadata."""
    record = OPTIONS[keyword]
    return field(default=record.default, metadata={"option": record})


class CheckOptions(Record):
    """Engine, backend, injection level, method and precision of a check.

    Attributes
    ----------
    engine : {"hybrid", "explicit", "symbolic", "auto"}
        The matrix as a decision diagram above explicit blocks, or written out; "auto" writes out matrices
        whose diagrams are about as large, and has vectors as diagrams where they have no room otherwise, see
        `hybrid.checking.checker`. With "symbolic" vectors are decision
        diagrams as well, always between bounds, see `hybrid.analysis.on_diagrams`.
    backend : {"auto", "cpu", "gpu", "reference"}
        The explicit engine is not on "reference", and with it "auto" is the cpu. With the method gauss-seidel
        "gpu" is the cpu, too.
        What was chosen, and why, is reported by ``answer.statistics``.
    storage : str
        Format of the explicit engine's matrices: on the gpu one of `gpu_kernels.FORMATS`, on the cpu "csr";
        "auto" is the one expected to be fastest.
    level : {"auto", "min-memory", "min-time"} or int
        Injection level, see `hybrid.inject`.
    method : {"auto", "jacobi", "jor", "power", "gauss-seidel", "bicgstab", "interval", "optimistic"}
        "auto", "interval" and "optimistic" give bounds; "auto" is "optimistic" for linear systems, component
        by component where the explicit engine finds on the cpu that this pays.  The
        others give estimates.  An average in the long run has methods of its own: "auto" and "interval" bound
        the gain, so does "bicgstab", which computes the bias from the start, "jor" is "jacobi" damped, which
        periodic chains need there, and "optimistic" does not apply: a property that needs such an average has
        an error.  Of an MDP "jacobi" and "power" are value iteration, and "jor", "gauss-seidel" and
        "bicgstab" do not apply.
    omega : float, optional
        Relaxation of JOR (default 0.9) or of Gauss-Seidel (default 1, and 0.9 in the long run).
    epsilon : float
        Precision: the distance of the bounds for methods that give them, and the difference of two iterates
        for the others.
    absolute : bool
        Compare differences as they are instead of relative to the values.
    max_iterations : int
        Give up after so many.
    representation : {"row-types", "tasks"}
        How the hybrid engine holds a matrix, see `hybrid.inject`; in tasks the layers of a decision process
        are held one by one, on a device too.
    automaton_tool : str
        Where automata of LTL come from: "own", "spot", a command, or "auto", see
        `hybrid.properties.automata.choosing.choose_automaton`.
    exact : bool
        Answer in rational numbers, or not at all; engine, backend and precision have no part in it then.
    pareto_epsilon : float
        Precision of Pareto curves of `multi(...)`: the distance of what is reached and what nothing exceeds,
        in parts of each objective's range, at which the search stops.

    Raises
    ------
    OptionError
        A value that is not offered.
    """

    engine: CheckEngine = _stated("engine")
    backend: BackendName = _stated("backend")
    level: LevelOption = _stated("level")
    method: MethodName = _stated("method")
    omega: float | None = _stated("omega")
    epsilon: float = _stated("epsilon")
    absolute: bool = _stated("absolute")
    max_iterations: int = _stated("max_iterations")
    storage: StorageName = _stated("storage")
    representation: Representation = _stated("representation")
    automaton_tool: str = _stated("automaton_tool")
    exact: bool = _stated("exact")
    pareto_epsilon: float = _stated("pareto_epsilon")

    def __post_init__(self) -> None:
        """Check the names; a relaxation without a method asks for JOR."""
        if self.omega is not None and self.method == "auto":
            object.__setattr__(self, "method", "jor")
        _ = self.criterion  # refuses senseless limits
        if self.engine not in ENGINES:
            offered = "auto, hybrid, explicit or symbolic"
            near = suggestion(str(self.engine), ENGINES)
            raise OptionError(
                f"engine {self.engine!r} is not offered by this version; choose {offered}{near}"
            )
        if self.method not in METHODS:
            near = suggestion(str(self.method), METHODS)
            raise OptionError(
                f"method {self.method!r} is not offered; choose one of {', '.join(METHODS)}{near}"
            )
        choose_backend(self.backend)
        if self.automaton_tool != "auto":
            from hybrid.properties.automata.choosing import AUTOMATON_TOOLS, command_words

            if self.automaton_tool not in AUTOMATON_TOOLS:
                command_words(self.automaton_tool)
        if self.exact and self.method != "auto":
            raise OptionError(
                f"exact answers have a method of their own: leave {option('exact')} or {option('method')} out"
            )
        if self.engine == "explicit" and self.backend == "reference":
            raise OptionError(
                "the explicit engine runs on the cpu or on the gpu, not on reference; choose one"
            )
        self._check_symbolic()
        check_representation(self.representation)
        if self.engine == "explicit" and self.representation != "row-types":
            raise OptionError(
                f"representation {self.representation!r} is a form of compressed matrices, and the engine is "
                f"explicit: choose {option('engine', 'hybrid')}, or leave the representation out"
            )
        self._check_storage()
        if not 0 < self.pareto_epsilon < 1:
            raise OptionError(
                f"{option('pareto-epsilon')} must lie between 0 and 1, got {self.pareto_epsilon}"
            )
        if self.omega is not None and self.method not in RELAXED:
            raise OptionError(
                f"omega belongs to the methods {advised(RELAXED, ' and ')}, not to {self.method}; "
                "choose one of them"
            )
        if self.omega is not None and not 0 < self.omega < 2:
            raise OptionError(f"omega must lie between 0 and 2, got {self.omega}")

    def _check_symbolic(self) -> None:
        """Refuse what goes with arrays alone where vectors are diagrams."""
        if self.engine != "symbolic" or self.exact:
            return
        if METHODS[self.method].linear != WITH_BOUNDS:
            raise OptionError(
                f"the engine symbolic gives bounds, and the method {self.method} gives none: choose "
                f"{option('engine', 'hybrid')}, or leave the {option('method')} out"
            )
        if self.backend in ("gpu", "reference"):
            raise OptionError(
                f"the engine symbolic runs on the cpu, not on {self.backend}: choose "
                f"{option('engine', 'hybrid')}, or leave the {option('backend')} out"
            )

    @classmethod
    def of(cls, *values: Any, **options: Unpack[SolutionKeywords]) -> CheckOptions:
        """Return `CheckOptions` of the same values: the name by which they were made before."""
        return cls(*values, **options)

    @cached_property
    def criterion(self) -> Criterion:
        """When iterations stop."""
        return Criterion(self.epsilon, self.absolute, self.max_iterations)

    def bounding_method(self) -> Interval | Optimistic | None:
        """Return the method with bounds; None if one without bounds was chosen."""
        if self.method == "interval":
            from hybrid.solvers.interval import Interval

            return Interval(self.criterion)
        is_auto = self.method == "auto"
        if is_auto or self.method in ENCLOSING:
            from hybrid.solvers.optimistic import Optimistic

            return Optimistic(self.criterion, direct_first=is_auto)
        return None

    def average_reward(self) -> AverageReward | None:
        """Return the method with bounds for long-run averages; None if one without bounds was chosen.

        Raises
        ------
        OptionError
            The method chosen solves other equations than those of averages.
        """
        from hybrid.solvers.average_reward import AverageReward

        self._refuse_for_averages()
        if self.method == "bicgstab":
            return AverageReward(self.criterion, krylov="always", recurrence="bicgstab")
        return AverageReward(self.criterion) if self.method in ENCLOSING else None

    def matrix_backend(self, equations: int | None = None, steps: float = 0.0, times: int = 1) -> Backend:
        """Return where matrices are held: of Gauss-Seidel, and of the explicit engine by "auto", on the host.

        Parameters
        ----------
        equations : int, optional
            Of one system that a process solves alone.
        steps : float, optional
            How many will be made; many are compiled, however few equations there are.  Methods requested by
            name may take any number of them.
        times : int, optional
            See :func:`hybrid.matrix.backends.choose_backend`; more than once of choices, which NumPy steps
            over where they are written out, too.
        """
        reason = self._reason_for_host()
        few = equations if self.method == "auto" and steps <= FEW_STEPS else None
        if reason is None:
            return choose_backend(self.backend, few, times)
        if times > 1 and few is not None and few <= times * FEW_EQUATIONS:
            told = f"NumPy solves {counted(few, 'equation')} before compiled kernels are loaded"
            return choose_backend("reference").because(told)
        return choose_backend("cpu").because(reason)

    def begins_in_numpy(self, equations: int, entries: int) -> bool:
        """Return whether NumPy tries to solve a chain's equations before compiled kernels do.

        Nothing else may be asked for, and the kernels have to be those of the host.
        """
        is_plain = self.engine != "explicit" and self.level == "auto" and self.representation == "row-types"
        is_small = equations <= TIMES_SWEPT * FEW_EQUATIONS and entries <= FEW_ENTRIES
        is_free = self.backend == self.method == "auto"
        return is_plain and is_small and is_free and self.matrix_backend().name == "cpu"

    def _reason_for_host(self) -> str | None:
        """Say why matrices are on the cpu in spite of a device; None if that is not so."""
        if self.method == "gauss-seidel" and self.backend in ("auto", "gpu"):
            return "gauss-seidel takes one row after another, which the cpu does"
        if self.engine == "explicit" and self.backend == "auto":
            return "auto is the cpu with the engine explicit, which takes the gpu only if it is asked for"
        return None

    def _refuse_for_averages(self) -> None:
        """Refuse methods that solve no equation of an average in the long run, by name."""
        if not METHODS[self.method].average:
            bounds, estimates = (
                advised(name for name, method in METHODS.items() if method.average == kind)
                for kind in (WITH_BOUNDS, ESTIMATE)
            )
            raise OptionError(
                f"the method {self.method} solves systems in which every state is left for good, and "
                f"averages in the long run have none: choose {bounds} (with bounds), or {estimates} (without)"
            )

    def _check_storage(self) -> None:
        """Refuse a format that the engine or the backend does not have."""
        if self.storage == "auto":
            return
        if self.storage not in (*STORAGES, *HOST_STORAGES):
            known = dict.fromkeys((*STORAGES, *HOST_STORAGES))
            near = replacement_of(self.storage) or suggestion(str(self.storage), known)
            raise OptionError(
                f"storage {self.storage!r} is not offered: expected one of {', '.join(STORAGES)} on the gpu, "
                f"or of auto, {', '.join(HOST_STORAGES)} on the cpu{near}"
            )
        if self.engine != "explicit":
            raise OptionError(
                f"storage {self.storage!r} is a format of written-out matrices, and the engine is "
                f"{self.engine}: choose {option('engine', 'explicit')}, or leave the storage out"
            )
        offered, where = (STORAGES, "gpu") if self.matrix_backend().name == "gpu" else (HOST_STORAGES, "cpu")
        if self.storage not in offered:
            other = "leave the storage out"
            if where == "cpu":
                other += f", or choose {option('backend', 'gpu')}"
            raise OptionError(
                f"storage {self.storage!r} does not exist on the {where}, which has "
                f"{', '.join(offered)}: choose one of these, {other}"
            )

    def solver(self, steady: bool) -> Jacobi | Power | BiCGStab | GaussSeidel:
        """Return a method without bounds, for a linear system or for a steady state.

        Raises
        ------
        OptionError
            The method chosen does not find steady states, or promises bounds.
        """
        from hybrid.solvers.bicgstab import BiCGStab
        from hybrid.solvers.iteration import GaussSeidel, Jacobi, Power

        estimating = advised(name for name, method in METHODS.items() if method.steady)
        if steady:
            self._refuse_for_averages()
            if self.method == "bicgstab":
                raise OptionError(
                    f"the method bicgstab bounds averages and finds no distribution: choose {estimating}"
                )
        if self.method != "auto" and self.bounding_method() is not None:
            raise OptionError(
                f"the method {self.method} gives bounds, and here is an estimate: choose {estimating}"
            )
        if self.method == "power":
            return Power(self.criterion)
        if self.method == "jacobi":
            return Jacobi(self.criterion)
        if self.method == "bicgstab":
            return BiCGStab(self.criterion)
        if self.method == "gauss-seidel":
            usual = _STEADY_OMEGA if steady else 1.0
            return GaussSeidel(self.criterion, usual if self.omega is None else self.omega)
        if self.method == "jor":
            return Jacobi(self.criterion, _STEADY_OMEGA if self.omega is None else self.omega)
        return Jacobi(self.criterion, _STEADY_OMEGA if steady else 1.0)


SOLUTION_KEYWORDS = tuple(field.name for field in fields(CheckOptions))


def chosen_options(
    call: str, options: CheckOptions | None, overrides: Mapping[str, Any], others: Iterable[str] = ()
) -> CheckOptions:
    """Return the options of a call of the library: those given, and in their place what keywords say.

    Parameters
    ----------
    call : str
        The function's name, for messages.
    options : CheckOptions, optional
        Default the defaults.
    overrides : mapping of str
        Keywords of the call.
    others : iterable of str
        Keywords that the call takes beside those of `CheckOptions`; they are left to it.

    Raises
    ------
    TypeError
        A keyword that the call does not take, by name, with the nearest one; or no `CheckOptions`.
    OptionError
        A value that is not offered.
    """
    taken = (*SOLUTION_KEYWORDS, *others)
    for name in overrides:
        if name not in taken:
            near = suggestion(name, dict.fromkeys(taken))
            raise TypeError(f"{call}() takes no keyword {name!r}{near}")
    own = {name: value for name, value in overrides.items() if name in SOLUTION_KEYWORDS}
    if options is None:
        return CheckOptions(**own)
    if not isinstance(options, CheckOptions):
        raise TypeError(
            f"{call}(): options: expected hybrid.CheckOptions, got {type(options).__name__}: write "
            "options=hybrid.CheckOptions(...), or give keywords"
        )
    return replace(options, **own)

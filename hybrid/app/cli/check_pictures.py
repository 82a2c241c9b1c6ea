"""The pictures that `hybrid check` draws of its answers: experiments, and how iterations converge."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile, output_of
from hybrid.base import figures
from hybrid.base.errors import OptionError
from hybrid.properties import MultiObjective, Probability, Property, Reward
from mtbdd.build.model import SymbolicModel
from mtbdd.language import parse_constants

if TYPE_CHECKING:
    # Each picture needs its own.
    from hybrid.base.graph_drawing import GraphPicture
    from hybrid.properties.automata.automaton import DeterministicAutomaton
    from hybrid.solvers.iteration import Trace

MOST_DRAWN = 60
"""States of an automaton that a picture can show."""

# Pictures of small models on the command line: their graph, and the diagram of their matrix.


def drawn_file(path: str | None, option: str, what: str) -> AbstractContextManager[OutputFile | None]:
    """Return the file of a picture, tried before the work begins; of None if none is requested."""
    if path is not None:
        figures.check_ending(path, what, also=(".dot",))
    return output_of(path, option)


def draw_model(model: SymbolicModel, file: OutputFile, console: Console) -> None:
    """Draw the graph of a small model."""
    from hybrid.models.interchange.write_out import check_size, graph_picture, written_out

    check_size(model.n_states)
    _draw(file, lambda: graph_picture(written_out(model), _title(model)), console)


def draw_diagram(model: SymbolicModel, file: OutputFile, console: Console) -> None:
    """Draw the offset-labelled MTBDD of a small chain."""
    if model.is_mdp:
        raise OptionError("--diagram: expected a dtmc or ctmc; an MDP has a diagram a layer of choices")
    from hybrid.base.graph_drawing import diagram_picture

    _draw(file, lambda: diagram_picture(model.transitions, _bits(model), _title(model)), console)


def _new_trace() -> Trace:
    from hybrid.solvers.iteration import Trace

    return Trace()


def draw_automaton(automaton: DeterministicAutomaton, file: OutputFile, console: Console) -> None:
    """Draw a small automaton."""
    from hybrid.properties.automata.hoa import automaton_picture

    if automaton.n_states > MOST_DRAWN:
        raise OptionError(
            f"a picture of an automaton shows at most {MOST_DRAWN} states, got {automaton.n_states}; "
            "print it, or split the formula"
        )
    _draw(file, lambda: automaton_picture(automaton), console)


def _draw(file: OutputFile, picture: Callable[[], GraphPicture], console: Console) -> None:
    from hybrid.base.graph_drawing import draw_graph

    console.progress("drawing")
    with file.told():
        draw_graph(picture(), file.temporary)
    file.publish(console)


def _title(model: SymbolicModel) -> str:
    """Return the model's file and constants."""
    constants = ", ".join(f"{name}={value}" for name, value in model.source.constants.items())
    return f"{Path(model.source.file).name}  {constants}".strip()


def _bits(model: SymbolicModel) -> list[str]:
    """Return the names of the levels: a variable, primed in the column, and its bit if it has several."""
    names = [""] * (2 * model.encoding.n_bits)
    for variable in model.encoding.variables:
        for place, bit in enumerate(variable.bits):
            power = "" if len(variable.bits) == 1 else f" bit {len(variable.bits) - 1 - place}"
            names[2 * bit], names[2 * bit + 1] = f"{variable.name}{power}", f"{variable.name}'{power}"
    return names


class CheckPictures:
    """Files of pictures, tried before the work begins and replaced when they are drawn.

    `combinations` are the constants of every run; `trace` is what is to follow iterations, if they are to be
    drawn. An `OptionError` refuses a picture that cannot be: of another kind, without matplotlib, of one run
    alone or of too many, of too many properties, of a file that cannot be written.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        console: Console,
        combinations: Sequence[str],
        asked: Sequence[Property],
    ) -> None:
        self._options, self._console = options, console
        self._plot: OutputFile | None = None
        self._convergence: OutputFile | None = None
        self._is_curve = False
        if options.plot is not None:
            self._is_curve = len(combinations) == 1 and len(asked) == 1 and is_curve(asked[0])
            if self._is_curve:
                figures.check_ending(options.plot)
                figures.new_figure(1.0, 1.0)
            else:
                _check_experiment(options, combinations, asked)
            self._plot = OutputFile(options.plot, "--plot")
        elif options.plot_over is not None:
            raise OptionError("--plot-over names the axis of a plot; give its file with --plot")
        if options.plot_convergence is not None:
            _check_convergence(options, combinations, asked)
            self._convergence = OutputFile(options.plot_convergence, "--plot-convergence")
        self.trace = None if self._convergence is None else _new_trace()

    def __enter__(self) -> CheckPictures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._plot, self._convergence):
            if file is not None:
                file.discard()

    def draw(self, runs: Sequence[dict[str, Any]], status: int) -> int:
        """Draw what was requested from the records of all runs, and return the exit status.

        A picture that cannot be drawn is reported and makes the status 2; the answers stay as they are.
        """
        drawings: tuple[tuple[OutputFile | None, Callable[[Path], None]], ...] = (
            (
                self._plot,
                lambda path: self._curve(runs, path) if self._is_curve else self._experiment(runs, path),
            ),
            (self._convergence, lambda path: self._converging(runs, path)),
        )
        for file, draw in drawings:
            if file is None:
                continue
            try:
                with file.told():
                    draw(file.temporary)
                file.publish(self._console)
            except OptionError as error:
                self._console.error(str(error))
                status = 2
        return status

    def _experiment(self, runs: Sequence[dict[str, Any]], path: Path) -> None:
        records = [
            {**run["constants"], **result, "property": result["name"] or result["property"]}
            for run in runs
            for result in run["results"]
        ]
        own = [{k: v for k, v in r.items() if k in _DRAWN or k in runs[0]["constants"]} for r in records]
        title = Path(self._options.model).name
        for note in figures.plot_experiment(own, path, self._options.plot_over, title):
            self._console.warn(f"--plot: {note}")

    def _curve(self, runs: Sequence[dict[str, Any]], path: Path) -> None:
        (result,) = runs[0]["results"]
        if "multi" not in result:
            raise OptionError("--plot: there is no curve to draw, as the property has no answer")
        figures.plot_pareto(result["multi"], path, Path(self._options.model).name)

    def _converging(self, runs: Sequence[dict[str, Any]], path: Path) -> None:
        (result,) = runs[0]["results"]
        title = f"{result['name'] or result['property']}  ({result['method']})"
        relative = "" if self._options.absolute else ", relative to the value"
        shown = "width of the bounds" if result["method"] in _OF_BOUNDS else "change of a step"
        solutions = [] if self.trace is None else self.trace.solutions
        figures.plot_convergence(solutions, path, self._options.epsilon, title, f"{shown}{relative}")


def is_curve(prop: Property) -> bool:
    """Return whether a property asks for several values at once."""
    formula = prop.formula
    if not isinstance(formula, MultiObjective):
        return False
    asked = [o for o in formula.objectives if isinstance(o, (Probability, Reward)) and o.comparison is None]
    return len(asked) > 1


_OF_BOUNDS = ("gain", "interval")  # methods that compare the width of bounds with epsilon
_DRAWN = ("property", "value", "lower", "upper", "error")


def _check_experiment(
    options: argparse.Namespace, combinations: Sequence[str], asked: Sequence[Property]
) -> None:
    """Refuse a plot of what is no experiment, before any work."""
    figures.check_ending(options.plot)
    if len(combinations) < 2:
        raise OptionError(
            "--plot draws an experiment, or one curve of several objectives; give a constant several values, "
            "such as --const N=1:10"
        )
    if not 0 < len(asked) <= figures.MOST_PANELS:
        raise OptionError(
            f"--plot draws 1 to {figures.MOST_PANELS} properties, and {len(asked)} are to be checked; "
            "choose some with --property"
        )
    none = dict.fromkeys(_DRAWN)
    figures.axis_constant([{**parse_constants(text), **none} for text in combinations], options.plot_over)
    figures.new_figure(1.0, 1.0)


def _check_convergence(
    options: argparse.Namespace, combinations: Sequence[str], asked: Sequence[Property]
) -> None:
    """Refuse a plot of more than one answer's convergence, before any work."""
    figures.check_ending(options.plot_convergence)
    if len(combinations) > 1:
        raise OptionError("--plot-convergence draws one run; give constants without ranges")
    if len(asked) != 1:
        raise OptionError(
            f"--plot-convergence draws one property, and {len(asked)} are to be checked; choose one with "
            "--property"
        )
    if options.certificate is not None:
        raise OptionError("--plot-convergence and --certificate are asked for one after the other")
    figures.new_figure(1.0, 1.0)

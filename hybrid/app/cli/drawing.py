"""Pictures of small models on the command line: their graph, and the diagram of their matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile
from hybrid.base.drawing.diagrams import diagram_picture
from hybrid.base.drawing.figures import check_ending
from hybrid.base.drawing.graph_picture import GraphPicture
from hybrid.base.drawing.graphs import draw_graph
from hybrid.base.errors import OptionError
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.picture import automaton_picture
from mtbdd.build.model import SymbolicModel


def drawn_file(path: str | None, option: str, what: str) -> OutputFile | None:
    """Return the file of a picture, tried before the work begins; None if none is asked for.

    Raises
    ------
    OptionError
        Another ending, or a file that cannot be written.
    """
    if path is None:
        return None
    check_ending(path, what, also=(".dot",))
    return OutputFile(path, option)


def draw_model(model: SymbolicModel, file: OutputFile, console: Console) -> None:
    """Draw the graph of a small model.

    Raises
    ------
    OptionError
        The model is too large for a picture, or the file cannot be written.
    """
    from hybrid.models.interchange.drawings import check_size, graph_picture
    from hybrid.models.interchange.write_out import written_out

    check_size(model.n_states)
    _draw(file, lambda: graph_picture(written_out(model), _title(model)), console)


def draw_diagram(model: SymbolicModel, file: OutputFile, console: Console) -> None:
    """Draw the offset-labelled MTBDD of a small chain.

    Raises
    ------
    OptionError
        The diagram is too large for a picture, the model is an MDP, or the file cannot be written.
    """
    if model.is_mdp:
        raise OptionError("--diagram: expected a dtmc or ctmc; an MDP has a diagram a layer of choices")
    _draw(file, lambda: diagram_picture(model.transitions, _bits(model), _title(model)), console)


def draw_automaton(automaton: DeterministicAutomaton, file: OutputFile, console: Console) -> None:
    """Draw a small automaton.

    Raises
    ------
    OptionError
        The automaton is too large for a picture, or the file cannot be written.
    """
    _draw(file, lambda: automaton_picture(automaton), console)


def _draw(file: OutputFile, picture: Callable[[], GraphPicture], console: Console) -> None:
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

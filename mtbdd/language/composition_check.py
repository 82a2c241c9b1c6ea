"""Checking system blocks: known names, and every module exactly once."""

from __future__ import annotations

from mtbdd.language.composition_walk import walk_composition
from mtbdd.language.errors import FaultCollector, listed, shown_circle, suggestion
from mtbdd.language.model_syntax import (
    ActionRenaming,
    Composition,
    Hiding,
    ModelSyntax,
    ModuleReference,
    Parallel,
    SystemBlock,
    SystemReference,
)
from mtbdd.language.names import report_repeated
from mtbdd.language.order import dependency_order


def resolve_system(
    syntax: ModelSyntax, actions: frozenset[str], faults: FaultCollector
) -> Composition | None:
    """Check the system blocks of a model and return the one that composes it.

    Parameters
    ----------
    syntax : ModelSyntax
        The model.
    actions : frozenset of str
        The actions of all commands, and those that system blocks introduce.
    faults : FaultCollector
        Takes unknown modules, blocks and actions, blocks that refer to one another, and modules that the
        composition holds twice or not at all.

    Returns
    -------
    Composition or None
        The block without a name, else the first one, references to others expanded; None without blocks
        or after a fault.
    """
    systems = syntax.systems
    if not systems:
        return None
    before = len(faults)
    report_repeated([(s.name, "system block", s.position) for s in systems if s.name is not None], faults)
    unnamed = [s for s in systems if s.name is None]
    for block in unnamed[1:]:
        faults.add(block.position, "expected one system block without a name, got a second one; name it")
    blocks: dict[str, SystemBlock] = {}
    for block in systems:
        if block.name is not None:
            blocks.setdefault(block.name, block)
    modules = frozenset(module.name for module in syntax.modules)
    for block in systems:
        for node in walk_composition(block.composition):
            _check_names(node, modules, blocks, actions, faults)
    graph = {
        name: [n.name for n in walk_composition(block.composition) if isinstance(n, SystemReference)]
        for name, block in blocks.items()
    }
    _, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = shown_circle([f'"{name}"' for name in cycle])
        faults.add(
            blocks[cycle[0]].position, f"system blocks refer to one another: {circle}; break the circle"
        )
    if len(faults) > before:
        return None
    main = unnamed[0] if unnamed else systems[0]
    _check_single(main, blocks, faults)
    if len(faults) > before:
        return None
    expanded = _expanded(main.composition, blocks)
    _check_complete(main, expanded, syntax, faults)
    return expanded if len(faults) == before else None


def _check_names(
    node: Composition,
    modules: frozenset[str],
    blocks: dict[str, SystemBlock],
    actions: frozenset[str],
    faults: FaultCollector,
) -> None:
    """Note a fault for every name in a node that nothing is called by."""
    if isinstance(node, ModuleReference) and node.module not in modules:
        hint = suggestion(node.module, modules) or f"; known are {listed(sorted(modules))}"
        faults.add(node.position, f"unknown module '{node.module}' in a system block{hint}")
    elif isinstance(node, SystemReference) and node.name not in blocks:
        hint = suggestion(node.name, blocks) or '; name one with system "name" ... endsystem'
        faults.add(node.position, f'unknown system block "{node.name}"{hint}')
    mentioned: tuple[str, ...] = ()
    if isinstance(node, (Parallel, Hiding)):
        mentioned = node.actions
    elif isinstance(node, ActionRenaming):
        mentioned = tuple(old for old, _ in node.pairs)
    for action in mentioned:
        if action not in actions:
            hint = suggestion(action, actions) or "; no command has it"
            faults.add(node.position, f"unknown action '{action}' in a system block{hint}")


def _check_single(main: SystemBlock, blocks: dict[str, SystemBlock], faults: FaultCollector) -> None:
    """Note references to a block that is referred to already: its modules would occur twice."""
    seen: set[str] = set()
    pending = [main]
    while pending:
        for node in walk_composition(pending.pop().composition):
            if isinstance(node, SystemReference):
                if node.name in seen:
                    faults.add(
                        node.position,
                        f'the system block "{node.name}" is used twice, so that its modules occur twice; '
                        "copy the modules under other names",
                    )
                else:
                    seen.add(node.name)
                    pending.append(blocks[node.name])


def _expanded(node: Composition, blocks: dict[str, SystemBlock]) -> Composition:
    """Replace references to blocks by what they stand for."""
    if isinstance(node, SystemReference):
        return _expanded(blocks[node.name].composition, blocks)
    if isinstance(node, Parallel):
        operands = tuple(_expanded(operand, blocks) for operand in node.operands)
        return Parallel(node.position, node.operator, operands, node.actions)
    if isinstance(node, Hiding):
        return Hiding(node.position, _expanded(node.operand, blocks), node.actions)
    if isinstance(node, ActionRenaming):
        return ActionRenaming(node.position, _expanded(node.operand, blocks), node.pairs)
    return node


def _check_complete(
    main: SystemBlock, expanded: Composition, syntax: ModelSyntax, faults: FaultCollector
) -> None:
    """Note modules that a composition holds twice or not at all."""
    seen: set[str] = set()
    for node in walk_composition(expanded):
        if isinstance(node, ModuleReference):
            if node.module in seen:
                faults.add(
                    node.position,
                    f"module '{node.module}' occurs twice in the system block; copy it under another name",
                )
            seen.add(node.module)
    missing = [module.name for module in syntax.modules if module.name not in seen]
    if missing:
        names = listed([f"'{name}'" for name in missing])
        what = "module is" if len(missing) == 1 else "modules are"
        faults.add(main.position, f"{what} missing from the system block: {names}; add every module once")

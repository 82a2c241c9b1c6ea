"""Walking over compositions of modules."""

from __future__ import annotations

from collections.abc import Iterator

from mtbdd.language.model_syntax import ActionRenaming, Composition, Hiding, Parallel, SystemBlock


def walk_composition(composition: Composition) -> Iterator[Composition]:
    """Yield a composition and everything below it, parents first, from left to right."""
    stack = [composition]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Parallel):
            stack.extend(reversed(node.operands))
        elif isinstance(node, (Hiding, ActionRenaming)):
            stack.append(node.operand)


def introduced_actions(systems: tuple[SystemBlock, ...]) -> frozenset[str]:
    """Return the actions that system blocks bring in by renaming others."""
    nodes = (node for block in systems for node in walk_composition(block.composition))
    return frozenset(new for n in nodes if isinstance(n, ActionRenaming) for _, new in n.pairs)

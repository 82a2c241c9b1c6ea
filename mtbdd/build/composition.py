"""Who acts together: the synchronisations of a model's modules, composed as its system block says.

A composition is worked out from its modules upwards.  What it offers are commands that act alone and, for
each action of its alphabet, the ways in which its modules take that action together; an action without any
way is blocked but still belongs to the alphabet.  The operators are those of Hoare's CSP as PRISM has them:
the process algebra section of PRISM's manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from mtbdd.language.limits import current, raised
from mtbdd.language.model_syntax import (
    ActionRenaming,
    Command,
    Composition,
    Hiding,
    Module,
    ModuleReference,
    Parallel,
    ResolvedModel,
)

Parts = tuple[tuple[Command, ...], ...]


@dataclass(frozen=True)
class Synchronisation:
    """An action (None: unlabelled or hidden) and, for every module that takes part, its commands."""

    action: str | None
    parts: Parts


@dataclass
class _Offer:
    """What a composition offers: commands without an action, and the ways to take each action."""

    alone: list[Parts] = field(default_factory=list)
    together: dict[str, list[Parts]] = field(default_factory=dict)


def synchronisations(model: ResolvedModel) -> list[Synchronisation]:
    """Return who acts together in a model.

    Parameters
    ----------
    model : ResolvedModel
        Its `system` says how the modules are composed; None: all take shared actions together.

    Returns
    -------
    list of Synchronisation
        Without an action first, in order of the text, then the actions in order of appearance.  One action
        has several synchronisations if modules take it independently of one another.

    Raises
    ------
    OverflowError
        An action can be taken in more ways than the limits allow.

    Notes
    -----
    Time: O(modules × actions + synchronisations).
    """
    modules = {module.name: module for module in model.modules}
    if model.system is None:
        offer = _alphabetised([_of_module(module) for module in model.modules])
    else:
        offer = _of(model.system, modules)
    result = [Synchronisation(None, parts) for parts in offer.alone]
    result += [Synchronisation(action, parts) for action, ways in offer.together.items() for parts in ways]
    return result


def _of(node: Composition, modules: dict[str, Module]) -> _Offer:
    """Return what a composition offers."""
    if isinstance(node, ModuleReference):
        return _of_module(modules[node.module])
    if isinstance(node, Hiding):
        offer = _of(node.operand, modules)
        for action in node.actions:
            offer.alone += offer.together.pop(action, [])
        return offer
    if isinstance(node, ActionRenaming):
        return _renamed(_of(node.operand, modules), dict(node.pairs))
    if isinstance(node, Parallel):
        offers = [_of(operand, modules) for operand in node.operands]
        if node.operator == "||":
            return _alphabetised(offers)
        return _synchronised(offers, frozenset(node.actions))
    raise TypeError(f"expected a composition of modules, got {type(node).__name__}")


def _of_module(module: Module) -> _Offer:
    """Return what a module offers: its unlabelled commands one by one, the others by action."""
    own: dict[str, list[Command]] = {}
    offer = _Offer()
    for command in module.commands:
        if command.action is None:
            offer.alone.append(((command,),))
        else:
            own.setdefault(command.action, []).append(command)
    offer.together = {action: [(tuple(commands),)] for action, commands in own.items()}
    return offer


def _renamed(offer: _Offer, names: dict[str, str]) -> _Offer:
    """Give actions new names, all at once; two actions that get one name are not joined."""
    together: dict[str, list[Parts]] = {}
    for action, ways in offer.together.items():
        together.setdefault(names.get(action, action), []).extend(ways)
    return _Offer(offer.alone, together)


def _alphabetised(offers: list[_Offer]) -> _Offer:
    """Compose so that actions of both sides are taken together, from left to right."""
    total = _Offer()
    for offer in offers:
        total.alone += offer.alone
        for action, ways in offer.together.items():
            mine = total.together.get(action)
            total.together[action] = ways if mine is None else _joined(action, mine, ways)
    return total


def _synchronised(offers: list[_Offer], actions: frozenset[str]) -> _Offer:
    """Compose so that the given actions are taken together, and no others."""
    total, *others = offers
    for offer in others:
        total.alone += offer.alone
        for action in [*offer.together, *(a for a in total.together if a not in offer.together)]:
            mine, theirs = total.together.get(action, []), offer.together.get(action, [])
            total.together[action] = _joined(action, mine, theirs) if action in actions else mine + theirs
    return total


def _joined(action: str, mine: list[Parts], theirs: list[Parts]) -> list[Parts]:
    """Return every way of one side with every way of the other."""
    most, count = current().combinations, len(mine) * len(theirs)
    if count > most:
        raise OverflowError(
            f"the system block lets action '{action}' be taken in more than {most} ways; "
            f"synchronise modules before interleaving them, or {raised('combinations', count)}"
        )
    return [a + b for a, b in product(mine, theirs)]

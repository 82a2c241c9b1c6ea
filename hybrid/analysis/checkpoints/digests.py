"""What a checkpoint belongs to: digests of models, properties, sets of states."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hybrid.matrix.parts.sharing import matrix_digest
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import StateIndex, index_states
from mtbdd.offset.vectors import expand


def model_digest(model: SymbolicModel) -> str:
    """Return a digest of all that answers depend on: matrices, labels, rewards, the text but for its file.

    Notes
    -----
    Time: O(nodes); of models without a text O(states) for every structure of rewards.
    """
    whole = model.whole
    digest = hashlib.sha256(matrix_digest(whole))
    digest.update(repr(replace(whole.source, file="")).encode())
    for name, states in sorted(whole.translator.labels.items()):
        digest.update(name.encode())
        digest.update(states_digest(index_states(whole.manager, states)).encode())
    for reward in () if whole.given is None else whole.given.rewards:
        digest.update(repr(reward.name).encode())
        for term in (reward.states, *reward.choices):
            digest.update(b"-" if term is None else expand(term, whole.index).tobytes())
    return digest.hexdigest()


def states_digest(states: StateIndex) -> str:
    """Return a digest of the states that an index numbers.  Time: O(nodes)."""
    digest = hashlib.sha256()
    for level in (*states.low, *states.high):
        digest.update(level.tobytes() + b"|")
    return digest.hexdigest()


def text_digest(text: str) -> str:
    """Return twelve digits that tell a property from others."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]

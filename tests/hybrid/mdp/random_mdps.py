"""Random small MDPs for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["mdps"]

_ACTIONS = ("", "a", "b")


@st.composite
def mdps(draw: st.DrawFn) -> str:
    """Draw the text of an MDP of up to six states, with up to three choices each, loops and dead ends."""
    n = draw(st.integers(2, 6))
    commands = ["[a] x<0 -> true;", "[b] x<0 -> true;"]
    for s in range(n):
        for _ in range(draw(st.integers(0, 3 if n < 6 else 2))):
            action = draw(st.sampled_from(_ACTIONS))
            targets = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
            weights = draw(st.lists(st.integers(1, 3), min_size=len(targets), max_size=len(targets)))
            total = sum(weights)
            updates = " + ".join(f"{w}/{total}:(x'={t})" for w, t in zip(weights, targets, strict=True))
            commands.append(f"[{action}] x={s} -> {updates};")
    rewards = [f"x={s} : {draw(st.integers(0, 2))};" for s in range(n)]
    rewards += [f"[{a}] x={s} : {draw(st.integers(0, 2))};" for a in _ACTIONS for s in range(n)]
    free = draw(st.sets(st.integers(0, n - 1)))
    body = "\n".join(commands)
    paid = "\n".join(r for r in rewards if int(r.split("x=")[1].split(" ")[0]) not in free)
    return (
        f"mdp\nmodule m\nx : [0..{n - 1}];\n{body}\nendmodule\n"
        f"init true endinit\nrewards\n{paid}\nx<0 : 1;\nendrewards\n"
    )

"""Three small models as other tools write them: a chain, a decision process, a chain with rates and rewards.

`EXPECTED` has what the models are; the others have the texts: header comments, order of fields, numbers of
labels, and comments with valuations are those of PRISM 4.10 and of Storm 2.0.
"""

from __future__ import annotations

from typing import Any

__all__ = ["EXPECTED", "PRISM_DRN", "PRISM_FILES", "STORM_DRN"]

EXPECTED: dict[str, dict[str, Any]] = {
    "lamp": {
        "type": "dtmc",
        "rows": [[{1: 0.25, 2: 0.75}], [{1: 1.0}], [{0: 1.0}]],
        "initial": [0],
        "variables": {"s": [0, 1, 2], "on": [False, True, False]},
        "labels": {"broken": [1], "dark": [0, 2]},
        "rewards": {"cost": ([2.0, 0.0, 0.5], [0.0, 0.0, 0.0])},
    },
    "game": {
        "type": "mdp",
        "rows": [[{1: 0.5, 2: 0.5}, {0: 1.0}], [{1: 1.0}], [{0: 1.0}]],
        "actions": ["go", None, "stop", "go"],
        "initial": [0],
        "variables": {"x": [-1, 0, 3]},
        "labels": {"goal": [1, 2]},
        "rewards": {
            "cost": ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
            "gain": ([0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.5]),
        },
    },
    "line": {
        "type": "ctmc",
        "rows": [[{1: 4.0}], [{0: 3.0, 2: 1.0}], [{1: 0.5}]],
        "initial": [0],
        "variables": {"n": [0, 1, 2]},
        "labels": {"full": [2]},
        # Of the jumps from 1, that to 0 earns 1; its rate is 3 of 4.
        "rewards": {
            "jobs": ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
            "served": ([0.0, 0.0, 0.0], [0.0, 0.75, 1.0]),
        },
    },
}
"""Rows by state and choice as targets with values; masks as states; rewards of states and of choices."""


PRISM_FILES = {
    "lamp": {
        "tra": "# Transitions (DTMC)\n3 4\n0 1 0.25 break\n0 2 0.75\n1 1 1\n2 0 1 light\n",
        "sta": "# States\n(s,on)\n0:(0,false)\n1:(1,true)\n2:(2,false)\n",
        "lab": '# Labels\n0="init" 1="deadlock" 2="broken" 3="dark"\n0: 0 3\n1: 2\n2: 3\n',
        "srew": '# Reward structure "cost"\n# State rewards\n3 2\n0 2\n2 0.5\n',
        "trew": '# Reward structure "cost"\n# Transition rewards\n3 0\n',
    },
    "game": {
        "tra": "# Transitions (MDP)\n3 4 5\n0 0 1 0.5 go\n0 0 2 0.5 go\n0 1 0 1\n1 0 1 1 stop\n2 0 0 1 go\n",
        "sta": "# States\n(x)\n0:(-1)\n1:(0)\n2:(3)\n",
        "lab": '# Labels\n0="init" 1="deadlock" 2="goal"\n0: 0\n1: 2\n2: 2\n',
        "1.srew": '# Reward structure "cost"\n# State rewards\n3 1\n0 1\n',
        "1.trew": '# Reward structure "cost"\n# Transition rewards\n3 4 0\n',
        "2.srew": '# Reward structure "gain"\n# State rewards\n3 0\n',
        "2.trew": '# Reward structure "gain"\n# Transition rewards\n3 4 3\n0 0 1 2\n0 0 2 2\n2 0 0 0.5\n',
    },
    "line": {
        "tra": "# Transitions (CTMC)\n3 4\n0 1 4 enter\n1 0 3\n1 2 1 enter\n2 1 0.5\n",
        "sta": "# States\n(n)\n0:(0)\n1:(1)\n2:(2)\n",
        "lab": '# Labels\n0="init" 1="deadlock" 2="full"\n0: 0\n2: 2\n',
        "1.srew": '# Reward structure "jobs"\n# State rewards\n3 2\n1 1\n2 2\n',
        "1.trew": '# Reward structure "jobs"\n# Transition rewards\n3 0\n',
        "2.srew": '# Reward structure "served"\n# State rewards\n3 0\n',
        "2.trew": '# Reward structure "served"\n# Transition rewards\n3 2\n1 0 1\n2 1 1\n',
    },
}
"""By model and by what follows its name; the combined file has the same with empty lines between."""


def _drn(tool: str, kind: str, rewards: str, n_choices: int, model: str) -> str:
    """Return a file with a tool's header; Storm tells the type of values and ends names with a blank."""
    is_storm = tool == "storm"
    value_type = "@value_type: double\n" if is_storm else ""
    return (
        f"// Exported by {tool}\n// Original model type: {kind}\n@type: {kind}\n{value_type}@parameters\n\n"
        f"@reward_models\n{rewards}{' ' * is_storm}\n@nr_states\n3\n@nr_choices\n{n_choices}\n@model\n"
        f"{model}{chr(10) * is_storm}"
    )


PRISM_DRN = {
    "lamp": _drn("prism", "DTMC", "cost", 3, """\
state 0 [2] init dark
\taction 0 [0]
\t\t1 : 0.25
\t\t2 : 0.75
state 1 [0] broken
\taction 0 [0]
\t\t1 : 1
state 2 [0.5] dark
\taction 0 [0]
\t\t0 : 1
"""),
    "game": _drn("prism", "MDP", "cost gain", 4, """\
state 0 [1, 0] init
\taction go [0, 2]
\t\t1 : 0.5
\t\t2 : 0.5
\taction __NOLABEL__ [0, 0]
\t\t0 : 1
state 1 [0, 0] goal
\taction stop [0, 0]
\t\t1 : 1
state 2 [0, 0] goal
\taction go [0, 0.5]
\t\t0 : 1
"""),
    "line": _drn("prism", "CTMC", "served jobs", 3, """\
state 0 !4.0 [0, 0] init
\taction 0 [0, 0]
\t\t1 : 4
state 1 !4.0 [0, 1]
\taction 0 [0.75, 0]
\t\t0 : 3
\t\t2 : 1
state 2 !0.5 [0, 2] full
\taction 0 [1, 0]
\t\t1 : 0.5
"""),
}  # fmt: skip

STORM_DRN = {
    "lamp": _drn("storm", "DTMC", "cost", 3, """\
state 0 [2] dark init
//[s=0\t& !on]
\taction __NOLABEL__ [0]
\t\t1 : 0.25
\t\t2 : 0.75
state 1 [0] broken
//[s=1\t& on]
\taction __NOLABEL__ [0]
\t\t1 : 1
state 2 [0.5] dark
//[s=2\t& !on]
\taction light [0]
\t\t0 : 1
"""),
    "game": _drn("storm", "MDP", "cost gain", 4, """\
state 0 [1, 0] init
//[x=-1]
\taction go [0, 2]
\t\t1 : 0.5
\t\t2 : 0.5
\taction __NOLABEL__ [0, 0]
\t\t0 : 1
state 1 [0, 0] goal
//[x=0]
\taction stop [0, 0]
\t\t1 : 1
state 2 [0, 0] goal
//[x=3]
\taction go [0, 0.5]
\t\t0 : 1
"""),
    "line": _drn("storm", "CTMC", "served jobs", 3, """\
state 0 !4 [0, 0] init
//[n=0]
\taction enter [0, 0]
\t\t1 : 4
state 1 !4 [0, 1]
//[n=1]
\taction enter [0.75, 0]
\t\t0 : 3
\t\t2 : 1
state 2 !0.5 [0, 2] full
//[n=2]
\taction __NOLABEL__ [1, 0]
\t\t1 : 0.5
"""),
}  # fmt: skip

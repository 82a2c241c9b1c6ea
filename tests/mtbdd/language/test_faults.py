"""Malformed models: each with its message and its place."""

from __future__ import annotations

import pytest

from mtbdd.language import LanguageError, parse_model, resolve

# Text, place of the (only) fault, part of its message.
SYNTAX = [
    ("dtmc", "1:5", "expected at least one module, got the end of the text"),
    ("", "1:1", "expected a model, got the end of the text"),
    ("dtmc\nmodul m endmodule", "2:1", "got 'modul'; did you mean 'module'?"),
    ("dtmc mdp module m endmodule", "1:6", "expected one model type, got a second one, 'mdp'"),
    ("dtmc module m", "1:14", "'endmodule', got the end of the text; module 'm' is still open"),
    (
        "dtmc module F endmodule",
        "1:13",
        "expected the module's name after 'module', got 'F', a reserved word",
    ),
    ("dtmc module 3 endmodule", "1:13", "expected the module's name after 'module', got '3'"),
    (
        "dtmc module m x : [0..3] endmodule",
        "1:26",
        "expected ';' after the declaration of 'x', got 'endmodule'",
    ),
    ("dtmc module m x : [0,3]; endmodule", "1:21", "expected '..' between the bounds of a variable, got ','"),
    ("dtmc module m x : integer; endmodule", "1:19", "expected a type, [low..high] or bool, got 'integer'"),
    ("dtmc module m x : int; endmodule", "1:19", "unbounded int, which is not supported; give it bounds"),
    ("pta module m c : clock; endmodule", "1:1", "probabilistic timed automata (pta) are not supported"),
    ("mdp module m c : clock; endmodule", "1:18", "'c' is a clock; timed automata are not supported"),
    ("mdp module m x : [0..1]; invariant true endinvariant endmodule", "1:26", "invariants belong to timed"),
    ("pomdp module m endmodule", "1:1", "partially observable models (pomdp) are not supported"),
    ("mdp observables x endobservables", "1:5", "observables belong to partially observable models"),
    ("smg module m endmodule", "1:1", "stochastic games (smg) are not supported"),
    ("mdp player p m endplayer", "1:5", "players belong to stochastic games"),
    ("imdp module m endmodule", "1:1", "interval models (imdp) are not supported"),
    ("mdp module m x:[0..1]; [] true -> [0.1,0.2]:(x'=1); endmodule", "1:35", "interval probabilities"),
    ("mdp module m x:[0..1]; [a,b] true -> (x'=1); endmodule", "1:26", "expected one action in a command"),
    ("mdp module m x:[0..1]; [] x=0 (x'=1); endmodule", "1:31", "expected '->' after the guard, got '('"),
    (
        "mdp module m x:[0..1]; [] x=0 -> x'=1; endmodule",
        "1:35",
        "expected ':' after an update's weight, got an apostrophe (')",
    ),
    (
        "mdp module m x:[0..1]; [] x=0 -> (x=1); endmodule",
        "1:36",
        "expected an apostrophe after x, as in (x' = ...), got '='",
    ),
    (
        "mdp module m x:[0..1]; [] x=0 -> 1 : (x=1); endmodule",
        "1:40",
        "expected an apostrophe after x, as in",
    ),
    ("mdp module m x:[0..1]; [] x=0 -> (x=1) & (x'=1); endmodule", "1:36", "expected an apostrophe after x"),
    ("mdp module m x:[0..1]; [] x=0 -> (x'=1) & (x=1); endmodule", "1:45", "expected an apostrophe after x"),
    ("mdp module m x:[0..1]; [] x=0 -> (x=1?0.5:0.5); endmodule", "1:47", "expected ':' after an update's"),
    ("mdp module m x:[0..1]; [] x=0 -> (x' 1); endmodule", "1:38", "expected '=' after x' in an assignment"),
    ("mdp module m x:[0..1]; [] x=0 -> ; endmodule", "1:34", "expected an update after '->', got ';'"),
    ("mdp module m x:[0..1]; [] x=0 -> (x'=1), (x'=0); endmodule", "1:40", "expected ';' after a command"),
    (
        "mdp module m x:[0..1]; [] x=0 -> (x'=1) + (x'=0); endmodule",
        "1:41",
        "expected a weight before every one",
    ),
    ("mdp module m x:[0..1]; [] x=0 -> 1:(x'=1) + (x'=0); endmodule", "1:51", "got none at 1:45"),
    ("mdp module m [] true -> true; x : bool; endmodule", "1:31", "declare the module's variables before"),
    ("mdp module m x:[0..1]; [] x==0 -> true; endmodule", "1:29", "equality is a single '='"),
    ("mdp module m x:[0..1]; [] x=0 && x=1 -> true; endmodule", "1:32", "'and' is a single '&'"),
    ("mdp module m x:[0..1]; [] x=0 || x=1 -> true; endmodule", "1:32", "'or' is a single '|'"),
    (
        "mdp module m x:[0..1]; [] (x=0 -> true; endmodule",
        "1:32",
        "expected ')' to close the bracket opened at 1:27",
    ),
    ("mdp module m x:[0..1]; [] x=0) -> true; endmodule", "1:30", "expected '->' after the guard, got ')'"),
    (
        "mdp module m x:[0..1]; [] x ? 1 -> true; endmodule",
        "1:33",
        "expected ':' between the branches of '?'",
    ),
    (
        "mdp module m x:[0..1]; [] min() > 0 -> true; endmodule",
        "1:31",
        "expected an argument of 'min', got ')'",
    ),
    ("mdp module m x:[0..1]; [] min > 0 -> true; endmodule", "1:31", "expected '(' after the function 'min'"),
    (
        "mdp module m x:[0..1]; [] x # 1 -> true; endmodule",
        "1:29",
        "got the character '#', which has no meaning here",
    ),
    ("mdp module m x:[0..1]; [] x ≤ 1 -> true; endmodule", "1:29", "'≤' (U+2264), which has no meaning here"),
    ("mdp module m x:[0..1]; [] x < endmodule", "1:31", "expected an expression, got 'endmodule'"),
    ("mdp module m x:[0..9223372036854775808]; endmodule", "1:20", "expected an integer up to"),
    ("mdp const double d = 1e999; module m endmodule", "1:22", "too large for a double"),
    ("mdp const N 4; module m endmodule", "1:13", "expected '=' or ';' after the constant 'N', got '4'"),
    ("mdp const int = 4; module m endmodule", "1:15", "expected a constant's name, got '='"),
    (
        "mdp label top = true; module m endmodule",
        "1:11",
        'expected a label\'s name in double quotes, like "name"',
    ),
    ('mdp label "to p" = true; module m endmodule', "1:11", "made of letters, digits and _"),
    ('mdp label "top = true; module m endmodule', "1:11", "got a quote"),
    (
        "mdp formula f true; module m endmodule",
        "1:15",
        "expected '=' after the formula's name 'f', got 'true'",
    ),
    ("mdp rewards true : 1; module m endmodule", "1:23", "expected an expression, got 'module'"),
    ("mdp rewards true : 1;", "1:22", "expected 'endrewards', got the end of the text"),
    (
        "mdp rewards true 1; endrewards module m endmodule",
        "1:18",
        "between the guard and the value of a reward",
    ),
    ("mdp init true endinit init true endinit", "1:23", "expected one init ... endinit, got a second one"),
    (
        "mdp module m endmodule init true",
        "1:33",
        "expected 'endinit' after the predicate of the initial states",
    ),
    ("mdp module m endmodule system m", "1:32", "expected 'endsystem' or one of || ||| |[a,b]|"),
    ("mdp module m endmodule system m | m endsystem", "1:33", "expected '||', '|||' or '|[actions]|'"),
    ("mdp module m endmodule system m |[a|| m endsystem", "1:36", "expected ']' or ',' after an action"),
    ("mdp module m endmodule system m |[]| m endsystem", "1:35", "expected an action's name after '|['"),
    ("mdp module m endmodule system m |[a]| m |[a]| m endsystem", "1:41", "write (a |[x]| b) |[y]| c"),
    ("mdp module m endmodule system (m || m endsystem", "1:39", "close the bracket opened at 1:31"),
    ("mdp module m endmodule system m/a endsystem", "1:33", "expected '{' after '/' in a system block"),
    (
        "mdp module m endmodule system m{a->b} endsystem",
        "1:34",
        "expected '<' after the action 'a', got '->'",
    ),
    ("mdp module m endmodule system m{a<b} endsystem", "1:35", "expected '-' after 'a<', got 'b'"),
    ("mdp module m endmodule system m/{a,b,a} endsystem", "1:38", "action 'a' is named twice here"),
    ("mdp module m endmodule system m{a<-b,a<-c} endsystem", "1:38", "action 'a' is named twice here"),
    ("mdp module m endmodule system endsystem", "1:31", "expected a module's name, got 'endsystem'"),
    ("mdp module b = a x=y endmodule", "1:18", "expected '[' after the module to copy, got 'x'"),
    ("mdp module b = a [x] endmodule", "1:20", "expected '=' in a renaming, got ']'"),
    ("mdp /* x */ module m endmodule", "1:5", "expected a part of a model"),
]

M = "module m x:[0..3]; b:bool; [a] x=0 -> (x'=1); endmodule"
SEMANTIC = [
    # Names.
    (
        f"mdp const int N=1; const int N=2; {M}",
        "1:30",
        "constant 'N' is declared a second time, first as constant at 1:15",
    ),
    (f"mdp const int x=1; {M}", "1:29", "variable 'x' is declared a second time, first as constant"),
    (f"mdp formula f=1; formula f=2; {M}", "1:26", "formula 'f' is declared a second time"),
    (
        f"mdp {M} module n x:bool; endmodule",
        "1:70",
        "variable 'x' is declared a second time, first as variable at 1:14",
    ),
    (f"mdp {M} module m y:bool; endmodule", "1:61", "module 'm' is declared a second time"),
    (f'mdp {M} label "l"=b; label "l"=!b;', "1:80", "label 'l' is declared a second time"),
    (f'mdp {M} label "init"=b;', "1:67", 'the label "init" is built in'),
    (
        f'mdp {M} rewards "r" b:1; endrewards rewards "r" b:2; endrewards',
        "1:89",
        "reward structure 'r' is declared",
    ),
    (
        f"mdp {M} module n y:bool; [] true -> (x'=1); endmodule",
        "1:90",
        "module 'n' assigns 'x', a variable of module 'm'",
    ),
    (
        "mdp global g:[0..1]; module m [a] true -> (g'=1); endmodule",
        "1:44",
        "the global variable 'g' is assigned in a command with",
    ),
    (
        "mdp module m x:[0..1]; [] true -> (x'=1)&(x'=0); endmodule",
        "1:43",
        "'x' is assigned twice in one update",
    ),
    (
        "mdp module m x:[0..1]; [] true -> (y'=1); endmodule",
        "1:36",
        "unknown variable 'y' in an assignment; declare",
    ),
    ("mdp module m count:[0..1]; [] true -> (cuont'=1); endmodule", "1:40", "did you mean 'count'?"),
    (
        "mdp const int N=1; module m [] true -> (N'=1); endmodule",
        "1:41",
        "only variables can be assigned, got the constant",
    ),
    (
        "mdp module m x:[0..1]; [] y=1 -> true; endmodule",
        "1:27",
        "unknown name 'y'; declare it as a constant",
    ),
    (f'mdp {M} label "l"="k";', "1:71", 'unknown label "k"'),
    ('mdp label "l"=true; const bool c="l"; module m endmodule', "1:34", 'the label "l" cannot be used here'),
    ('mdp module m [] "init" -> true; endmodule', "1:17", '"init" has no value while the model is built'),
    (
        'mdp label "l"="k"; label "k"=!"deadlock"; formula f="l"; module m [] f -> true; endmodule',
        "1:70",
        '\'f\' has no value while the model is built, since "deadlock" and "init" speak of the states',
    ),
    (
        'mdp label "l"=f; formula f="l"; module m endmodule',
        "1:26",
        'definitions depend on one another: f -> "l" -> f',
    ),
    (f"mdp {M} rewards [c] true:1; endrewards", "1:69", "unknown action 'c' in a reward"),
    # Systems.
    (f"mdp {M} system m || n endsystem", "1:73", "unknown module 'n' in a system block; known are m"),
    (f"mdp {M} system m || m endsystem", "1:73", "module 'm' occurs twice in the system block"),
    (
        f"mdp {M} module n endmodule system m endsystem",
        "1:80",
        "module is missing from the system block: 'n'; add every module once",
    ),
    (
        f"mdp {M} system m / {{c}} endsystem",
        "1:68",
        "unknown action 'c' in a system block; no command has it",
    ),
    (f"mdp {M} system m {{c<-a}} endsystem", "1:68", "unknown action 'c' in a system block"),
    (f"mdp {M} system m |[c]| m endsystem", "1:68", "unknown action 'c' in a system block"),
    (f'mdp {M} system "s" endsystem', "1:68", 'unknown system block "s"; name one with system "name"'),
    (f"mdp {M} system m endsystem system m endsystem", "1:80", "expected one system block without a name"),
    (
        f'mdp {M} system "s" m endsystem system "s" m endsystem',
        "1:84",
        "system block 's' is declared a second time, first as system block at 1:61",
    ),
    (
        f'mdp {M} system m endsystem system "s" "t" endsystem system "t" "s" endsystem',
        "1:80",
        'system blocks refer to one another: "s" -> "t" -> "s"; break the circle',
    ),
    (f"mdp {M} system m {{a<-c}} endsystem rewards [d] true:1; endrewards", "1:95", "unknown action 'd'"),
    # Circles.
    (
        f"mdp const int k=l; const int l=n; const int n=k; {M}",
        "1:15",
        "constants depend on one another: k -> l -> n -> k",
    ),
    (f"mdp formula f=g+1; formula g=f; {M}", "1:13", "definitions depend on one another: f -> g -> f"),
    (f'mdp {M} label "l"="l";', "1:67", 'labels depend on one another: "l" -> "l"'),
    # Renaming.
    (
        f"mdp {M} module n=k[x=y] endmodule",
        "1:61",
        "module 'n' copies the unknown module 'k'; known are m, n",
    ),
    ("mdp module a=b[x=y] endmodule module b=a[y=x] endmodule", "1:5", "modules copy one another: a = b = a"),
    (f"mdp {M} module n=m[x=y] endmodule", "1:61", "'b' would be declared twice; add new names, like b=b_n"),
    (f"mdp {M} module n=m[x=y,b=c,x=z] endmodule", "1:80", "'x' is renamed twice"),
    (
        f"mdp {M} module n=m[x=y,b=c,min=d] endmodule",
        "1:80",
        "the functions min and max can only replace each other",
    ),
    # Types.
    ("mdp module m x:[0..1]; [] x -> true; endmodule", "1:27", "a guard must be a bool, got an int 'x'"),
    (
        "mdp module m x:[0..1]; [] true -> (x'=0.5); endmodule",
        "1:39",
        "assigned to 'x' must be an int, got a double '0.5'; use floor",
    ),
    (
        "mdp module m x:[0..1]; [] true -> (x'=true); endmodule",
        "1:39",
        "assigned to 'x' must be an int, got a bool 'true'",
    ),
    (
        "mdp module m x:bool; [] true -> (x'=1); endmodule",
        "1:37",
        "assigned to 'x' must be a bool, got an int '1'",
    ),
    (
        "mdp module m x:bool; [] true -> x:true; endmodule",
        "1:33",
        "the weight of an update must be a number, got a bool 'x'",
    ),
    (f"mdp const int N=2.0; {M}", "1:17", "the value of the constant 'N' must be an int, got a double '2.0'"),
    (f"mdp const bool N=1; {M}", "1:18", "the value of the constant 'N' must be a bool"),
    (
        f"mdp const int N=x; {M}",
        "1:17",
        "must be constant, got 'x', which depends on the variable 'x'; make it a formula",
    ),
    (f'mdp {M} label "l"=x;', "1:71", "the label \"l\" must be a bool, got an int 'x'"),
    (f"mdp {M} rewards x:1; endrewards", "1:69", "the guard of a reward must be a bool"),
    (f"mdp {M} rewards b:b; endrewards", "1:71", "the value of a reward must be a number"),
    (f"mdp {M} init x endinit", "1:66", "the predicate of init ... endinit must be a bool"),
    # Ranges and values.
    ("mdp module m x:[3..1]; endmodule", "1:14", "variable 'x' has the empty range [3..1]"),
    (
        "mdp module m x:[0..1] init 2; endmodule",
        "1:28",
        "the initial value of 'x' must lie in its range [0..1], got 2",
    ),
    (
        "mdp module m x:[0..1.5]; endmodule",
        "1:20",
        "the upper bound of 'x' must be an int, got a double '1.5'",
    ),
    (
        "mdp module m x:[0..1]; y:[0..x]; endmodule",
        "1:30",
        "the upper bound of 'y' must be constant, got 'x'",
    ),
    ("mdp module m x:[0..1] init true; endmodule", "1:28", "the initial value of 'x' must be an int"),
    (
        "mdp module m x:[0..1] init 1; endmodule init x=0 endinit",
        "1:28",
        "has an initial value beside init ... endinit",
    ),
    (
        f"mdp const int N; {M}",
        "1:15",
        "constant without a value: 'N' (int); give it with constants={'N': VALUE}",
    ),
    (f"mdp const double d=1/0; {M}", "1:20", "expected a divisor other than zero, got 1 / 0"),
    (f"mdp const int d=mod(3,0); {M}", "1:17", "expected a positive modulus, got mod(3, 0)"),
    (f"mdp const int d=pow(2,-1); {M}", "1:17", "expected an exponent of at least 0 for ints"),
    (f"mdp const double d=log(-1,2); {M}", "1:20", "expected the logarithm of a positive number"),
    ("mdp module m x:[0..1]; [] x>1/0 -> true; endmodule", "1:29", "expected a divisor other than zero"),
    (f"mdp const int d=9223372036854775807*2; {M}", "1:17", "expected an integer of 64 bits"),
]


def check(text: str, place: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        resolve(parse_model(text, "model.prism"))
    (fault,) = caught.value.faults
    assert f"{fault.position.line}:{fault.position.column}" == place
    assert message in fault.message
    assert str(caught.value) == f"model.prism:{place}: {fault.message}"
    assert "\n" not in fault.message


@pytest.mark.parametrize(("text", "place", "message"), SYNTAX)
def test_syntax_faults(text: str, place: str, message: str) -> None:
    check(text, place, message)


@pytest.mark.parametrize(("text", "place", "message"), SEMANTIC)
def test_faults_of_names_types_and_values(text: str, place: str, message: str) -> None:
    check(text, place, message)

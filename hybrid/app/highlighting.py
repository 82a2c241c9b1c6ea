"""Colours for the PRISM language: a Pygments lexer for models and properties.

Pygments finds it by the name `prism` once the distribution is installed (entry point ``pygments.lexers``). So
do Sphinx, Jupyter and other users of Pygments. Nothing else in this package imports Pygments.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

# Words that open, close or name a part of a text.
DECLARATIONS = (
    *("const", "endinit", "endinvariant", "endmodule", "endobservables", "endrewards", "endsystem"),
    *("formula", "global", "init", "invariant", "label", "module", "observable", "observables", "of"),
    *("rewards", "system"),
)
MODEL_TYPES = (
    *("ctmc", "dtmc", "mdp", "nondeterministic", "pomdp", "popta", "probabilistic", "pta", "stochastic"),
    # Not reserved: these begin a model of a kind that is refused.
    *("csg", "ctmdp", "idtmc", "imdp", "ipomdp", "lts", "ma", "smg", "stpg", "tsg"),
)
TYPES = ("bool", "clock", "double", "int", "prob", "rate")
FUNCTIONS = ("ceil", "floor", "func", "log", "max", "min", "mod", "pow", "round")
OPERATORS = ("P", "Pmax", "Pmin", "R", "Rmax", "Rmin", "S", "filter", "A", "E")
TEMPORAL = ("C", "F", "G", "I", "U", "W", "X")


class PrismLexer(RegexLexer):
    """The lexer of models and of properties in the PRISM language.

    `name`, `aliases`, `filenames`, `mimetypes`: how Pygments finds it: by the name ``prism``, or by the
    endings of files.

    What is no token of the language becomes an ``Error`` token. Words such as `P`, `R` and `F` are operators
    wherever they stand, for the language reserves them. Words of kinds of models that it does not reserve
    (`ma`, `smg`) are keywords only where they stand alone on a line.
    """

    name = "PRISM"
    url = "https://www.prismmodelchecker.org"
    aliases: ClassVar[list[str]] = ["prism"]
    filenames: ClassVar[list[str]] = ["*.prism", "*.pm", "*.nm", "*.sm", "*.props", "*.pctl", "*.csl"]
    mimetypes: ClassVar[list[str]] = ["text/x-prism"]

    tokens: ClassVar = {
        "root": [
            (r"[ \t\r\n\f\v]+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r'"[^"\n]*"', String.Double),
            (rf"(?m)^({'|'.join(MODEL_TYPES)})(?=\s*(?://|$))", Keyword.Type),
            (r"(module)([ \t\r\n]+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (
                r"(formula)([ \t\r\n]+)([A-Za-z_]\w*)",
                bygroups(Keyword.Declaration, Whitespace, Name.Function),
            ),
            (words(DECLARATIONS, suffix=r"\b"), Keyword.Declaration),
            (words(TYPES, suffix=r"\b"), Keyword.Type),
            (words(("true", "false"), suffix=r"\b"), Keyword.Constant),
            (words(OPERATORS, suffix=r"\b"), Keyword),
            (words(TEMPORAL, suffix=r"\b"), Operator.Word),
            (words(FUNCTIONS, suffix=r"(?=[ \t]*\()"), Name.Builtin),
            # Commands begin with their action: [name] or [].
            (r"(\[)([A-Za-z_]\w*)(\])", bygroups(Punctuation, Name.Label, Punctuation)),
            (r"[A-Za-z_][A-Za-z0-9_]*", Name),
            (r"[0-9]*\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+", Number.Float),
            (r"[0-9]+", Number.Integer),
            (r"<=>|->|=>|<=|>=|!=|\.\.", Operator),
            (r"[<>=!&|+\-*/^?']", Operator),
            (r"[()\[\]{}:;,]", Punctuation),
        ]
    }

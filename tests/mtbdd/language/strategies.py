"""Random expressions and random texts for the tests of the language."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Name, Position, Unary

HERE = Position("<test>", 1, 1)

Maker = Callable[[st.SearchStrategy[Expression]], st.SearchStrategy[Expression]]


def _binary(operators: str, left: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.builds(Binary, st.just(HERE), st.sampled_from(operators.split()), left, left)


literals = st.one_of(
    st.booleans(),
    st.integers(0, 2**63 - 1),
    st.floats(0, allow_infinity=False, allow_nan=False),
).map(lambda value: Literal(HERE, value))

# Any tree at all, well-typed or not.
expressions: st.SearchStrategy[Expression] = st.recursive(
    literals | st.sampled_from(["x", "y", "_z1", "floor"]).map(lambda name: Name(HERE, name)),
    lambda below: st.one_of(
        st.builds(Unary, st.just(HERE), st.sampled_from("-!"), below),
        _binary("+ - * / & | => <=> = != < <= > >=", below),
        st.builds(Conditional, st.just(HERE), below, below, below),
        st.builds(
            Call,
            st.just(HERE),
            st.sampled_from(["min", "max", "floor", "ceil", "round", "pow", "mod", "log", "unknown"]),
            st.lists(below, min_size=1, max_size=3).map(tuple),
        ),
    ),
    max_leaves=25,
)

# Well-typed trees over the ints x, y and the bool b.
_int_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.integers(0, 6).map(lambda value: Literal(HERE, value)),
    st.sampled_from("xy").map(lambda name: Name(HERE, name)),
)
_bool_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.booleans().map(lambda value: Literal(HERE, value)), st.just(Name(HERE, "b"))
)


@st.composite
def typed(draw: st.DrawFn, kind: str, depth: int = 3) -> Expression:
    """Return a well-typed expression of kind "int", "double" or "bool"."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        if kind == "double":
            return Literal(HERE, draw(st.sampled_from([0.0, 0.5, 1.0, 2.25])))
        return draw(_bool_leaves if kind == "bool" else _int_leaves)
    number = draw(st.sampled_from(["int", "double"]))

    def below(wanted: str) -> Expression:
        return draw(typed(wanted, depth - 1))

    if draw(st.integers(0, 5)) == 0:
        return Conditional(HERE, below("bool"), below(kind), below(kind))
    if kind == "bool":
        choice = draw(st.integers(0, 3))
        if choice == 0:
            return Unary(HERE, "!", below("bool"))
        if choice == 1:
            operator = draw(st.sampled_from("< <= > >= = !=".split()))
            return Binary(HERE, operator, below(number), below(number))
        operator = draw(st.sampled_from("& | => <=> = !=".split()))
        return Binary(HERE, operator, below("bool"), below("bool"))
    if kind == "int":
        choice = draw(st.integers(0, 4))
        if choice == 0:
            return Unary(HERE, "-", below("int"))
        if choice == 1:
            function = draw(st.sampled_from(["floor", "ceil", "round"]))
            return Call(HERE, function, (below(number),))
        if choice == 2:
            function = draw(st.sampled_from(["min", "max", "mod", "pow"]))
            return Call(HERE, function, (below("int"), below("int")))
        return Binary(HERE, draw(st.sampled_from("+-*")), below("int"), below("int"))
    choice = draw(st.integers(0, 3))
    if choice == 0:
        return Unary(HERE, "-", below("double"))
    if choice == 1:
        function = draw(st.sampled_from(["min", "max", "pow", "log"]))
        return Call(HERE, function, (below("double"), below(number)))
    if choice == 2:
        return Binary(HERE, "/", below(number), below(number))
    return Binary(HERE, draw(st.sampled_from("+-*")), below("double"), below(number))


def mutations(texts: list[str], tokens: list[str]) -> st.SearchStrategy[str]:
    """Return valid texts with pieces cut, doubled, replaced or inserted."""

    @st.composite
    def mutated(draw: st.DrawFn) -> str:
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(1, 3))):
            begin = draw(st.integers(0, len(text)))
            end = min(len(text), begin + draw(st.integers(0, 12)))
            middle = draw(st.sampled_from(["", text[begin:end] * 2, *tokens]))
            text = text[:begin] + middle + text[end:]
        return text

    return mutated()


def soups(tokens: list[str]) -> st.SearchStrategy[str]:
    """Return random sequences of tokens."""
    return st.lists(st.sampled_from(tokens), max_size=40).map(" ".join)

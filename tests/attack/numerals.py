"""Numbers as a model's text writes them, each with the rational number that the text means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

__all__ = ["Numeral", "numeral", "rate", "reward", "tiny_decimals", "weights"]

_TINY = (3, 4, 6, 9, 12, 15, 17, 18, 30, 54, 100, 150, 165, 200, 290, 307)


@dataclass(frozen=True)
class Numeral:
    """A number's text and its exact value."""

    text: str
    value: Fraction

    def __neg__(self) -> Numeral:
        return Numeral(f"-{self.text}", -self.value)


def numeral(text: str) -> Numeral:
    """Return a decimal or a fraction ``p/q`` with its value."""
    return Numeral(text, Fraction(text))


# ------------------------------------------------------------------ probabilities


def weights(
    rng: Random, count: int, style: str, tiny: tuple[str, ...] = ("1e-9",), rare_first: bool = False
) -> list[Numeral]:
    """Return numerals for a row of probabilities, in "rounded" and "doubles" adding up only nearly to 1.

    Parameters
    ----------
    style : str
        "dyadic", "decimal", "fraction", "tiny", "long", "rounded" or "doubles".
    tiny : tuple of str
        Small decimals that the style "tiny" draws from; one weight is what they leave of 1.
    rare_first : bool
        That weight is the last one, and not anywhere.
    """
    if count == 1:
        return [numeral(rng.choice(("1", "1.0")))]
    if style == "dyadic":
        bits = rng.randint(count.bit_length(), 10)
        return [Numeral(_decimal(p, 2**bits), Fraction(p, 2**bits)) for p in _parts(rng, 2**bits, count)]
    if style == "decimal":
        digits = rng.randint(1, 4)
        return [
            Numeral(_decimal(p, 10**digits), Fraction(p, 10**digits)) for p in _parts(rng, 10**digits, count)
        ]
    if style == "fraction":
        whole = rng.randint(count, 60)
        return [numeral(f"{p}/{whole}") for p in _parts(rng, whole, count)]
    if style == "long":
        whole = 10 ** rng.randint(13, 17)
        return [Numeral(_decimal(p, whole), Fraction(p, whole)) for p in _parts(rng, whole, count)]
    if style == "rounded":
        shares = [1.0 / count] * count if rng.random() < 0.5 else _shares(rng, count)
        return [numeral(f"{p:.6f}") for p in shares]
    if style == "doubles":
        return [numeral(repr(p)) for p in _shares(rng, count)]
    small = [numeral(rng.choice(tiny)) for _ in range(count - 1)]
    rest = Numeral("-".join(["1", *(p.text for p in small)]), 1 - sum(p.value for p in small))
    found = [*small, rest]
    if not rare_first:
        rng.shuffle(found)
    return found


def tiny_decimals(rng: Random) -> tuple[str, ...]:
    """Return one to three small decimals for a model."""
    return tuple(f"{rng.choice((1, 1, 2, 5))}e-{rng.choice(_TINY)}" for _ in range(rng.randint(1, 3)))


def _parts(rng: Random, whole: int, count: int) -> list[int]:
    """Return positive whole numbers that add up to `whole`."""
    cuts = [0, *sorted(rng.sample(range(1, whole), count - 1)), whole]
    return [b - a for a, b in zip(cuts, cuts[1:], strict=False)]


def _shares(rng: Random, count: int) -> list[float]:
    parts = [rng.uniform(0.05, 1.0) for _ in range(count)]
    return [p / sum(parts) for p in parts]


def _decimal(part: int, whole: int) -> str:
    """Return a fraction whose denominator divides a power of ten as a decimal, exactly."""
    digits = 0
    while (part * 10**digits) % whole:
        digits += 1
    text = str(part * 10**digits // whole).rjust(digits + 1, "0")
    return text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}"


# ------------------------------------------------------------------ rates and rewards


def rate(rng: Random, style: str) -> Numeral:
    """Return a positive rate: "plain", "stiff" (1e-8 to 1e8) or "extreme" (1e-300 to 1e200)."""
    if style == "plain":
        return numeral(rng.choice(("1", "2", "0.5", "3", "0.25", "10", "1/3", "0.7", "2.5", "1.1")))
    if style == "stiff":
        return numeral(f"{rng.randint(1, 9)}e{rng.randint(-8, 8)}")
    return numeral(f"{rng.randint(1, 9)}e{rng.choice((-300, -200, -100, -30, 0, 5, 30, 100, 150, 200))}")


def reward(rng: Random, style: str) -> Numeral:
    """Return a reward: "whole", "fraction", "signed", "huge", "tiny" or "mixed" (huge, of both signs)."""
    if style == "whole":
        return numeral(str(rng.randint(0, 5)))
    if style == "fraction":
        return numeral(rng.choice(("0.1", "0.2", "0.3", "1/3", "2/7", "0.7", "1.000000001", "0")))
    if style == "signed":
        return (
            numeral(str(rng.randint(-5, 5)))
            if rng.random() < 0.7
            else numeral(rng.choice(("-0.1", "0.3", "-1/3")))
        )
    if style == "huge":
        return numeral(f"{rng.randint(1, 9)}e{rng.choice((12, 15, 16, 17, 30, 100, 200, 290, 300))}")
    if style == "tiny":
        return numeral(f"{rng.randint(1, 9)}e-{rng.choice((3, 9, 17, 100, 200, 300))}")
    return numeral(rng.choice(("1e17", "-1e17", "1", "-1", "9.000000001", "0.5", "1e30", "-1e30", "0")))

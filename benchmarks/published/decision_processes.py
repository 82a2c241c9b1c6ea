"""Decision processes with their property files, sizes to check, and the values that are known beforehand.

The exact values are those of the Quantitative Verification Benchmark Set (A. Hartmanns, M. Klauck, D. Parker,
T. Quatmann, E. Ruijters, TACAS 2019; CC BY 4.0), found by Storm in rational numbers: the entries "results" of
benchmarks/mdp/{consensus,csma,wlan,zeroconf}/index.json and of firewire/results/Storm.exact.*.json in
github.com/ahartmanns/qcomp.  Fractions too long to read stand as the nearest doubles, as published beside
them.  What a dining cryptographer sees is known from the protocol: the announcements of n cryptographers
have one parity, and the 2^(n-1) outcomes of that parity are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["CASES", "Case", "known_value"]


@dataclass(frozen=True)
class Case:
    """A model of a size, and the property files to check on it.

    Attributes
    ----------
    model : str
        Path below the folder of models.
    constants : str
        Constants of the model and of its properties.
    files : tuple of str
        Property files beside the model.
    texts : tuple of str
        Further properties.
    large : bool
        Left out of quick runs.
    """

    model: str
    constants: str
    files: tuple[str, ...]
    texts: tuple[str, ...] = ()
    large: bool = False

    @property
    def family(self) -> str:
        """Folder of the model."""
        return self.model.split("/")[0]

    @property
    def source(self) -> str:
        """Where its known values are from."""
        return "protocol" if self.family == "dining_crypt" else "published"


_FILES = {
    "consensus": ("c1", "c2", "disagree", "steps_max", "steps_min"),
    "csma": ("all_before_max", "all_before_min", "some_before", "time_max", "time_min"),
    "firewire": ("elected", "time_max", "time_min", "time_sending"),
    "wlan": ("collisions", "cost_max", "cost_min", "num_collisions", "sent", "time_max", "time_min"),
    "zeroconf": ("correct_max", "correct_min"),
}

_PUBLISHED: dict[tuple[str, str], tuple[str, ...]] = {
    ("consensus/coin2.nm", "K=2"): ("true", "49/128", "13/120", "75", "48"),
    ("consensus/coin2.nm", "K=4"): ("true", "1793/4096", "251/4080", "243", "192"),
    ("consensus/coin2.nm", "K=8"): ("true", "983041/2097152", "65527/2097120", "867", "768"),
    ("consensus/coin2.nm", "K=16"): (
        "true", "133143986177/274877906944", "4294967279/274877906880", "3267", "3072",
    ),
    ("consensus/coin4.nm", "K=2"): ("true", "325/1024", "170112531/577765376", "363", "192"),
    ("consensus/coin4.nm", "K=4"): (
        "true", "852021/2097152", "45666330762076479/292595849630842880", "1083", "768",
    ),
    ("csma/csma2_2.nm", ""): ("7/8", "7/8", "1/2", "227630345357/3221225472", "53954981353/805306368"),
    ("csma/csma2_4.nm", ""): (
        "1023/1024", "1023/1024", "63/64", "2913525796530569665727/36893488147419103232",
        "2616582446888387288353/34587645138205409280",
    ),
    ("csma/csma2_6.nm", ""): (
        "2097151/2097152", "2097151/2097152", "32767/32768", "89.26394168264682", "84.59041297282278",
    ),
    ("csma/csma3_2.nm", ""): (
        "0.8596150364756961", "0.43496662487687193", "75/128", "105.21135384074029", "93.62411801295093",
    ),
    ("csma/csma3_4.nm", ""): (
        "0.9324469288458124", "0.9046914310341796", "0.9895225981437074", "116.81825582998482",
        "107.31147849578353",
    ),
    ("firewire/firewire.nm", "delay=3"): ("true", "299", "553/4", "18"),
    ("firewire/firewire.nm", "delay=36"): ("true", "365", "553/4", "809/4"),
    ("wlan/wlan0.nm", "COL=0"): ("1", "5852200/209", "7625", "256/209", "true", "79630/21", "1325"),
    ("wlan/wlan1.nm", "COL=0"): (
        "1", "1696029275/7432", "7625", "1117/929", "true", "5751325/1488", "1325",
    ),
    ("wlan/wlan2.nm", "COL=0"): (
        "1", "727176267825/3198976", "7625", "240215/199936", "true", "1478690075/380928", "1325",
    ),
    ("wlan/wlan3.nm", "COL=0"): (
        "1", "30509216674858475/134226116608", "7625", "5039517997/4194566144", "true",
        "130322306383225/33558626304", "1325",
    ),
    ("wlan/wlan4.nm", "COL=0"): (
        "1", "227297.0264498327", "7625", "83554324771603/69545184198656", "true", "3883.4978474255736",
        "1325",
    ),
    ("wlan/wlan5.nm", "COL=0"): (
        "1", "227297.02701182602", "7625", "1.2014394043875687", "true", "3883.49962540938", "1325",
    ),
    ("wlan/wlan6.nm", "COL=0"): (
        "1", "227297.02702975084", "7625", "1.2014394043838117", "true", "3883.499646229621", "1325",
    ),
    ("zeroconf/zeroconf.nm", "N=20,K=2,reset=true"): ("65341/3250265341", "6859/3250206859"),
    ("zeroconf/zeroconf.nm", "N=20,K=4,reset=true"): ("23588101/32502023588101", "2476099/32502002476099"),
    ("zeroconf/zeroconf.nm", "N=20,K=8,reset=true"): (
        "3074024910421/3250200003074024910421", "322687697779/3250200000322687697779",
    ),
    ("zeroconf/zeroconf.nm", "N=1000,K=8,reset=true"): (
        "3074024910421/64024003074024910421", "322687697779/64024000322687697779",
    ),
    ("zeroconf/zeroconf.nm", "N=20,K=2,reset=false"): ("2.0119576888287857e-05", "6859/3250206859"),
    ("zeroconf/zeroconf.nm", "N=1000,K=2,reset=false"): ("0.001060796942774321", "6859/64030859"),
    ("zeroconf/zeroconf.nm", "N=20,K=4,reset=false"): ("7.257432765695758e-07", "2476099/32502002476099"),
}  # fmt: skip
"""The values of a model's property files, in the order of `_FILES`."""

_LARGE = {
    ("consensus/coin4.nm", "K=4"), ("csma/csma3_4.nm", ""), ("firewire/firewire.nm", "delay=36"),
    ("wlan/wlan4.nm", "COL=0"), ("wlan/wlan5.nm", "COL=0"), ("wlan/wlan6.nm", "COL=0"),
    ("zeroconf/zeroconf.nm", "N=20,K=4,reset=false"),
}  # fmt: skip

_CRYPT = ("anonymity.pctl", "correctness.pctl")
# The first line of leader.pctl misspells filter; what it means is asked as a text.
_ONE_LEADER = ("filter(forall, leaders<=1)",)

_OWN = (
    Case("wlan/wlan2.nm", "COL=3", ("collisions.pctl",)),
    Case("dining_crypt/dining_crypt3.nm", "k=3", _CRYPT),
    Case("dining_crypt/dining_crypt3.nm", "k=1", _CRYPT),
    Case("dining_crypt/dining_crypt5.nm", "k=5", _CRYPT),
    Case("dining_crypt/dining_crypt8.nm", "k=7", _CRYPT, large=True),
    Case("leader_async/leader3.nm", "K=30", ("leader.pctl",), _ONE_LEADER),
    Case("leader_async/leader5.nm", "K=60", ("leader.pctl",), _ONE_LEADER),
    Case("leader_async/leader7.nm", "K=100", ("leader.pctl",), _ONE_LEADER, large=True),
    Case("phil/phil-nofair3.nm", "K=20", ("phil.pctl",)),
    Case("phil/phil-nofair4.nm", "K=30", ("phil.pctl",)),
    Case("phil/phil-nofair5.nm", "K=40", ("phil.pctl",)),
    Case("phil/phil-nofair6.nm", "K=40", ("phil.pctl",), large=True),
)


def _published_cases() -> tuple[Case, ...]:
    return tuple(
        Case(
            model, constants, tuple(f"{name}.pctl" for name in _FILES[model.split("/")[0]]),
            large=(model, constants) in _LARGE,
        )
        for model, constants in _PUBLISHED
    )  # fmt: skip


CASES = tuple(sorted((*_published_cases(), *_OWN), key=lambda case: case.large))
"""All cases, large ones last."""


def known_value(case: Case, file: str, index: int) -> Fraction | bool | None:
    """Return the exact value of a property that is known beforehand; None if it is not.

    Parameters
    ----------
    case : Case
    file : str
        Property file.
    index : int
        Place of the property in the file.
    """
    values = _PUBLISHED.get((case.model, case.constants))
    names = _FILES.get(case.family, ())
    stem = file.removesuffix(".pctl")
    if values is not None and stem in names and index == 0:
        text = values[names.index(stem)]
        return text == "true" if text in ("true", "false") else Fraction(text)
    if case.family == "dining_crypt":
        return True if stem == "correctness" else _outcome(case)
    return None


def _outcome(case: Case) -> Fraction:
    """Return the probability that the cryptographers announce the outcome k, when one of them has paid."""
    n = int(case.model.rsplit("crypt", 1)[1].removesuffix(".nm"))
    k = int(case.constants.removeprefix("k="))
    return Fraction(int(k.bit_count() % 2 != n % 2), 2 ** (n - 1))

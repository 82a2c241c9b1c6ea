"""Arguments that would destroy a file, or that ask for more than there is."""

from __future__ import annotations

import pytest

from hybrid.__main__ import main
from hybrid.base.errors import PropertyError
from hybrid.checking import formulas as operators
from tests.builders.chain_texts import DIE, QUEUE


@pytest.fixture
def die(tmp_path):
    path = tmp_path / "die.pm"
    path.write_text(DIE)
    return path


def refused(capsys, *arguments):
    assert main(list(map(str, arguments))) == 2
    return capsys.readouterr().err


def test_no_output_takes_the_place_of_the_model(die, tmp_path, capsys):
    link = tmp_path / "link.pm"
    link.symlink_to(die)
    for target in (die, link, tmp_path / "." / "die.pm"):
        told = refused(capsys, "check", die, "P=? [ F s=7 ]", "--csv", target)
        assert told == f"error: --csv: {target} is the model as well; give another file\n"
    assert die.read_text() == DIE


def test_no_output_takes_the_place_of_the_properties_or_of_another(die, tmp_path, capsys):
    properties = tmp_path / "die.props"
    properties.write_text("P=? [ F s=7 ];")
    told = refused(capsys, "check", die, properties, "--csv", properties)
    assert "is the property as well" in told
    assert properties.read_text() == "P=? [ F s=7 ];"
    one = tmp_path / "out.csv"
    told = refused(capsys, "check", die, properties, "--csv", one, "--scheduler", one)
    assert told == f"error: --scheduler: {one} is what --csv writes as well; give another file\n"
    assert not one.exists()


@pytest.mark.parametrize("values", ["0:1e999999999", "0:1e-999999999:1", "1e-500:1", "-1e401:1e400:1e401"])
def test_r8_ranges_of_constants_have_numbers_that_can_be_written_out(die, values, capsys):
    told = refused(capsys, "check", die, "P=? [ F s=7 ]", "--const", f"K={values}")
    assert told.startswith("error: --const: the numbers of the range of K need more than 400 digits")


def test_r10_plots_in_missing_folders_are_told(die, tmp_path, capsys):
    target = tmp_path / "missing" / "plot.png"
    for command in (["levels", die, "--plot", target], ["plot-matrix", die, "-o", target]):
        told = refused(capsys, *command)
        assert told.startswith("error: ") and told.endswith("No such file or directory\n")
        assert str(target) in told


def test_a_fault_of_the_property_is_told_and_a_defect_is_not_called_an_answer(tmp_path, monkeypatch):
    import hybrid

    path = tmp_path / "queue.sm"
    path.write_text(QUEUE)
    model = hybrid.load(path)
    missing = hybrid.check(model, "filter(min, P=? [ F true ], false)", throw=False)
    assert missing.error is not None and "no reachable state satisfies" in missing.error

    def broken(*arguments, **options):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(operators, "operator_values", broken)
    with pytest.raises(ValueError, match="could not be broadcast"):
        hybrid.check(model, "P=? [ F<=1 true ]", throw=False)

    def unfit(*arguments, **options):
        raise PropertyError("does not fit")

    monkeypatch.setattr(operators, "operator_values", unfit)
    assert hybrid.check(model, "P=? [ F<=1 true ]", throw=False).error == "does not fit"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("!(", ")"), ("filter(forall, ", ")"), ("P>=0.1 [ F ", " ]"), ("P>=0.1 [ true U ", " ]"),
        ("S>=0 [ ", " ]"), ("s=1 ? s=2 : (", ")"), ("P>=0 [ F s=1 & (", ") ]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("depth", [97, 5000])
def test_nested_properties_are_answered_or_refused(die, begin, end, depth, capsys):
    text = begin * depth + "s=7" + end * depth
    status = main(["check", str(die), text, "--quiet"])
    told = capsys.readouterr()
    assert status in (0, 2)
    assert status == 0 or "expected at most 100 levels of nesting, got more" in told.err

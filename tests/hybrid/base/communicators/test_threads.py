"""Parts in one process: they agree, take turns, and end together."""

from __future__ import annotations

import threading

import pytest

from hybrid.base.communicators import PartEndedError, in_threads
from mtbdd.base.communicator import ALONE, Communicator
from tests.builders.communicators import check_communicator


def test_a_process_alone_answers_itself() -> None:
    assert check_communicator(ALONE)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_threads_agree(size: int) -> None:
    assert in_threads(size, check_communicator) == [True] * size


def test_one_part_runs_at_a_time() -> None:
    running: list[int] = []

    def run(alike: Communicator) -> int:
        for _ in range(20):
            running.append(alike.rank)
            assert len(running) == 1
            sum(range(2000))
            assert running.pop() == alike.rank
            alike.gather([1.0])
        return threading.get_ident()

    idents = in_threads(3, run)
    assert idents[0] == threading.get_ident()
    assert len(set(idents)) == 3


@pytest.mark.parametrize("failing", [0, 2])
def test_the_error_of_one_part_ends_all(failing: int) -> None:
    ended = []

    def run(alike: Communicator) -> None:
        try:
            alike.gather([1.0])
            if alike.rank == failing:
                raise ZeroDivisionError("of one part")
            alike.gather([2.0])
        finally:
            ended.append(alike.rank)

    with pytest.raises(ZeroDivisionError, match="of one part"):
        in_threads(3, run)
    assert sorted(ended) == [0, 1, 2]


def test_parts_that_ask_for_different_things_are_told_apart() -> None:
    def run(alike: Communicator) -> None:
        if alike.rank:
            alike.gather([1.0])
        else:
            alike.gather([1.0, 2.0])

    with pytest.raises(RuntimeError, match="1 numbers and 2 numbers|2 numbers and 1 numbers"):
        in_threads(2, run)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_answer_that_fails_in_one_part_fails_in_all_and_the_next_goes_on(failing: int) -> None:
    def answer(alike: Communicator, fails: bool) -> str:
        try:
            if fails and alike.rank == failing:
                raise ValueError
            alike.gather([1.0])
            said = "answered"
        except ValueError:
            said = "failed"
        except PartEndedError:
            said = "ended"
        why = alike.finish(None if said == "answered" else "why" if said == "failed" else "")
        assert why == (None if said == "answered" else "why")
        return said

    def run(alike: Communicator) -> list[str]:
        return [answer(alike, fails) for fails in (False, True, False)]

    for rank, said in enumerate(in_threads(3, run)):
        assert said == ["answered", "failed" if rank == failing else "ended", "answered"]

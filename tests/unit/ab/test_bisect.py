"""The search alone: it finds every culprit in about log2(n) looks, and ends where it cannot."""

import math

import pytest

from scalesweep.ab.first_bad import BAD, GOOD, SKIPPED, Search


def searched(commits: int, culprit: int, broken: frozenset[int] = frozenset()) -> Search:
    search = Search([str(n) for n in range(commits)])
    looks: list[int] = []

    def look(place: int) -> tuple[str, str]:
        looks.append(place)
        if place in broken:
            return SKIPPED, "does not build"
        return (BAD, "") if place >= culprit else (GOOD, "")

    search.run(look)
    assert len(looks) == len(set(looks))
    assert len(looks) <= math.ceil(math.log2(commits)) + len(broken)
    return search


@pytest.mark.parametrize("commits", [1, 2, 3, 7, 8, 33])
def test_every_culprit_is_found(commits: int) -> None:
    for culprit in range(commits):
        search = searched(commits, culprit)
        assert (search.good, search.bad, search.between) == (culprit - 1, culprit, [])


def test_a_commit_that_cannot_be_judged_is_left_out() -> None:
    for broken in range(8):
        for culprit in set(range(9)) - {broken}:
            search = searched(9, culprit, frozenset({broken}))
            assert search.bad == culprit
            assert search.between == ([broken] if broken == culprit - 1 else [])
            assert search.good == culprit - 1 - len(search.between)


def test_with_none_left_it_ends() -> None:
    search = searched(6, 3, frozenset(range(5)))
    assert (search.good, search.bad, search.between) == (-1, 5, [0, 1, 2, 3, 4])

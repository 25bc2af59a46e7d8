"""The page of a history in a real browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.history_settings import HistorySettings
from scalesweep.history.run import write_history
from scalesweep.history.settled import keep
from scalesweep.history.store import append
from tests.fakes.history import FakeSession, make_history, make_session, settled_of
from tests.report.visits import NEEDED, Visit, check_phone, check_sound, sorted_by_cells

pytestmark = [pytest.mark.browser, NEEDED]

RUN = "b-r1-000000000000"  # of the session whose results are still there


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    make_history(folder)
    keep(folder, replace(settled_of(9, 10), first_bad=True))
    results = folder / "results"
    (results / "runs" / "there" / RUN).mkdir(parents=True)
    (results / "runs" / "there" / RUN / "record.json").write_text("{}")
    (results / "report.html").write_text("<title>the report</title>")
    session = make_session(FakeSession(0, {"p": [1.0]}, site="there"))
    for rows in session.rows.values():
        for row in rows:
            dict.update(row, results=str(results))  # type: ignore[arg-type]
    append(folder, [session])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scalesweep.history.page.MAX_FIGURES", 1)  # each takes a quarter of a second
        write_history(HistorySettings(folder))
    return folder / "history.html"


def test_it_is_sound_and_asks_for_nothing(browser: Any, page: Path) -> None:
    visit = Visit(browser, page.as_uri())
    assert len(sorted_by_cells(visit, "Change")) == 5
    visit.wake()
    # Weak and strong, CPU and GPU apart.
    charts = visit.page.locator("[data-chart]").all()
    assert {chart.get_attribute("aria-label") for chart in charts} == {
        "Chart of b on here, CPU, weak scaling",
        "Chart of b on gpus, GPU, strong scaling",
        "Chart of b on new, CPU, weak scaling",
        "Chart of b on there, CPU, weak scaling",
    }
    check_sound(visit, page.as_uri())
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, page: Path, scheme: str) -> None:
    check_phone(browser, page.as_uri(), scheme)


def test_a_chart_changes_with_its_choices(browser: Any, page: Path) -> None:
    """The gravest series comes first; what it is over and its unit can be chosen."""
    visit = Visit(browser, page.as_uri())
    visit.wake()
    chart = visit.page.locator("[data-chart]").first
    said = lambda: str(chart.locator(".plot").get_attribute("aria-label"))  # noqa: E731
    assert chart.get_attribute("data-drawn") == "14"
    assert said().startswith("step_time, relative (lower is better) over commits: ranks 2")
    assert "regression: b on here" in chart.inner_text()
    which, over, unit = chart.locator(".picks:not(.show) select").all()[:3]
    for select, choice, wanted in (
        (over, "dates of the sessions", "over dates: ranks 2"),
        (unit, "as measured", "step_time [s] over dates"),
        (which, "ranks 4: step_time (no change)", "over dates: ranks 4"),
    ):
        select.select_option(label=choice)
        visit.page.wait_for_function(
            "([e, text]) => e.querySelector('.plot').ariaLabel.includes(text)",
            arg=[chart.element_handle(), wanted],
        )
    assert "1 outlier (triangles)" in chart.inner_text()
    assert "horovod 0.28.1 → 0.28.2" in chart.inner_text()
    assert visit.said == []
    visit.context.close()


def test_a_session_leads_to_its_report_and_records(browser: Any, page: Path) -> None:
    visit = Visit(browser, page.as_uri())
    visit.wake()
    gone, there = (
        visit.page.get_by_role("group", name=f"Chart of b on {site},") for site in ("here", "there")
    )
    mark = gone.locator(".mark-symbol path").last
    mark.scroll_into_view_if_needed()
    mark.click(force=True)
    assert gone.get_attribute("data-session") == "0013cccccc"
    assert "/scratch/results/13 (no longer there)" in gone.locator(".session").inner_text()
    gone.locator(".picks select").last.select_option(index=2)
    assert gone.get_attribute("data-session") == "0012cccccc"
    there.locator(".picks select").last.select_option(index=1)
    links = {one.inner_text(): one.get_attribute("href") for one in there.locator("a").all()}
    assert links == {
        "report": "./results/report.html",
        RUN: f"./results/runs/there/{RUN}/record.json",
    }
    there.get_by_role("link", name="report").click()
    assert visit.page.title() == "the report"
    visit.context.close()


def test_components_are_against_their_own_baseline(browser: Any, tmp_path: Path) -> None:
    """Runtime, % MPI and % copies in one chart; what has no baseline is named, not drawn; and
    speedup of the same points."""
    fakes = []
    for day in range(9):
        parts = {"mpi": 15.0 + (5.0 if day > 6 else 0.0), "copies": 0.0 if day < 3 else 5.0}
        parts["gemm" if day < 7 else "matmul"] = 80.0
        points = {f"ranks {count}": [1.0, 1.01, 1.02] for count in (1, 2)}
        fakes.append(FakeSession(day, points, parts=[parts] * 3))
    append(tmp_path, map(make_session, fakes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scalesweep.history.page.MAX_FIGURES", 0)
        write_history(HistorySettings(tmp_path, baseline="0002cccccc"))
    visit = Visit(browser, (tmp_path / "history.html").as_uri(), scheme="dark")
    visit.wake()
    chart = visit.page.locator("[data-chart]").first

    def choose(title: str, label: str, words: str) -> str:
        select = chart.locator(f"xpath=.//label[span[text()='{title}']]/select")
        select.select_option(label=label)
        visit.page.wait_for_function(
            "([e, text]) => e.querySelector('.plot')?.ariaLabel?.includes(text)",
            arg=[chart.element_handle(), words],
        )
        return str(chart.inner_text())

    text = choose("Show", "several components of a point", "relative to the baseline over commits")
    assert "its own mean over the baseline (0002cccccc), 1.0" in text
    assert "% copies (0 or less in 1 of 1 session there)" in text
    assert "% matmul (not measured there)" in text and "% gemm (7 of 9)" in text
    assert "No verdict is given on terms and parts" in text
    # Of time, mpi and gemm, a mark for each session: 9 + 9 + 7.
    visit.page.wait_for_function("e => e.dataset.drawn === '25'", arg=chart.element_handle())
    text = choose("Values", "as measured", "as measured [s] and share of the whole [%]")
    assert "Dashed, on the right: shares" in text
    choose("Show", "speedup and efficiency", "speedup against ranks 1 over commits")
    choose("Over", "what it scales over, a line for each session", "over counts")
    text = choose("Values", "efficiency", "efficiency against ranks 1")
    assert "in the same session" in text
    chart.locator(".mark-symbol path").last.click(force=True)
    assert "measured 2026-01-0" in chart.locator(".session").inner_text()
    check_sound(visit, (tmp_path / "history.html").as_uri())
    visit.context.close()

"""The page in Chromium: clicks, keys, a finger, light and dark, wide and narrow; no fault, no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hybrid
from hybrid.app.explorer import measure_representations, model_sheet, write_page
from hybrid.matrix.backends import choose_backend
from tests.chromium import Browser, chromium_program

PROGRAM = chromium_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on the path: apt-get install chromium")

DATA = "JSON.parse(document.getElementById('data').textContent)"
LEVEL = "Number(document.getElementById('level').value)"
DARK = "document.documentElement.dataset.theme"
HOSTILE = "<img src=x onerror=document.title='hacked'></script>"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pages: sizes of kanban, an MDP with measured times, and hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    examples, backend = Path(__file__).parents[4] / "examples", choose_backend("cpu")
    sheets = [
        model_sheet(hybrid.load(examples / "kanban.prism", {"t": t}), backend, f"t={t}") for t in (1, 2, 3)
    ]
    write_page(sheets, folder / "kanban.html")
    coin = hybrid.load(examples / "coin.prism", {"K": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
        write_page(
            [model_sheet(coin, backend, "K=1", measure_representations(coin, "cpu"))], folder / "coin.html"
        )
    bad = {**sheets[0], "label": HOSTILE, "file": HOSTILE, "form": HOSTILE, "constants": {HOSTILE: 1}}
    bad["representations"] = [{**own, "title": HOSTILE} for own in bad["representations"]]
    write_page([bad, bad], folder / "hostile.html", HOSTILE)
    return folder


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser, and at the end the proof that it has nothing to complain about and asked for nothing."""
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path / "profile") as own:
        yield own
        own.evaluate("new Promise(done => setTimeout(done, 50))")
        assert not own.faults
        assert all(url.startswith("file:///") and url.endswith(".html") for url in own.requests), own.requests


def test_clicks_choose_sizes_representations_and_levels(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html")
    assert "160 states" in browser.evaluate("document.getElementById('model').textContent")
    browser.click("#sizes button:nth-child(3)")
    assert "58,400 states" in browser.evaluate("document.getElementById('model').textContent")
    assert (
        browser.evaluate("[...document.querySelectorAll('#sizes button')].map(b => b.ariaPressed).join()")
        == "false,false,true"
    )
    for press, name in (("#to-memory", "min_memory"), ("#to-time", "min_time")):
        for number in (1, 2):
            browser.click(f"#representations button:nth-child({number})")
            browser.click(press)
            expected = browser.evaluate(f"{DATA}[2].representations[{number - 1}].{name}")
            assert browser.evaluate(LEVEL) == expected["level"]
            assert expected["reason"] in browser.evaluate("document.getElementById('verdict').textContent")
    browser.click("#all summary")
    browser.click("#table tbody tr:nth-child(8) td")
    assert browser.evaluate(LEVEL) == 7
    assert browser.evaluate("document.querySelector('#table tr[aria-current] td').textContent") == "7"


def test_marks_of_one_level_stand_side_by_side(browser: Browser, pages: Path) -> None:
    marks = (
        "['memory', 'time'].map(place => [...document.querySelectorAll(`#${place} > svg path.mark`)]"
        ".map(e => e.getBoundingClientRect()).map(r => [r.left, r.right, r.top, r.bottom]))"
    )
    same = 0
    for width in (1200, 390):
        browser.open(pages / "kanban.html", width, 900)
        for size in (1, 2, 3):
            browser.click(f"#sizes button:nth-child({size})")
            for number in (1, 2):
                browser.click(f"#representations button:nth-child({number})")
                own = browser.evaluate(f"{DATA}[{size - 1}].representations[{number - 1}]")
                same += own["min_memory"]["level"] == own["min_time"]["level"]
                for first, second in browser.evaluate(marks):
                    left, right = sorted((first, second))
                    apart = right[0] - left[1], max(right[2], left[2]) - min(right[3], left[3])
                    assert max(apart) > 0, (width, size, number)
                    assert 0 <= left[0] and right[1] <= width
                assert f"min-time at {own['min_time']['level']}" in browser.evaluate(
                    "document.querySelector('#memory .key').textContent"
                )
    assert same >= 2  # there was something to shift


def test_times_have_a_column_where_they_were_measured_and_fit_a_telephone(
    browser: Browser, pages: Path
) -> None:
    heads = "[...document.querySelectorAll('#facts table:nth-of-type(2) th')].map(e => e.textContent)"
    wide = (
        "[...document.querySelectorAll('#table th')].filter(e => e.textContent.includes('measured')).length"
    )
    for page, expected in (("kanban.html", 0), ("coin.html", 1)):
        browser.open(pages / page, 390, 800)
        assert browser.evaluate(heads).count("measured") == expected
        assert browser.evaluate(wide) == 2 * expected
        for place in ("facts", "legend", "level-panel"):
            own = f"document.getElementById('{place}')"
            assert browser.evaluate(f"{own}.scrollWidth <= {own}.clientWidth"), (page, place)


def test_reasons_have_the_units_of_the_tables(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html")
    row = "#facts table:nth-of-type(2) tr:nth-child(%d) td"
    cells = f"[...document.querySelectorAll('{row}')].map(e => e.textContent)"
    reason = "document.getElementById('verdict').textContent"
    for size in (1, 2, 3):
        browser.click(f"#sizes button:nth-child({size})")
        for number in (1, 2):
            browser.click(f"#representations button:nth-child({number})")
            browser.click("#to-time")
            predicted = browser.evaluate(cells % (number + 1))[3]
            assert f" {predicted} a product" in browser.evaluate(reason)
            browser.click("#to-memory")
            counted, held = browser.evaluate(cells % (number + 1))[1:3]
            told = browser.evaluate(reason)
            assert f", {counted if held == '–' else held}" in told
            assert "1 submatrices" not in told and "1 row types" not in told


def test_the_pointer_on_a_curve_chooses_the_level(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html")
    browser.click("#sizes button:nth-child(3)")
    found = []
    for share in (0.2, 0.5, 0.9):
        browser.point("#memory > svg", share, 0.4)
        found.append(browser.evaluate(LEVEL))
        assert browser.evaluate("document.getElementById('level-title').textContent") == f"Level {found[-1]}"
    assert found == sorted(set(found)) and 0 < found[0] and found[-1] < 64
    browser.point("#memory > svg", 0.001, 0.4)
    assert browser.evaluate(LEVEL) == 0
    browser.point("#time > svg", 0.999, 0.4)
    assert browser.evaluate(LEVEL) == 64


def test_keys_move_the_level_and_the_focus_is_seen(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html")
    browser.key("Home")
    assert browser.evaluate(LEVEL) == 0
    for key, expected in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("PageDown", 7),
        ("ArrowLeft", 6),
        ("PageUp", 1),
        ("End", 32),
    ):
        browser.key(key)
        assert browser.evaluate(LEVEL) == expected
    memory, time = browser.evaluate(
        f"(r => [r.min_memory.level, r.min_time.level])({DATA}[0].representations[0])"
    )
    browser.key("m")
    assert browser.evaluate(LEVEL) == memory
    browser.key("t")
    assert browser.evaluate(LEVEL) == time
    browser.key("Tab")
    assert browser.evaluate("document.activeElement.id") == "theme"
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.evaluate("document.getElementById('level').focus()")
    browser.key("Home")
    browser.key("ArrowRight")
    assert browser.evaluate(LEVEL) == 1
    assert (
        browser.evaluate("document.getElementById('level').getAttribute('aria-valuetext')") == "level 1 of 32"
    )


def test_fingers_and_narrow_screens(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html", 360, 740)
    browser.ask("Emulation.setTouchEmulationEnabled", enabled=True)
    browser.touch("#sizes button:nth-child(2)")
    assert "4,600 states" in browser.evaluate("document.getElementById('model').textContent")
    browser.touch("#memory > svg", 0.4, 0.5)
    chosen = browser.evaluate(LEVEL)
    assert 10 < chosen < 30
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    narrow = browser.evaluate(
        "[...document.querySelectorAll('button, input, summary')].filter(e => e.offsetParent)"
        ".filter(e => e.getBoundingClientRect().height < 30).length"
    )
    assert narrow == 0


def test_light_and_dark_follow_the_system_and_the_switch(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html", scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert browser.evaluate(DARK) == "dark"
    dark = browser.evaluate(ground)
    browser.scheme("light")
    assert browser.evaluate(DARK) == "light"
    assert browser.evaluate(ground) != dark
    for expected in ("light", "dark", "light"):
        browser.click("#theme")
        assert browser.evaluate(DARK) == expected
    browser.click("#theme")
    browser.click("#theme")
    browser.scheme("light")
    assert browser.evaluate(DARK) == "dark"


def test_blocks_are_drawn_level_by_level(browser: Browser, pages: Path) -> None:
    browser.open(pages / "kanban.html")
    browser.click("#sizes button:nth-child(3)")
    drawn = set()
    for level in (0, 4, 13, 32, 64):
        browser.key("Home")
        for _ in range(level // 5):
            browser.key("PageDown")
        for _ in range(level % 5):
            browser.key("ArrowRight")
        assert browser.evaluate(LEVEL) == level
        drawn.add(browser.evaluate("document.getElementById('picture').toDataURL()"))
        assert browser.evaluate("document.getElementById('picture').ariaLabel").startswith(
            "The matrix of 58,400 rows"
        )
        shown = browser.evaluate(f"{DATA}[2].pictures[0].levels")[level]["shown"]
        rows = browser.evaluate("[...document.querySelectorAll('#legend tr')].length")
        assert rows - 1 - len(shown) in (0, 1)
    assert len(drawn) == 5
    browser.point("#picture", 0.01, 0.01)
    assert browser.evaluate("document.getElementById('under').textContent").startswith(
        "rows 0–608, columns 0–608: "
    )
    browser.point("#picture", 0.99, 0.01)
    assert browser.evaluate("document.getElementById('under').textContent").endswith("no entries")


def test_layers_of_an_mdp_have_buttons(browser: Browser, pages: Path) -> None:
    browser.open(pages / "coin.html")
    pictures = []
    for number in (1, 2):
        browser.click(f"#layers button:nth-child({number})")
        pictures.append(browser.evaluate("document.getElementById('picture').toDataURL()"))
    assert pictures[0] != pictures[1]
    assert "measured" in browser.evaluate("document.getElementById('time').textContent")


def test_hostile_names_are_text(browser: Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
    browser.click("#sizes button:nth-child(2)")
    browser.click("#representations button:nth-child(2)")
    assert browser.evaluate("document.title") == f"{HOSTILE} – injection levels"
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.getElementById('title').textContent") == HOSTILE
    assert HOSTILE in browser.evaluate("document.getElementById('source').textContent")

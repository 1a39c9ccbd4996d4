"""The page in a real browser: a file is chosen, its search watched, a route inspected, the result downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

import ndsvrp
from serve.browser import CHROMIUM, Browser
from serve.running import LIB, serving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]

TOKEN = "a-token-for-the-page"
LINES = "[...document.querySelectorAll('#routes tbody tr')]"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("page") / "jobs.sqlite", token=TOKEN) as address:
        yield address.replace("…", TOKEN)


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    """Shows the page."""
    opened = Browser()
    opened.open(address)
    opened.wait("document.querySelector('#limits')?.textContent === 'up to 10,000 customers and 600 s'")
    yield opened
    opened.close()


def test_from_a_file_to_a_route(browser: Browser, address: str) -> None:
    assert browser.run("location.hash") == ""  # the token does not stay in the address
    browser.run("document.getElementById('time').value = 300")
    browser.choose_file("#file", LIB / "Solomon/C101.txt")
    browser.wait("document.querySelector('#state').textContent === 'running'")
    browser.wait(f"{LINES}.length === 10 && document.querySelector('#numbers dd').textContent === '827.3'")
    browser.run("document.getElementById('cancel').click()")
    browser.wait("document.querySelector('#state').textContent === 'cancelled'")
    facts = browser.run("document.querySelector('#facts').textContent")
    assert facts == "VRPTW · 100 customers · capacity 200 · at most 25 vehicles · seed 0"
    assert "+0.00%" in browser.run("document.querySelector('#numbers').textContent")
    assert "best known 827.3" in browser.run("document.querySelector('#curve').textContent")
    loads = browser.run(f"{LINES}.map((line) => line.cells[2].textContent)")
    assert sum(map(int, loads)) == 1810  # all demand
    row = browser.run(f"{LINES}.findIndex((line) => line.cells[3].textContent === '59.4')")
    browser.run(f"{LINES}[{row}].click()")
    title = browser.wait("document.querySelector('#timeline-title').textContent")
    assert f"Route {row + 1} · 12 stops · load 180 of 200 · distance 59.4 · back at 1,139.4" in title
    shown = browser.run("document.querySelector('#timeline-body').textContent")
    assert "customer 5: arrives 15.1, starts 15.1, leaves 105.1, slack 51.9" in shown
    colours = browser.run(
        "(() => { const c = document.querySelector('#map canvas'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; const s = new Set(); "
        "for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()"
    )
    assert colours > 20  # something is drawn
    saved = browser.run(
        "new Promise((done) => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => "
        "{ blob.text().then(done); return make(blob); }; document.querySelector('#downloads button').click(); })"
    )
    assert saved.startswith("Route #1: ")
    assert saved.endswith("\nCost: 827.3\n")
    assert browser.complaints() == []
    addresses = [url for url in browser.requested() if not url.startswith(("data:", "blob:"))]
    assert {url.split("/")[2] for url in addresses} == {address.split("/")[2]}  # nothing from elsewhere
    # the job is shown again
    browser.run("document.querySelector('#job').hidden = true; document.querySelector('#jobs button').click()")
    browser.wait("!document.querySelector('#job').hidden && document.querySelector('#name').textContent === 'C101'")
    browser.wait(f"{LINES}.length === 10")


def test_the_page_of_a_result_at_its_address(tmp_path: Path) -> None:
    """Its style and script apply. The service has no token, which the address could not carry."""
    with serving(tmp_path / "jobs.sqlite") as address, closing(Browser()) as browser:
        body = (LIB / "Solomon/C101.txt").read_bytes()
        with urlopen(f"{address}api/jobs?name=C101.txt&iterations=2", data=body) as answer:
            job = json.load(answer)["id"]
        with urlopen(f"{address}api/jobs/{job}/events") as events:
            events.read()
        browser.open(f"{address}api/jobs/{job}/result?form=html")
        browser.wait("document.readyState === 'complete' && document.querySelectorAll('tr[data-route]').length === 10")
        assert browser.run("getComputedStyle(document.querySelector('dl')).display") == "grid"
        browser.run("document.querySelector('tr[data-route]').click()")
        assert browser.run("document.body.classList.contains('dimmed')")
        assert browser.complaints() == []


def test_on_a_phone(address: str, tmp_path: Path) -> None:
    """Nothing is wider than the screen; the name of a job has a line of its own; charts keep letters one can read."""
    with closing(Browser()) as phone:
        phone.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        phone.open(address)
        phone.wait("document.querySelector('#limits')?.textContent")
        phone.run("document.getElementById('time').value = 0.2")
        phone.choose_file("#file", LIB / "Solomon/C101.txt")
        phone.wait("document.querySelector('#state').textContent === 'done'")
        phone.wait("document.querySelectorAll('#downloads button').length === 4")
        assert phone.run("document.documentElement.scrollWidth") == 390
        title, head = (f"document.querySelector('{part}').clientWidth" for part in (".title", "#head"))
        assert phone.run(f"{title} > 0.9 * {head}")
        problem = ndsvrp.read(LIB / "Solomon/C101.txt")
        ndsvrp.solve(problem, iterations=2).report(tmp_path / "a.html")
        phone.open((tmp_path / "a.html").as_uri())
        phone.wait("document.readyState === 'complete' && document.querySelectorAll('tr[data-route]').length === 10")
        assert phone.run("document.documentElement.scrollWidth") == phone.run("innerWidth") == 390
        assert phone.run("document.querySelector('.gantt text').getBoundingClientRect().height") > 9


def test_a_refused_file_is_explained(browser: Browser, tmp_path: Path) -> None:
    """Also one that cannot be read, as after it was deleted; the next one is taken."""
    shown = "!document.querySelector('#refusal').hidden && document.querySelector('#refusal').textContent"
    gone = "{ name: 'gone.csv', slice: () => ({ text: () => Promise.reject(new Error('gone.csv is gone')) }) }"
    dropped = f"Object.assign(new Event('drop'), {{ dataTransfer: {{ files: [{gone}] }} }})"
    browser.run(f"document.dispatchEvent({dropped})")
    assert browser.wait(shown) == "gone.csv is gone"
    file = tmp_path / "broken.vrp"
    file.write_text("NAME : broken\nTYPE : CVRP\nDIMENSION : -3\n")
    browser.choose_file("#file", file)
    assert browser.wait(f"{shown} !== 'gone.csv is gone' && {shown}").startswith("broken.vrp:3: DIMENSION: ")


def test_columns_and_clock_times(browser: Browser, tmp_path: Path) -> None:
    """The depot opens at 8, the school is 30 minutes away and waits until 9; back at 09:45. The volume is not used."""
    file = tmp_path / "tour.csv"
    head = 'stop;"Ost; km";Nord;kg;von;bis;service;volume\n'
    file.write_text(f"{head}hub;0;0;;08:00;17:00;;\nschool;0;30;3;09:00;10:00;0:15;7\n")
    browser.run("for (const [id, value] of [['time', 0.2], ['capacity', 5]]) document.getElementById(id).value = value")
    browser.choose_file("#file", file)
    browser.wait("!document.querySelector('#columns').hidden")
    names = browser.run("[...document.querySelectorAll('#columns label')].map((label) => label.firstChild.textContent)")
    assert names == ["Ost; km ", "Nord ", "kg ", "von ", "bis ", "volume "]
    offered = browser.run("[...document.querySelector('#columns select').options].map((option) => option.value)")
    assert offered == ["", "name", "x", "y", "lat", "lon", "demand", "ready", "due", "prize"]  # service is there
    chosen = browser.run("[...document.querySelectorAll('#columns select')].map((select) => select.value)")
    assert chosen == ["", "", "demand", "", "", ""]  # kg may mean the demand; two columns cannot
    choose = "document.querySelectorAll('#columns select')[{}].value = '{}'"
    for position, ours in enumerate(["x", "", "demand", "ready", "due"]):
        browser.run(choose.format(position, ours))
    browser.run("document.getElementById('columns-send').click()")
    text = browser.wait("!document.querySelector('#refusal').hidden && document.querySelector('#refusal').textContent")
    assert text == "tour.csv:1: y: missing, 'x' is given"
    browser.run(choose.format(1, "y"))  # the choice is still there
    browser.run("document.getElementById('columns-send').click()")
    browser.wait("document.querySelector('#name').textContent === 'tour'")
    browser.wait("document.querySelector('#state').textContent === 'done'")
    assert browser.run("document.querySelector('#columns').hidden") is True
    assert browser.run(f"{LINES}.map((line) => line.cells[4].textContent)") == ["09:45"]
    browser.run(f"{LINES}[0].click()")
    shown = browser.wait("document.querySelector('#timeline-body').textContent")
    assert "school: arrives 09:00, starts 09:00, leaves 09:15, slack 60" in shown
    assert "08:40" in shown  # of the axis
    assert all("400 (Bad Request)" in complaint for complaint in browser.complaints())  # those that were refused

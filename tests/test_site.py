"""The documentation's pages: they build without a warning and need no network."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browsing import listen_for_errors

pytest.importorskip("mkdocs", reason="needs the extra docs")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = (
    "index",
    "own-domain",
    "results",
    "studies/2026-11-15-transformer-100m",
    "api/curriculum",
    "sources/examples/payload.py",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the pages as `make docs` does."""
    site = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def address(folder):
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_api_is_read_without_being_imported(folder):
    page = (folder / "api/curriculum.html").read_text()
    for word in ("ask", "tell", "error_slack", "Gate C: allowed growth"):
        assert word in page, word


def test_files_outside_are_shown_also_from_pages_in_a_folder(folder):
    page = (folder / "studies/2026-11-16-mlp-cost.html").read_text()
    assert 'href="../sources/studies/cost.toml.html"' in page
    assert (folder / "sources/studies/cost.toml.html").is_file()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_without_errors_and_asks_nobody_else(page, address, name):
    errors, asked = listen_for_errors(page), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{name}.html", wait_until="networkidle")
    assert page.locator("h1").count() == 1
    elsewhere = [
        url for url in asked if not url.startswith((address, "data:", "blob:"))
    ]
    assert not elsewhere, elsewhere
    assert not errors, errors
    broken = page.evaluate(
        "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
    )
    assert not broken, broken


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(page, address, name):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/{name}.html")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, f"{name} is {width} px wide"


def test_search_finds_a_guide(page, address):
    page.goto(f"{address}/index.html")
    page.locator("input.md-search__input").click()
    page.keyboard.type("latency")
    found = page.locator("a.md-search-result__link").first
    found.wait_for()
    # Guides come before the files that they link to.
    first = page.locator("a.md-search-result__link").first
    assert "sources/" not in (first.get_attribute("href") or "")

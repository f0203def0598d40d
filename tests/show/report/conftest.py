"""One report of a shipped run for all tests that only look at it."""

import pytest

from horizon_rl.cli import main


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    """Keep evaluations of whoever runs the tests out of the pages."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HORIZON_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def shipped_report(tmp_path_factory, cache_folder):
    """Write the report of core-mlp, as the docs show it."""
    folder = tmp_path_factory.mktemp("shipped") / "report"
    assert main(["report", "core-mlp", "--out", str(folder)]) == 0
    return folder

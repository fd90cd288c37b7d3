"""Where the tests find things: the command that is installed beside the package, the recordings of the source tree."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def command():
    """The command's path: GUARDBIT, or the one beside this interpreter."""
    found = os.environ.get("GUARDBIT") or shutil.which("guardbit", path=str(Path(sys.executable).parent)) or shutil.which("guardbit")
    if not found:
        pytest.skip("the command guardbit is not installed")
    return found


@pytest.fixture(scope="session")
def golden():
    return Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture
def rng():
    return np.random.default_rng(20261123)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also the tests that take long")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long; only with --long")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes long: --long"))

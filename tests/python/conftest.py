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

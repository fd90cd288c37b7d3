"""Examples and tutorials print what the documents show; whatever is public is in the reference."""

import sys

import pytest

import guardbit
from documents import ROOT, check, missing

EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
PAGES = [ROOT / "docs/PYTHON.md", ROOT / "docs/AMD.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_did(path):
    lacks = missing(path.read_text())
    if lacks:
        pytest.skip(f"needs {', '.join(lacks)}")
    found = check(path)
    assert not found, found


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_prints_what_it_shows(path):
    found = check(path)
    assert not found, found


def test_the_reference_has_every_name():
    sys.path.insert(0, str(ROOT / "tools/scripts"))
    try:
        import site_hooks
    finally:
        sys.path.pop(0)
    listed = {name for _, names in site_hooks.REFERENCE for name in names}
    public = {name for name in guardbit.__all__ if name not in ("__version__", "recipes", "scaler")}
    assert public <= listed, public - listed

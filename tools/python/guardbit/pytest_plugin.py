"""What pytest gets from this package: the fixture `assert_equal_bits`."""

from __future__ import annotations

from typing import Any, Callable

import pytest


@pytest.fixture
def assert_equal_bits() -> Callable[..., None]:
    """`guardbit.testing.assert_equal_bits`: fails unless two arrays are equal in every bit, and says where and why not."""
    from .testing import assert_equal_bits as function

    def check(*arrays: Any, **asked: Any) -> None:
        __tracebackhide__ = True
        function(*arrays, **asked)

    return check

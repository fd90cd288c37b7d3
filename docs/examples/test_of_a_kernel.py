"""A test that a kernel passes in every bit, or that says why not.

With the package comes a pytest fixture, `assert_equal_bits`. A test states the plan that the kernel is meant to have; a failure
shows places, codes, distances in ulp, and with the operands what `explain` knows of the wrong result.

The kernel below forgets the last 8 elements of K where K is no multiple of 16. A test with a tolerance of 1 % of the largest
element passes it on some shapes; this one names the elements that are missing. As a test of yours, the second function would be
all that there is to write.
"""
# needs: pytest

import numpy as np
import pytest

import guardbit
from guardbit.testing import assert_equal_bits

UNIT = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16"


def kernel(a, b):
    """Stands for a kernel under test; it takes whole tiles of 16 elements of K."""
    whole = a.shape[1] // 16 * 16
    return guardbit.matmul(a[:, :whole], b[:whole], plan=UNIT)


@pytest.mark.parametrize("k", [64, 72])
def test_kernel(assert_equal_bits, k):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((48, k)).astype(np.float16), rng.standard_normal((k, 32)).astype(np.float16)
    assert_equal_bits(kernel(a, b), guardbit.matmul(a, b, plan=UNIT), a=a, b=b, most=3)


if __name__ == "__main__":
    for k in (64, 72):
        try:
            test_kernel(assert_equal_bits, k)
            print(f"K = {k}: equal in every bit")
        except AssertionError as error:
            print(f"K = {k}: {error}")

"""JAX's arrays, and products inside jitted programs."""

import numpy as np
import pytest

import guardbit

jax = pytest.importorskip("jax")
jnp = jax.numpy


def test_under_jit_grad_and_vmap(rng):
    import guardbit.jax

    a = jnp.asarray(rng.standard_normal((8, 16)), jnp.bfloat16)
    b = jnp.asarray(rng.standard_normal((16, 4)), jnp.bfloat16)
    expected = np.asarray(guardbit.matmul(a, b, arch="sm_90"))
    product = jax.jit(lambda x, y: guardbit.jax.matmul(x, y, arch="sm_90"))
    assert np.asarray(product(a, b)).tobytes() == expected.tobytes()
    da, db = jax.grad(lambda x, y: product(x, y).astype(jnp.float32).sum(), argnums=(0, 1))(a, b)
    ones = jnp.ones((8, 4), jnp.bfloat16)
    assert np.asarray(da).tobytes() == np.asarray(guardbit.matmul(ones, b.T, arch="sm_90")).tobytes()
    assert np.asarray(db).tobytes() == np.asarray(guardbit.matmul(a.T, ones, arch="sm_90")).tobytes()
    both = jax.vmap(lambda x: guardbit.jax.matmul(x, b, arch="sm_90"))(jnp.stack([a, a]))
    assert np.asarray(both[1]).tobytes() == expected.tobytes()


def test_arrays_come_back_as_jax_arrays(rng):
    x = jnp.asarray(rng.standard_normal(100), jnp.float32)
    y = guardbit.cast(x, jnp.float8_e4m3fn, converter="ml_dtypes")
    assert isinstance(y, jax.Array) and y.dtype == jnp.float8_e4m3fn
    assert np.asarray(y).tobytes() == np.asarray(x.astype(jnp.float8_e4m3fn)).tobytes()

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


@pytest.mark.parametrize("shapes, options, error, text", [
    (((2, 3), (4, 2)), {}, ValueError, "b: is [4, 2] where A is [2, 3]: B needs 3 rows, A's K"),
    (((3,), (3, 2)), {}, ValueError, "a: a and b have at least 2 dimensions here"),
    (((0, 3), (3, 2)), {}, ValueError, "a: the array is empty"),
    (((2, 2, 3), (3, 3, 2)), {}, ValueError, "b: batches of (3,) do not fit those of a, (2,)"),
    (((2, 3), (3, 2)), {"threads": -1}, ValueError, "threads: -1 is out of range"),
    (((2, 3), (3, 2)), {"arch": 9}, TypeError, "arch: is a word, not int"),
    (((2, 3), (3, 2)), {"arch": "sm_91"}, guardbit.Error, "arch: unknown architecture 'sm_91'"),
])
def test_wrong_input_has_one_clear_line(shapes, options, error, text):
    import guardbit.jax

    with pytest.raises(error) as raised:
        guardbit.jax.matmul(*(np.ones(shape, np.float32) for shape in shapes), **options)
    assert str(raised.value).startswith(text) and "\n" not in str(raised.value)
    with pytest.raises(TypeError, match="^a: JAX makes no array of object$"):
        guardbit.jax.matmul(np.ones((2, 2), object), np.ones((2, 2), np.float32))


def test_a_tracer_is_no_array():
    @jax.jit
    def product(x):
        with pytest.raises(TypeError, match=r"^a: \w+ is no array \([^\n]*\)$"):
            guardbit.matmul(x, x)
        return x

    product(jnp.ones((2, 2)))


def test_arrays_come_back_as_jax_arrays(rng):
    x = jnp.asarray(rng.standard_normal(100), jnp.float32)
    y = guardbit.cast(x, jnp.float8_e4m3fn, converter="ml_dtypes")
    assert isinstance(y, jax.Array) and y.dtype == jnp.float8_e4m3fn
    assert np.asarray(y).tobytes() == np.asarray(x.astype(jnp.float8_e4m3fn)).tobytes()

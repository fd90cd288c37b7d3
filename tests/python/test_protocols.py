"""Arrays that are no NumPy arrays: the array interface, DLPack, memory of a GPU, CuPy."""

import sys
import types

import numpy as np
import pytest

import guardbit


class Exporter:
    """Memory of NumPy behind a protocol."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        if self.device[0] == 2:
            raise BufferError("memory of a GPU is not exported to the host")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_dlpack_and_the_array_interface_share_memory(rng):
    x = rng.standard_normal((8, 16)).astype(np.float16)
    expected = guardbit.matmul(x, x.T)
    for a in (Exporter(x), types.SimpleNamespace(__array_interface__=x.__array_interface__, owner=x)):
        assert guardbit.matmul(a, x.T).tobytes() == expected.tobytes()


@pytest.mark.parametrize("x", [
    Exporter(np.ones((4, 4), np.float32), device=(2, 0)),
    types.SimpleNamespace(__cuda_array_interface__={"shape": (4, 4), "typestr": "<f4", "data": (4096, False), "version": 3}),
])
def test_memory_of_a_gpu_is_named(x):
    with pytest.raises(TypeError, match="^x: .* lies on a GPU; of such arrays those of PyTorch, JAX and CuPy are copied to the host$"):
        guardbit.cast(x, "fp16")


@pytest.fixture
def cupy(monkeypatch):
    """As much of CuPy as is asked for: arrays that are no NumPy arrays, copied by asnumpy and asarray."""
    module = types.ModuleType("cupy")

    class ndarray:  # noqa: N801
        __module__ = "cupy"

        def __init__(self, array):
            self.array = array

        def __array__(self, *_):
            raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def asarray(array):
        if array.dtype.kind not in "fiub":
            raise TypeError(f"Unsupported dtype {array.dtype}")
        return ndarray(array.copy())

    module.ndarray, module.asarray, module.asnumpy = ndarray, asarray, lambda x: x.array.copy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_arrays_of_cupy_come_back_as_such(cupy, rng):
    x = rng.standard_normal((8, 16)).astype(np.float16)
    d = guardbit.matmul(cupy.asarray(x), cupy.asarray(np.ascontiguousarray(x.T)))
    assert isinstance(d, cupy.ndarray)
    assert cupy.asnumpy(d).tobytes() == guardbit.matmul(x, x.T).tobytes()
    codes = guardbit.cast(cupy.asarray(x), "e4m3")
    assert isinstance(codes, guardbit.Codes) and np.array_equal(codes.numpy(), guardbit.cast(x, "e4m3").astype(np.float32))

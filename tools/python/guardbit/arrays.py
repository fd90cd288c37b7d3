"""Arrays of any library as codes of a format in memory, and back, without a copy where the memory can be shared."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _core

# What the types of ml_dtypes are called here, where `guardbit formats` does not know the name.
_DTYPE_NAMES = {
    "bool": "b1",
    "float8_e3m4": "e3m4",
    "float8_e4m3": "e4m3:specials=ieee",
    "float8_e4m3b11fnuz": "e4m3:bias=11:specials=fnuz",
}
# Types for formats, by library; what is missing comes out as Codes.
_NUMPY_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "b1": "bool",
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_ML_DTYPES = {
    "bf16": "bfloat16", "e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn", "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3fnuz": "float8_e4m3fnuz", "e8m0": "float8_e8m0fnu", "e3m2": "float6_e3m2fn", "e2m3": "float6_e2m3fn",
    "e2m1": "float4_e2m1fn", "int4": "int4", "uint4": "uint4", "e3m4": "float8_e3m4",
    "e4m3:specials=ieee": "float8_e4m3", "e4m3:bias=11:specials=fnuz": "float8_e4m3b11fnuz",
    # The scales of NVFP4 have no sign; these have the same codes.
    "ue4m3": "float8_e4m3fn",
}
_TORCH_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "b1": "bool",
    "e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn", "e5m2fnuz": "float8_e5m2fnuz", "e4m3fnuz": "float8_e4m3fnuz",
    "e8m0": "float8_e8m0fnu", "ue4m3": "float8_e4m3fn",
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def format_name(dtype: Any, where: str = "dtype") -> str:
    """The name of a format that a name, or a dtype of NumPy, ml_dtypes, PyTorch or JAX, means."""
    name = dtype if isinstance(dtype, str) else _name_of_dtype(dtype)
    if name is None:
        raise TypeError(f"{where}: {type(dtype).__name__} is no dtype and no name of a format")
    return _core.format_name(_DTYPE_NAMES.get(name, name), where)


def _name_of_dtype(dtype: Any) -> str | None:
    text = str(dtype)
    if type(dtype).__module__ == "torch" and text.startswith("torch."):
        return text[len("torch."):]
    if dtype is None or isinstance(dtype, (list, dict, tuple)):
        return None  # NumPy makes dtypes of these
    try:
        name: str = np.dtype(dtype).name
    except (TypeError, ValueError):
        return None
    return name


class Codes:
    """Codes of a format that NumPy has no type for, one in each unsigned word.

    `codes` is a NumPy array of unsigned words, `format` the format's name. `numpy()` gives the numbers, in FP64 where FP32
    does not hold them.
    """

    __slots__ = ("codes", "format")

    def __init__(self, codes: Any, format: Any):
        self.format = format_name(format, "format")
        words = np.asarray(codes)
        if words.dtype.kind not in "ui" or words.dtype.itemsize != _core.code_bytes(self.format):
            raise TypeError(f"codes: {words.dtype} is no unsigned word of {_core.code_bytes(self.format)} bytes, "
                            f"which codes of {self.format} take")
        self.codes = words.view(_WORDS[words.dtype.itemsize])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    @property
    def ndim(self) -> int:
        return self.codes.ndim

    @property
    def size(self) -> int:
        return self.codes.size

    @property
    def T(self) -> Codes:  # noqa: N802, as NumPy calls it
        return Codes(self.codes.T, self.format)

    @property
    def mT(self) -> Codes:  # noqa: N802, as NumPy calls it
        return Codes(np.swapaxes(self.codes, -1, -2), self.format)

    def reshape(self, *shape: Any) -> Codes:
        return Codes(self.codes.reshape(*shape), self.format)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> Codes:
        return Codes(self.codes[index], self.format)

    def numpy(self) -> np.ndarray:
        """The numbers that the codes stand for, exactly."""
        wide = self.format in ("int64", "uint64", "int32", "uint32", "fp64")
        to = "fp64" if wide else "fp32"
        result = np.empty(self.shape, np.float64 if wide else np.float32)
        _core.cast(view(self, "codes"), output(result, to, "out"), _core.CastOptions())
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("codes become numbers in a copy only")
        numbers = self.numpy()
        return numbers if dtype is None else numbers.astype(dtype)

    def __repr__(self) -> str:
        numbers = np.array2string(self.numpy(), separator=", ", prefix="Codes(")
        return f"Codes({numbers}, format={self.format!r})"


class ScaledCodes:
    """What holds codes with scales, which is no array."""


class Library:
    """The library that a caller's arrays are of, and what results come back in."""

    def __init__(self, name: str, device: Any = None):
        self.name = name
        self.device = device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and self.name == other.name


NUMPY = Library("numpy")


def library_of(*arrays: Any) -> Library:
    """That of the first array which is not NumPy's, else NumPy. Subclasses of its arrays belong to a library as well."""
    for x in arrays:
        roots = {base.__module__.split(".")[0] for base in type(x).__mro__}
        if "torch" in roots and hasattr(x, "device"):
            return Library("torch", x.device)
        if roots & {"jax", "jaxlib"}:
            return Library("jax")
        if "cupy" in roots:
            return Library("cupy")
    return NUMPY


def to_numpy(x: Any, name: str) -> tuple[np.ndarray, str]:
    """The codes of an array, as unsigned words that share its memory where they can, and its format."""
    if isinstance(x, Codes):
        return x.codes, x.format
    if isinstance(x, ScaledCodes):
        raise TypeError(f"{name}: {x!r} has scales, which are taken by matmul and dequantize alone; dequantize gives its numbers")
    library = library_of(x).name
    if library == "torch":
        return _torch_codes(x, name)
    if library == "cupy":
        x = sys.modules["cupy"].asnumpy(x)
    try:
        array = x if isinstance(x, np.ndarray) else _asarray(x, name)
    except (TypeError, ValueError, BufferError) as error:
        if str(error).startswith(f"{name}: "):
            raise
        lines = str(error).splitlines() or [""]  # JAX says in several that a tracer has no numbers
        raise TypeError(f"{name}: {type(x).__name__} is no array ({lines[0]})") from None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "OSUMmc" or array.dtype.fields is not None or array.dtype.itemsize not in _WORDS:
        raise TypeError(f"{name}: arrays of {array.dtype} are not taken")
    return array.view(_WORDS[array.dtype.itemsize]), format_name(array.dtype, name)


# Devices of DLPack whose memory the CPU reads: its own, pinned by CUDA or ROCm, managed by CUDA.
_HOST_DEVICES = (1, 3, 11, 13)


def _asarray(x: Any, name: str) -> np.ndarray:
    if hasattr(x, "__array_interface__") or hasattr(x, "__array__"):
        return np.asarray(x)
    on_gpu = hasattr(x, "__cuda_array_interface__")
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        if int(x.__dlpack_device__()[0]) in _HOST_DEVICES:
            return np.from_dlpack(x)
        on_gpu = True
    if on_gpu:
        raise TypeError(f"{name}: {type(x).__name__} lies on a GPU; of such arrays those of PyTorch, JAX and CuPy are copied to the host")
    return np.asarray(x)


def _torch_codes(x: Any, name: str) -> tuple[np.ndarray, str]:
    torch = sys.modules["torch"]
    if x.layout is not torch.strided or x.is_quantized:
        raise TypeError(f"{name}: only dense tensors are taken")
    try:
        return _codes_of_dense(torch, x.detach(), name)
    except RuntimeError as error:  # of a tensor without numbers, as meta, torch.func and FakeTensor have them
        raise TypeError(f"{name}: PyTorch gives no numbers of this tensor: {str(error).splitlines()[0]}") from None


def _codes_of_dense(torch: Any, x: Any, name: str) -> tuple[np.ndarray, str]:
    if x.device.type != "cpu":
        x = x.cpu()
    x = x.resolve_conj().resolve_neg()
    if str(x.dtype) == "torch.float4_e2m1fn_x2":  # two codes in each byte, the first in its low half
        return _unpacked(x.view(torch.uint8).numpy()), "e2m1"
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(x.dtype.itemsize)
    if words is None or x.dtype.is_complex:
        raise TypeError(f"{name}: tensors of {x.dtype} are not taken")
    codes = x.view(words).numpy()
    return codes.view(_WORDS[codes.dtype.itemsize]), format_name(x.dtype, name)


def _unpacked(packed: np.ndarray) -> np.ndarray:
    """Pairs lie along the dimension whose bytes are neighbours: the last, or that which was the last before a transposition."""
    axis = -1
    if packed.ndim > 1 and packed.strides[-1] != 1 and packed.strides[-2] == 1:
        axis = -2
    along = np.moveaxis(packed, axis, -1)
    pairs = np.stack((along & 15, along >> 4), -1).reshape(*along.shape[:-1], -1)
    return np.moveaxis(pairs, -1, axis)


def view(x: Any, name: str, format: Any = None) -> _core.Array:
    """The array as the module takes it. `format` says what integers are codes of."""
    codes, of = to_numpy(x, name)
    if format is not None:
        of = format_name(format, "dtype")
    return _core.Array.view(codes, of, name)


def memory_order(*arrays: np.ndarray) -> tuple[int, ...] | None:
    """The order of the dimensions in which arrays of one shape lie in memory without gaps; None where they lie otherwise."""
    shape, strides = arrays[0].shape, arrays[0].strides
    axes = tuple(sorted(range(len(shape)), key=lambda axis: -strides[axis]))
    fits = all(x.shape == shape and x.transpose(axes).flags.c_contiguous for x in arrays)
    return axes if fits else None


def in_order(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The array whose dimensions `axes` those of `array` are, without a copy."""
    back: np.ndarray = array.transpose(np.argsort(axes))
    return back


def number_or_array(x: Any) -> Any:
    """A number as FP32, in which scales are; arrays as they are."""
    if not isinstance(x, (int, float, np.floating, np.integer)):
        return x
    with np.errstate(over="ignore"):  # past FP32's largest number is infinity
        return np.float32(x)


def common_batch(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    """The batch of the product of two stacks of matrices."""
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"b: batches of {b.shape[:-2]} do not fit those of a, {a.shape[:-2]}") from None


def writable(out: Any, format: str) -> np.ndarray:
    """The memory of what a caller gives for a result of that format: a NumPy array, or a tensor of PyTorch on the CPU."""
    if isinstance(out, np.ndarray):
        return out
    if library_of(out).name != "torch":
        raise TypeError(f"out: {type(out).__name__} is no NumPy array and no tensor of PyTorch")
    if out.device.type != "cpu":
        raise TypeError(f"out: the tensor is on {out.device}, and results are written to memory of the CPU")
    if str(out.dtype) == "torch.float4_e2m1fn_x2":
        raise TypeError("out: pairs of codes in a byte are not written to")
    words, own = _torch_codes(out, "out")
    if own != format and not (own.startswith("uint") and words.dtype.itemsize == _core.code_bytes(format)):
        raise ValueError(f"out: is {own} where the result is {format}")
    return words


def result_memory(out: Any, format: str, shape: tuple[int, ...], flat: tuple[int, ...]) -> np.ndarray:
    """The memory of what a caller gives for a result of that shape, as an array of the shape `flat`."""
    memory = writable(out, format)
    if memory.shape != shape:
        raise ValueError(f"out: has shape {memory.shape} where the result has {shape}")
    if not memory.flags.c_contiguous:
        raise ValueError("out: does not lie row by row in memory")
    result: np.ndarray = memory.reshape(flat)
    return result


def output(array: np.ndarray, format: str, name: str) -> _core.Array:
    """Memory for a result of that format."""
    if array.dtype.kind != "u":
        own = format_name(array.dtype, name)
        if own != format:
            raise ValueError(f"{name}: is {own} where the result is {format}")
        array = array.view(_WORDS[array.dtype.itemsize])
    if not array.flags.writeable:
        raise ValueError(f"{name}: the array is read only")
    return _core.Array.output(array, format, name)


def word_of(format: str) -> Any:
    """The unsigned word that holds a code."""
    return _WORDS[_core.code_bytes(format)]


def empty_codes(shape: Any, format: str) -> np.ndarray:
    """Memory for codes of a result."""
    return np.empty(tuple(shape), word_of(format))


def from_codes(codes: np.ndarray, format: str, library: Library) -> Any:
    """The codes as an array of the caller's library, or as Codes where that has no type for them."""
    if library.name == "torch":
        return _torch_tensor(codes, format, library)
    dtype = _numpy_dtype(format)
    if dtype is None:
        return Codes(codes, format)
    array = codes.view(dtype)
    if library.name == "jax":
        return sys.modules["jax"].numpy.asarray(array)
    if library.name == "cupy":  # which has no types of ml_dtypes
        return sys.modules["cupy"].asarray(array) if dtype.kind in "fiub" else Codes(codes, format)
    return array


def _numpy_dtype(format: str) -> np.dtype | None:
    if format in _NUMPY_DTYPES:
        return np.dtype(_NUMPY_DTYPES[format])
    try:
        import ml_dtypes
    except ImportError:
        return None
    scalar = getattr(ml_dtypes, _ML_DTYPES.get(format, ""), None)
    return None if scalar is None else np.dtype(scalar)


def _torch_tensor(codes: np.ndarray, format: str, library: Library) -> Any:
    torch = sys.modules["torch"]
    if format == "e2m1" and codes.ndim > 0 and codes.shape[-1] % 2 == 0 and hasattr(torch, "float4_e2m1fn_x2"):
        packed = np.ascontiguousarray(codes[..., 0::2] | codes[..., 1::2] << 4)
        tensor = torch.from_numpy(packed).view(torch.float4_e2m1fn_x2)
        return tensor.to(library.device)
    dtype = getattr(torch, _TORCH_DTYPES.get(format, ""), None)
    if dtype is None:
        return Codes(codes, format)
    signed = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[codes.dtype.itemsize]
    return torch.from_numpy(codes.view(signed)).view(dtype).to(library.device)

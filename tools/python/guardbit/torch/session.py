"""Operators on tensors of the GPU: which move data and which are computed, and by what."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _core
from . import generators
from .forms import IN_ROWS, form_of
from .gpu_tensor import GpuTensor, internals
from .recording.facts import is_without_autograd, tensors_in
from .run_report import RULE, Report
from .unmodelled import Unmodelled, told_of_tensors

# Operators that neither compute nor draw, beside views: PyTorch does them on the CPU's copies of the elements.
MOVING = frozenset("""
_reshape_alias _reshape_copy _unsafe_view alias_copy arange as_strided_ as_strided_scatter cat clone constant_pad_nd detach_ diag_embed
diagonal_copy diagonal_scatter embedding empty empty_like empty_permuted empty_strided expand_copy eye fill fill_ flip full full_like gather
index index_copy index_copy_ index_fill index_fill_ index_select is_pinned is_same_size lift lift_fresh lift_fresh_copy masked_scatter
masked_scatter_ masked_select narrow_copy new_empty new_empty_strided new_full new_ones new_zeros nonzero one_hot ones ones_like permute_copy
repeat repeat_interleave resize_ roll rot90 scalar_tensor scatter scatter_ select_backward select_scatter slice_backward slice_scatter
slice_copy split_copy split_with_sizes_copy squeeze_ squeeze_copy stack swapaxes_ t_ t_copy take tile transpose_ transpose_copy tril tril_
tril_indices triu triu_ triu_indices unfold_copy unsqueeze_ unsqueeze_copy view_copy zero_ zeros zeros_like zero
_foreach_copy_ _foreach_zero_ _local_scalar_dense _to_dense copy_ unbind_copy set_ equal index_put index_put_ bincount
_has_compatible_shallow_copy_type record_stream pin_memory _pin_memory item bucketize searchsorted _is_all_true _is_any_true
pixel_shuffle pixel_unshuffle channel_shuffle reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
replication_pad3d block_diag im2col adaptive_max_pool2d adaptive_max_pool3d aminmax count_nonzero isin
max_unpool2d max_unpool3d max_pool3d_with_indices diagonal_backward masked_scatter_backward allclose gcd lcm __lshift__ __rshift__
__ilshift__ __irshift__ bitwise_left_shift bitwise_right_shift cummax cummin _cummax_helper _cummin_helper
isneginf isposinf _int_mm
""".split())

# Operators whose handlers look at the form of the result.
WITH_FORM = frozenset("""
mm addmm bmm baddbmm addmv mv dot addbmm convolution convolution_backward _adaptive_avg_pool2d upsample_nearest2d upsample_bilinear2d
_upsample_nearest_exact2d upsample_bicubic2d
""".split())

# PyTorch's types by the names of the formats.
DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn,
          "e5m2": torch.float8_e5m2, "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8,
          "uint8": torch.uint8, "b1": torch.bool}
WORDS = {dtype: str(dtype) for dtype in DTYPES.values()}

Special = Callable[["Session", Any, tuple[Any, ...], dict[str, Any]], Any]


IS_LIKE_HOST = torch.backends.cpu.get_cpu_capability() == "AVX512"


def is_cuda(device: Any) -> bool:
    if device is None:
        return False
    if not isinstance(device, torch.device):
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if device.type == "cuda" and device.index:
        raise RuntimeError("CUDA error: invalid device ordinal")
    return bool(device.type == "cuda")


def is_gpus(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return is_cuda(kwargs.get("device")) or any(isinstance(x, GpuTensor) for x in tensors_in((*args, *kwargs.values())))


def elements_of(value: Any) -> Any:
    if isinstance(value, GpuTensor):
        return value.elements
    if isinstance(value, (list, tuple)):
        return type(value)(elements_of(x) for x in value)
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, torch._C.Generator):
        return None
    return value


def on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What PyTorch makes of the same call on the CPU's copies of the elements."""
    return func(*[elements_of(x) for x in args], **{name: elements_of(x) for name, x in kwargs.items()})


def raise_what_is_refused(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """PyTorch's own error where it takes such arguments on no device: shapes that do not fit, say."""
    try:
        on_cpu(func, args, kwargs)
    except NotImplementedError:
        return
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise


class Session(TorchDispatchMode):
    """What every operator of the program passes through, below autograd and autocast."""

    specials: dict[str, Special] = {}
    # Those of complex numbers.
    of_complex: dict[str, Special] = {}

    def __init__(self, threads: int = 0, book: str | None = None, unmodelled: str = "stop", guesses: float = RULE) -> None:
        super().__init__()
        self.operators = _core.Operators(threads)
        if book:
            self.operators.read_book(book)
        self.unmodelled, self.guesses = unmodelled, guesses
        self.report = Report()
        # Composite operators arrive whole, as they do without autograd.
        self.decomposes = False
        # What looks at every call: recorders, comparisons with a recording.
        self.watchers: list[Any] = []
        self.flags: tuple[Any, ...] | None = None
        GpuTensor.compute = self.compute

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not is_gpus(args, kwargs):
            if self.watchers and is_without_autograd(args, kwargs) and func._can_decompose():
                result = self.decomposed(func, args, kwargs)
                if result is not NotImplemented:
                    return result
            self.report.add_cpu_call(func.overloadpacket.__name__, IS_LIKE_HOST)
            return self.watched(func, args, kwargs, lambda: func(*args, **kwargs))
        return self.compute(func, args, kwargs)

    def decomposed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Without autograd composite operators arrive whole."""
        with self:
            return func.decompose(*args, **kwargs)

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """What is called inside passes through the session, from below autograd."""
        before, self.decomposes = self.decomposes, True
        try:
            with self:
                yield
        finally:
            self.decomposes = before

    def watched(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
        for watcher in self.watchers:
            call = functools.partial(watcher.watched, func, args, kwargs, call)
        return call()

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packet = func.overloadpacket.__name__
        if packet == "scaled_dot_product_attention":
            return self.specials[packet](self, func, args, kwargs)
        if packet == "item":
            func = torch.ops.aten._local_scalar_dense.default
        elif packet not in self.specials and (self.decomposes or is_without_autograd(args, kwargs)) and func._can_decompose():
            result = self.decomposed(func, args, kwargs)
            if result is not NotImplemented:
                return result
        if not self.watchers:
            return self.computed(func, args, kwargs)
        return self.watched(func, args, kwargs, lambda: self.computed(func, args, kwargs))

    def computed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packet = func.overloadpacket.__name__
        special = self.specials.get(packet)
        if special is not None:
            return special(self, func, args, kwargs)
        if func.is_view and torch.is_inference_mode_enabled() and not tensors_in(args)[0].is_inference():
            # A view of a tensor that autograd knows is one, too.
            with torch.inference_mode(False):
                return self.moved(func, args, kwargs)
        if func.is_view or packet in MOVING:
            return self.moved(func, args, kwargs)
        return self.modelled(func, args, kwargs)

    def close(self) -> None:
        """Ends what the module holds."""
        del self.operators
        del GpuTensor.compute

    # Data.

    def moved(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = on_cpu(func, args, kwargs)
        if func.overloadpacket in IN_ROWS and isinstance(result, torch.Tensor):
            result = result.contiguous()
        return self.given(func, args, kwargs, result, doubt_of(args, kwargs))

    def given(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, doubt: str | None) -> Any:
        """The result on the GPU; where the call changed an argument and returns it, the argument."""
        if func._schema.is_mutable:
            for value in changed_arguments(func, args, kwargs):
                for tensor in tensors_in([value]):
                    if doubt and isinstance(tensor, GpuTensor):
                        tensor.doubt = doubt
                    if isinstance(tensor, GpuTensor) and tensor.shape != tensor.elements.shape:
                        self.reshape(tensor)
            return returned_arguments(func, args, kwargs)
        return self.wrapped(result, doubt)

    @staticmethod
    def reshape(tensor: GpuTensor) -> None:
        """The sizes of its elements' tensor, which an operator has changed in place."""
        internals.Tensor.data.__set__(tensor, GpuTensor(tensor.elements))

    def wrapped(self, result: Any, doubt: str | None) -> Any:
        if isinstance(result, GpuTensor):
            return result
        if isinstance(result, torch.Tensor):
            return GpuTensor(result, doubt)
        if isinstance(result, (list, tuple)):
            return type(result)(self.wrapped(x, doubt) for x in result)
        return result

    # Models.

    def modelled(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        began = time.perf_counter()
        doubt = doubt_of(args, kwargs)
        name = str(func)
        if any(x.is_complex() for x in tensors_in((*args, *kwargs.values()))):
            special = self.of_complex.get(func.overloadpacket.__name__)
            return special(self, func, args, kwargs) if special else self.without_model(func, args, kwargs, "complex numbers")
        seed = offset = None
        generator = None
        if torch.Tag.nondeterministic_seeded in func.tags:
            kwargs = dict(kwargs)
            given = kwargs.pop("generator", None)
            generator = generators.default if given is None else generators.of_gpu(given)
            if generator is None:
                raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
            name = name.replace(".generator_with_names", ".default").replace(".generator", ".default").replace("low_generator", "low")
            seed, offset = generator.seed_, generator.offset
        self.refresh_flags()
        kept: list[Any] = []
        form = None
        if not func._schema.is_mutable:
            form = form_of(func, args, kwargs)
            wanted = argument_of(func, args, kwargs, "output_mask")
            if wanted is not None and func.overloadpacket.__name__.endswith("_norm_backward") and isinstance(form, tuple):
                # The model gives what is wanted alone.
                form = tuple(part if is_wanted else None for part, is_wanted in zip(form, wanted))
        out = None
        if func.overloadpacket.__name__ in WITH_FORM:
            out = self.out_of(form, kept)
        status, plan, results, changed, also_changed, agree, drawn = self.operators.answer(
            name, [self.argument(x, kept) for x in args], {key: self.argument(x, kept) for key, x in kwargs.items()}, out, seed, offset)
        if generator is not None:
            generator.offset += drawn
        if status == "data" and generator is None and tensors_in((*args, *kwargs.values())):
            return self.moved(func, args, kwargs)
        if status == "data" and generator is None:
            plan = "no model of this operator"
        if agree < 1000 * self.guesses:
            status, plan = "unmodelled", "the library's plan for this shape is not known"
        if status != "exact":
            if self.unmodelled != "torch" and form is None and not func._schema.is_mutable:
                raise_what_is_refused(func, args, kwargs)
            return self.without_model(func, args, kwargs, plan, generator)
        result = self.written(func, args, kwargs, results, changed, also_changed, form, doubt, plan)
        self.report.add(name, plan, time.perf_counter() - began, agree < 1000 * RULE)
        return result

    def without_model(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, generator: Any = None) -> Any:
        name = str(func)
        if self.unmodelled != "torch" or generator is not None:
            raise Unmodelled(name, reason, told_of_tensors(func, args, kwargs))
        self.report.add_unmodelled(name, reason)
        return self.given(func, args, kwargs, on_cpu(func, args, kwargs), doubt_of(args, kwargs) or name)

    def argument(self, value: Any, kept: list[Any]) -> Any:
        if isinstance(value, torch.Tensor):
            inner: Any = value.elements if isinstance(value, GpuTensor) else value
            if inner.dtype == torch.uint64:
                inner = inner.view(torch.int64)
            word = WORDS.get(inner.dtype)
            if word is None:
                return str(inner.dtype)
            rows = inner if inner.is_contiguous() else inner.contiguous()
            kept.append(rows)
            return _core.OperatorTensor(word, list(inner.shape), list(inner.stride()), inner.storage_offset(), isinstance(value, GpuTensor),
                                        rows.data_ptr())
        if isinstance(value, (list, tuple)):
            return [self.argument(x, kept) for x in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value)

    def out_of(self, form: Any, kept: list[Any]) -> Any:
        if isinstance(form, (list, tuple)):
            return [self.out_of(x, kept) for x in form]
        if form is None:
            return None
        memory = torch.empty(form.shape, dtype=form.dtype)
        kept.append(memory)
        return _core.OperatorTensor(str(form.dtype), list(form.shape), list(form.stride()), 0, True, memory.data_ptr())

    def written(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: list[Any], changed: list[str],
                also_changed: list[Any], form: Any, doubt: str | None, plan: str) -> Any:
        """Puts what was computed where the call has it."""
        for argument, value in also_changed:
            target = argument_of(func, args, kwargs, argument)
            if target is not None:
                target.elements.copy_(tensor_of(value))
        if changed:
            position = 0
            for argument in changed:
                value = argument_of(func, args, kwargs, argument)
                for tensor in tensors_in(value if isinstance(value, (list, tuple)) else [value]):
                    if results[position] is not None:
                        tensor.elements.copy_(tensor_of(results[position]))
                    tensor.doubt = tensor.doubt or doubt
                    position += 1
            return None
        gives_new = bool(func._schema.returns) and all(x.alias_info is None for x in func._schema.returns)
        if func._schema.is_mutable and not gives_new:
            targets = tensors_in(changed_arguments(func, args, kwargs))
            for target, value in zip(targets, results):
                computed = tensor_of(value)
                if computed.dtype != target.dtype or computed.shape != target.shape:
                    return self.without_model(func, args, kwargs, "its result goes to a tensor of another type or shape")
                target.elements.copy_(computed)
                target.doubt = target.doubt or doubt
            return returned_arguments(func, args, kwargs)
        return self.results_of(func, results, form, doubt)

    def results_of(self, func: Any, results: list[Any], form: Any, doubt: str | None) -> Any:
        rest = list(results)

        def placed(part: Any) -> Any:
            if isinstance(part, (list, tuple)):
                return type(part)(placed(x) for x in part) if not hasattr(part, "_fields") else tuple(placed(x) for x in part)
            if not isinstance(part, torch.Tensor):
                return part
            value = rest.pop(0) if rest else None
            if value is None and part.numel() == 0:
                return GpuTensor(torch.empty(part.shape, dtype=part.dtype), doubt)
            if value is None:
                raise Unmodelled(str(func), "a result has no model")
            computed = tensor_of(value)
            if computed.shape != part.shape or computed.dtype != part.dtype:
                if computed.numel() or part.numel():
                    raise Unmodelled(str(func), f"the model gives {computed.dtype} {tuple(computed.shape)} where the GPU gives {part.dtype} {tuple(part.shape)}")
                computed = torch.empty(part.shape, dtype=part.dtype)
            if computed.stride() != part.stride() and computed.numel() > 1:
                laid = torch.empty_strided(part.shape, part.stride(), dtype=part.dtype)
                computed = laid.copy_(computed)
            return GpuTensor(computed, doubt)

        if form is None:
            made = [GpuTensor(tensor_of(x), doubt) for x in results]
            return made[0] if len(func._schema.returns) == 1 and str(func._schema.returns[0].type) == "Tensor" else made
        return placed(form)

    def refresh_flags(self) -> None:
        now = (torch._C._get_cublas_allow_tf32(), torch._C._get_cudnn_allow_tf32(), torch._C._get_deterministic_algorithms(),
               torch._C._get_deterministic_algorithms_warn_only(), torch._C._get_cudnn_benchmark(), torch._C._get_cudnn_deterministic(),
               has_usual_workspace())
        if now == self.flags:
            return
        self.flags = now
        names = ("matmul_allow_tf32", "cudnn_allow_tf32", "deterministic", "deterministic_warn_only", "cudnn_benchmark", "cudnn_deterministic",
                 "usual_workspace")
        self.operators.set_flags({name: str(value).lower() for name, value in zip(names, now)})

    def leaves(self, func: Any, tensor: Any) -> None:
        """Elements go to the CPU: they must be known."""
        doubt = tensor.doubt if isinstance(tensor, GpuTensor) else None
        if doubt is None:
            return
        if self.unmodelled == "torch":
            self.report.left_in_doubt += 1
            return
        raise Unmodelled(doubt, "what the CPU is given depends on it")


def has_usual_workspace() -> bool:
    """Does cuBLAS get PyTorch's default workspace? On an H200 66,184 of 66,184 recorded calls launched the same with :4096:8, three of four with :16:8."""
    return os.environ.get("CUBLAS_WORKSPACE_CONFIG", "") in ("", ":4096:8") and not os.environ.get("CUBLASLT_WORKSPACE_SIZE")


def doubt_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    for tensor in tensors_in((*args, *kwargs.values())):
        if isinstance(tensor, GpuTensor) and tensor.doubt:
            return tensor.doubt
    return None


def tensor_of(value: Any) -> Any:
    """A result of the module as a tensor of the CPU."""
    name, shape, data = value
    dtype = DTYPES[name]
    if data.size == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.from_numpy(data).view(dtype).reshape(shape)


def value_at(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    """The argument of that position and name; None where the call leaves it out."""
    return args[place] if place < len(args) else kwargs.get(name)


def changed_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the schema says are written to, in order."""
    found = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(value_at(args, kwargs, i, argument.name))
    return found


def returned_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call gives that gives the arguments it changed."""
    found = []
    for result in func._schema.returns:
        for i, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and result.alias_info is not None and argument.alias_info.before_set == result.alias_info.before_set:
                found.append(value_at(args, kwargs, i, argument.name))
    return None if not found else found[0] if len(found) == 1 else tuple(found)


def argument_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    for i, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return value_at(args, kwargs, i, name)
    return None

"""Operands of a drawn call: numbers of several kinds, in memory in odd orders."""

import hashlib
import math

import numpy as np
import torch

from .choices import Choices
from .number_types import FLOATS, NAMES, bf16, f16, f64, i64, u8


def dense_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def in_a_row(tensor):
    """The elements of a contiguous tensor, with stride 1 also where it is a single one."""
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


class Operands(Choices):
    def __init__(self, key, device):
        super().__init__(key)
        self.words_of = np.random.PCG64(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"))
        self.device = device
        self.descriptions, self.kept = [], {}
        self.digest = hashlib.blake2b(digest_size=8)  # of the elements of all operands
        self.special = self.chance(0.1)  # zeros of both signs, subnormal numbers, infinities and NaN among the numbers
        self.seed = self.random.getrandbits(40)

    def words(self, count):
        """Random words of 64 bits."""
        return self.words_of.random_raw(count) if count else np.zeros(0, np.uint64)

    def fractions(self, count):
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53

    def kind(self):
        return self.weighted(normal=60, wide=12, small=14, unit=8, big=6)

    def numbers(self, count, dtype, kind):
        if kind == "normal":  # nearly: sums of four words
            sums = self.words(2 * count).view(np.uint32).astype(np.uint64).reshape(count, 4).sum(1)
            return (sums.astype(np.float64) - 2.0 * (2.0 ** 32 - 1)) * (3.0 ** 0.5 * 2.0 ** -32)
        if kind == "big":
            return (self.fractions(count) - 0.5) * 200
        if kind == "unit":
            return self.fractions(count) * 2 - 1
        if kind == "fraction":
            return self.fractions(count)
        if kind == "positive":
            return self.fractions(count) * 4 + 2.0 ** -10
        if kind == "positive_wide":
            return np.abs(self.numbers(count, dtype, "wide"))
        if kind == "small":
            return (self.words(count) % np.uint64(9)).astype(np.float64) - 4
        if kind == "sign":
            return (self.words(count) % np.uint64(2)).astype(np.float64) * 2 - 1
        if kind == "wide":
            least, greatest = {f16: (-18, 13), f64: (-150, 150)}.get(dtype, (-45, 45))
            words = self.words(count)
            exponents = (words % np.uint64(greatest - least + 1)).astype(np.int64) + least
            signs = np.where((words >> np.uint64(9)) & np.uint64(1), -1.0, 1.0)
            return np.ldexp(((words >> np.uint64(12)).astype(np.float64) * 2.0 ** -52 + 1) * signs, exponents)
        raise KeyError(kind)

    def put_special_numbers(self, numbers, dtype):
        limits = torch.finfo(dtype)
        tiny = float(limits.tiny)
        pool = [0.0, -0.0, tiny / 2, -tiny / 4, tiny * 0.75]
        fraction = self.fraction()
        if fraction < 0.5:
            pool += [float("inf")] + ([float("-inf"), float("nan"), float(limits.max)] if fraction < 0.25 else [])
        count = max(1, min(200, len(numbers) // 40)) if self.chance(0.5) else 1
        where = (self.words(count) % np.uint64(len(numbers))).astype(np.int64)
        numbers[where] = [pool[int(k)] for k in self.words(count) % np.uint64(len(pool))]

    def values(self, shape, dtype, kind):
        numbers = self.numbers(math.prod(shape), dtype, kind)
        if self.special and len(numbers) and dtype in FLOATS and kind not in ("fraction", "sign", "positive"):
            self.put_special_numbers(numbers, dtype)
        with np.errstate(all="ignore"):
            if dtype == f64:
                tensor = torch.from_numpy(numbers)
            elif dtype == f16:
                tensor = torch.from_numpy(numbers.astype(np.float16))
            else:
                tensor = torch.from_numpy(numbers.astype(np.float32))
        return (tensor.to(bf16) if dtype == bf16 else tensor).reshape(shape)

    def layout(self, rank, grad=False, plain=False):
        """An order in memory; a plain one has no two elements in one place."""
        if rank == 0:
            return self.weighted(contiguous=80, offset=20)
        if rank == 1:
            weights = {"contiguous": 35, "gaps": 20, "offset": 30, "expanded": 0 if plain else 5, "padded": 10}
        elif grad:
            weights = {"contiguous": 40, "expanded": 16, "permuted": 12, "transposed": 8, "channels_last": 10, "gaps": 6, "padded": 3, "offset": 5}
        else:
            weights = {"contiguous": 18, "permuted": 18, "transposed": 12, "channels_last": 14, "gaps": 12, "padded": 8, "offset": 10,
                       "permuted_gaps": 6, "expanded": 5, "overlapping": 2}
        left_out = set() if rank in (3, 4, 5) else {"channels_last"}
        if plain:
            left_out |= {"expanded", "overlapping"}
        return self.weighted(**{name: weight for name, weight in weights.items() if name not in left_out})

    def laid(self, x, layout):
        """x in this order in memory."""
        return x if layout == "contiguous" or x.numel() == 0 else getattr(self, "laid_" + layout)(x)

    def laid_permuted(self, x, gaps=False):
        order = self.shuffled(range(x.dim()))
        y = x.permute(order).contiguous()
        return (self.laid_gaps(y) if gaps else y).permute([order.index(k) for k in range(x.dim())])

    def laid_permuted_gaps(self, x):
        return self.laid_permuted(x, gaps=True)

    def laid_transposed(self, x):
        first, second = (x.dim() - 2, x.dim() - 1) if self.chance(0.5) else sorted(self.some(range(x.dim()), 2))
        return x.transpose(first, second).contiguous().transpose(first, second)

    def laid_channels_last(self, x):
        if x.dim() == 3:
            return x.permute(0, 2, 1).contiguous().permute(0, 2, 1)
        return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)

    def laid_offset(self, x):
        offset = self.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 9])
        y = torch.full((x.numel() + offset + 3,), 3, dtype=x.dtype, device=x.device).as_strided(x.shape, dense_strides(x.shape), offset)
        return y.copy_(x)

    def laid_padded(self, x):
        dim = x.dim() - 1 if self.chance(0.6) else self.between(0, x.dim() - 1)
        return self.inside(x, {dim: (1, self.between(0, 5), self.between(1, 9))})

    def laid_gaps(self, x):
        dims = self.some(range(x.dim()), self.between(1, min(2, x.dim())))
        return self.inside(x, {dim: (self.choice([1, 2, 2, 3]), self.between(0, 3), self.between(0, 4)) for dim in dims})

    def inside(self, x, places):
        """x as a part of a greater tensor: of some dimensions the step, how much lies before it and how much after it."""
        def sizes():
            return [n * step + before + after for n, (step, before, after) in zip(x.shape, steps)]

        steps = [places.get(dim, (1, 0, 0)) for dim in range(x.dim())]
        if math.prod(sizes()) > 4 * x.numel() + 5000:
            longest = list(x.shape).index(max(x.shape))
            steps = [(1, self.between(0, 3), self.between(1, 4)) if dim == longest else (1, 0, 0) for dim in range(x.dim())]
        y = torch.full(sizes(), 3, dtype=x.dtype, device=x.device)
        return y[tuple(slice(before, before + (n - 1) * step + 1, step) for n, (step, before, _) in zip(x.shape, steps))].copy_(x)

    def laid_expanded(self, x):
        y = x
        for dim in self.some(range(x.dim()), self.between(1, x.dim()) if self.chance(0.5) else 1):
            y = y.narrow(dim, 0, 1)
        return y.expand(x.shape)

    def laid_overlapping(self, x):
        strides = list(dense_strides(x.shape))
        dim = self.between(0, x.dim() - 1)
        strides[dim] = self.between(1, strides[dim])
        return x.as_strided(x.shape, strides)

    def placed(self, tensor, layout=None, name="x", kind="data", plain=True):
        """A tensor of the host on the device, in some order in memory."""
        layout = layout or self.layout(tensor.dim(), plain=plain)
        self.digest.update(in_a_row(tensor.contiguous()).view(u8).numpy() if tensor.numel() else b"-")
        with torch.no_grad():
            y = self.laid(tensor.to(self.device), layout).detach()
        strides = "" if y.stride() == dense_strides(y.shape) else f" s{list(y.stride())}"
        offset = f"+{y.storage_offset()}" if y.storage_offset() else ""
        self.descriptions.append(f"{name} {NAMES[y.dtype]}{list(y.shape)}{strides}{offset} {kind}/{layout}")
        self.kept[f"{len(self.descriptions) - 1} {name}"] = y
        return y

    def tensor(self, shape, dtype=None, kind=None, layout=None, name="x", plain=False, grad=False):
        """Random numbers on the device."""
        dtype = dtype or self.float_type()
        kind = kind or self.kind()
        shape = tuple(int(n) for n in shape)
        layout = layout or self.layout(len(shape), grad, plain)
        return self.placed(self.values(shape, dtype, kind), layout, name, kind)

    def integers(self, shape, least, end, dtype=i64, layout=None, name="i", plain=True):
        """Random integers from `least` to `end` - 1 on the device."""
        values = (self.words(math.prod(shape)) % np.uint64(max(1, end - least))).astype(np.int64) + least
        return self.placed(torch.from_numpy(values).reshape(tuple(shape)).to(dtype), layout, name, f"{least}..{end - 1}", plain)

    def permutation(self, n):
        return torch.from_numpy(np.argsort(self.words(n), kind="stable").astype(np.int64))

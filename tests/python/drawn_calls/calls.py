"""One drawn call: choices, operands, and what its operator gives, forward and backward."""

import hashlib

import torch

from .number_types import FLOATS, NAMES, bf16, f16, f32, f64, i16, i32, i64, u8
from .operands import Operands, in_a_row


def tensors_in(results):
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, (list, tuple)):
        return [tensor for result in results for tensor in tensors_in(result)]
    return [torch.tensor(results)] if isinstance(results, (bool, int, float)) else []


def with_one_nan(tensor):
    """The same numbers, with the same bits for every NaN."""
    nan = torch.isnan(tensor)
    if not nan.any():
        return tensor
    bits, usual = {f32: (i32, 0x7fc00000), f64: (i64, 0x7ff8000000000000), f16: (i16, 0x7e00), bf16: (i16, 0x7fc0)}[tensor.dtype]
    tensor = tensor.clone()
    tensor.view(bits)[nan] = usual
    return tensor


def described(tensor):
    """Type, shape, strides and a digest of the elements."""
    elements = tensor.detach().cpu().contiguous()
    if elements.is_complex():
        elements = torch.view_as_real(elements)
    if elements.dtype in FLOATS and elements.numel():
        elements = with_one_nan(elements)
    data = in_a_row(elements).view(u8).numpy().tobytes() if elements.numel() else b""
    digest = hashlib.blake2b(data, digest_size=8).hexdigest()
    return [NAMES.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape), list(tensor.stride()), digest]


class Call(Operands):
    """The call that a part's number, a seed and an index name."""

    def __init__(self, part, seed, index, device):
        super().__init__(f"{part}/{seed}/{index}", device)
        self.index = index
        self.operator, self.arguments = "?", []
        self.stage, self.results, self.drawn = "operands", {}, None

    def note(self, **arguments):
        self.arguments += [f"{name}={value}" for name, value in arguments.items()]

    def compute(self, function, of=(), backward=0.6):
        """Calls the function; with the probability `backward` also its gradients for some of the tensors `of`."""
        self.drawn = self.digest.hexdigest()
        of = [tensor for tensor in of if tensor is not None and tensor.dtype in FLOATS]
        with_gradients = bool(of) and self.chance(backward)
        if len(of) > 1 and self.chance(0.25):
            of = self.some(of, self.between(1, len(of)))
        self.stage = "forward"
        if with_gradients:
            for tensor in of:
                tensor.requires_grad_(True)
        with torch.set_grad_enabled(with_gradients):
            results = tensors_in(function())
        self.keep("forward", results)
        sources = [tensor for tensor in results if tensor.requires_grad and tensor.dtype in FLOATS]
        if with_gradients and sources:
            self.stage = "gradients of results"
            given = [self.tensor(source.shape, source.dtype, self.weighted(normal=70, small=20, unit=10), name="g", grad=True) for source in sources]
            self.stage = "backward"
            self.keep("backward", torch.autograd.grad(sources, of, given, allow_unused=True))

    def keep(self, stage, results):
        for k, tensor in enumerate(results):
            self.kept[f"> {stage} {k}"] = tensor
        self.results[stage] = [None if tensor is None else described(tensor) for tensor in results]

    def under_autocast(self, function, probability):
        """The function, sometimes under autocast."""
        if not self.chance(probability):
            return function
        dtype = self.choice([f16, bf16])
        self.note(autocast=NAMES[dtype])

        def run():
            with torch.autocast(self.device, dtype=dtype):
                return function()
        return run

    def seeded(self, function):
        """The function, with the device's generator seeded."""
        seed = self.between(0, 2 ** 31) if self.chance(0.7) else self.random.getrandbits(41)
        self.note(seed=seed)

        def run():
            torch.manual_seed(seed) if self.device == "cpu" else torch.cuda.manual_seed(seed)
            return function()
        return run

    def weight_and_bias(self, shape, dtype, layout=None):
        """Both, one of them or none."""
        def one(name):
            kind = self.weighted(normal=75, small=15, unit=10)
            return self.tensor(shape, dtype, kind, layout or self.weighted(contiguous=70, offset=18, gaps=12), name)

        fraction = self.fraction()
        weight = one("w") if fraction < 0.75 else None
        return weight, one("b") if fraction < 0.65 or fraction > 0.9 else None

    def record(self):
        return {"index": self.index, "operator": self.operator, "type": NAMES.get(self.dtype, "?"), "arguments": " ".join(self.arguments),
                "operands": self.descriptions, "drawn": self.drawn or self.digest.hexdigest(), **self.results}

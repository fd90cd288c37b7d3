"""Calls of operators by name: a function of PyTorch and its operands, which are drawn with seeds."""

import torch
import torch.nn.functional as F

f64, f32, f16, bf16 = torch.float64, torch.float32, torch.float16, torch.bfloat16
SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, float("inf"), -float("inf"), float("nan"), 5e-324, -5e-324, 2.2e-308, 1e-310, 1.7e308, -1.7e308, 3.14159,
           710, -745, 1e-17]
CASES = {}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def normal(seed, shape, dtype=f32, scale=1.0):
    return (torch.randn(shape, generator=seeded(seed), dtype=f64) * scale).to(dtype)


def whole(seed, shape, high):
    return torch.randint(0, high, shape, generator=seeded(seed))


def wide(seed, count=4000):
    """Special numbers, normal and uniform ones, and numbers of 120 exponents."""
    generator = seeded(seed)
    far = torch.randn(count, generator=generator, dtype=f64) * torch.pow(torch.tensor(2.0, dtype=f64), torch.randint(-60, 60, (count,), generator=generator))
    near = [torch.randn(count, generator=generator, dtype=f64), torch.rand(count, generator=generator, dtype=f64) * 2 - 1]
    return torch.cat([torch.tensor(SPECIAL, dtype=f64), *near, far])


def case(name, function, *operands, grad=True):
    CASES[name] = (function, operands, grad)


def functions():
    for name in """sin cos tan log2 log10 asin asinh atanh erfc erfinv lgamma digamma sinc logit i0 special.i0e special.i1 special.i1e special.erfcx
                   special.log_ndtr special.ndtri special.entr""".split():
        function = torch
        for part in name.split("."):
            function = getattr(function, part)
        case(f"f64 {name}", function, wide(1))
        case(f"f32 {name}", function, wide(2).float())
    for name in "logsigmoid hardswish hardsigmoid silu relu6 softsign celu".split():
        case(f"f64 {name}", getattr(F, name), wide(3))
    case("f64 glu", F.glu, normal(4, (32, 64), f64))
    case("f64 atan2", torch.atan2, wide(5), wide(6))
    case("f64 xlogy", torch.xlogy, wide(5), wide(6).abs())
    case("f64 remainder", torch.remainder, wide(5), wide(6))
    for name in ("igamma", "igammac"):
        case(name, getattr(torch, name), wide(7).float().abs(), wide(8).float().abs(), grad=False)
    for n in (1, 2):
        case(f"polygamma {n}", lambda x, n=n: torch.polygamma(n, x), wide(9).float().abs())


def grids():
    def sampled(x, grid):
        return F.grid_sample(x, grid, align_corners=True)
    for dtype in (f32, f64, f16):
        for size, points in (((2, 3, 8, 9), (5, 7)), ((1, 40, 32, 15), (1, 643)), ((4, 1, 30, 30), (16, 16))):
            grid = (torch.rand((size[0], *points, 2), generator=seeded(11), dtype=f64) * 2.4 - 1.2).to(dtype)
            case(f"cudnn_grid_sampler {dtype} {size}", sampled, normal(10, size, dtype), grid)
            pixel = torch.zeros(size, dtype=dtype)
            pixel[..., size[2] // 2, size[3] // 2] = 1
            case(f"cudnn_grid_sampler one pixel {dtype} {size}", sampled, pixel, grid)


def distances():
    for p in (0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        case(f"pdist {p}", lambda x, p=p: F.pdist(x, p), normal(12, (20, 300)))
    case("cdist broadcast", torch.cdist, normal(13, (3, 1, 9, 40)), normal(14, (4, 7, 40)))
    for dtype in (f32, f64):
        for m, n, k in ((64, 40, 16), (30, 30, 3), (200, 1000, 128)):
            case(f"euclidean {dtype} {m} {n} {k}", torch.cdist, normal(15, (m, k), dtype), normal(16, (n, k), dtype))


def layers():
    for k in (5, 8, 300):
        case(f"ctc {k}", lambda x, k=k: F.ctc_loss(x.log_softmax(-1), whole(17, (2, 4), k - 1) + 1, torch.tensor([12, 12]), torch.tensor([4, 3])),
             normal(18, (12, 2, k)))
    for dtype in (f32, f16):
        case(f"bilinear {dtype}", F.bilinear, normal(19, (4, 8), dtype), normal(20, (4, 6), dtype), normal(21, (5, 8, 6), dtype))
    for dtype in (f32, bf16):
        case(f"embedding freq {dtype}", lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), normal(22, (31, 40), dtype), whole(23, (170,), 31))
    case("embedding max_norm", lambda w, i: F.embedding(i, w.clone(), max_norm=1.0), normal(24, (40, 24)), torch.arange(30), grad=False)
    case("embedding_bag max", lambda w, i: F.embedding_bag(i, w, mode="max"), normal(25, (40, 24)), torch.randperm(40, generator=seeded(1)).reshape(10, 4))
    case("f64 batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), normal(37, (4, 6, 9, 9), f64), normal(38, (6,), f64), normal(39, (6,), f64))
    case("f64 instance_norm", F.instance_norm, normal(40, (4, 6, 9, 9), f64))
    case("f64 weight_norm", lambda v, g: torch._weight_norm(v, g, 0), normal(41, (16, 48), f64), normal(42, (16, 1), f64))
    case("f64 mm", torch.mm, normal(43, (64, 48), f64), normal(44, (48, 80), f64))
    case("f64 conv2d", F.conv2d, normal(45, (2, 4, 12, 12), f64), normal(46, (8, 4, 3, 3), f64))
    case("conv3d", F.conv3d, normal(49, (2, 4, 9, 9, 9)), normal(50, (8, 4, 3, 3, 3)))


def draws():
    def full(shape, value):
        return torch.full(shape, value, device="cuda")
    made = {
        "poisson": lambda: torch.poisson(full((5000,), 3.5)), "gamma": lambda: torch._standard_gamma(full((3000,), 0.7)),
        "cauchy": lambda: torch.empty(5000, device="cuda").cauchy_(), "log_normal": lambda: torch.empty(5000, device="cuda").log_normal_(),
        "geometric": lambda: torch.empty(5000, device="cuda").geometric_(0.3),
        "normal tensors": lambda: torch.normal(full((5000,), 0.0), full((5000,), 1.0)),
        "multinomial replaced": lambda: torch.multinomial(torch.rand(40, 300, generator=seeded(3)).cuda(), 700, replacement=True),
        "dirichlet": lambda: torch._sample_dirichlet(full((300, 5), 0.9)),
    }

    def drawn(make):
        torch.cuda.manual_seed(1234)
        return make()
    for name, make in made.items():
        case("draws " + name, lambda make=make: drawn(make), grad=False)


def others():
    for name in "bartlett blackman kaiser".split():
        case("window " + name, lambda name=name: getattr(torch, name + "_window")(160, device="cuda"), grad=False)
    case("logspace", lambda: torch.logspace(-2, 3, 77, device="cuda"), grad=False)
    case("fake quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.037, 3, -128, 127), wide(26).float())
    case("fake quantize channels", lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.linspace(0.01, 0.1, 8).cuda(), torch.zeros(8, dtype=torch.int32).cuda(), 0, -128, 127), normal(27, (8, 500)))
    case("mode", lambda x: torch.mode(x.long()).values.float(), whole(28, (50, 300), 20).float(), grad=False)
    case("put", lambda x: torch.put(x, torch.arange(0, 90, 7).cuda(), x[:13]), normal(29, (100,)))
    case("nonzero_static", lambda x: torch.nonzero_static(x > 0, size=70), normal(30, (100,)), grad=False)
    case("int_mm", lambda x: torch._int_mm(x.to(torch.int8), x.to(torch.int8).t().contiguous()), whole(31, (64, 128), 100), grad=False)
    case("polar", lambda a, b: torch.view_as_real(torch.polar(a, b)), normal(32, (3000,)).abs(), normal(33, (3000,), scale=5.0))
    case("rotary complex", lambda x, a: torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones_like(a), a)),
         normal(34, (16, 32, 2)), normal(35, (16, 32), scale=50.0))
    case("rfft", lambda x: torch.view_as_real(torch.fft.rfft(x)), normal(36, (4, 1024)))
    case("nansum dim=[]", lambda x: torch.nansum(x, []), normal(51, (12, 30)), grad=False)


for make_cases in (functions, grids, distances, layers, draws, others):
    make_cases()

#!/usr/bin/env python3
"""Records which kernels PyTorch's convolutions and their gradients launch: python3 record_convolutions.py OUT SEED SECONDS [results].

Needs what record_dispatch.py needs. Calls are drawn from a seed: square filters, as small networks have them, one group, no dilation. Of each
the launches of the convolution, of its gradient of data and of that of weights are kept, with the grids of the first eight; with
`results`, of images and filters of up to 250,000 elements, 16 places of each result, too. Operands are made of `operands_of`.
"""
import ctypes
import sys
import time

import numpy as np

import record_dispatch

GRIDS = 24  # of eight launches
CHANNELS = [1, 3, 4, 8, 12, 16, 16, 24, 32, 32, 32, 48, 64, 64, 64, 96, 128, 128, 192, 256, 512]
FILTERS = [1, 1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 7, 8, 16]
IMAGES = [1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 128]
SIDES = [1, 2, 4, 4, 6, 7, 8, 8, 8, 12, 14, 16, 16, 16, 20, 24, 28, 28, 32, 32, 32, 48, 56, 64]
WIDTHS = [1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 64, 100]
PLACES = 16
# In a file: images, channels, rows, output channels, filter, stride, padding, channels together, numbers, deterministic, bias, seed,
# whether results were kept, columns.


def pick(r, values):
    return values[int(r.random() * len(values))]


def fits(x, most_products, most_elements):
    """Whether a call has a result, and no more work and elements than that."""
    if x["h"] + 2 * x["p"] < x["f"] or x["w"] + 2 * x["p"] < x["f"]:
        return False
    q, q2 = output_of(x)
    return x["n"] * x["c"] * x["k"] * x["f"] ** 2 * q * q2 <= most_products and \
        max(x["n"] * x["c"] * x["h"] * x["w"], x["n"] * x["k"] * q * q2) <= most_elements


def draw(r):
    f = pick(r, FILTERS)
    c = pick(r, CHANNELS) if r.random() < .85 else 1 + int(r.random() * 100)
    k = pick(r, CHANNELS + [10, 20, 40]) if r.random() < .9 else 1 + int(r.random() * 100)
    n, h = pick(r, IMAGES), pick(r, SIDES)
    if f in (4, 8, 16) and r.random() < .7:
        s, p = f, 0
    elif f == 2:
        s, p = 2, 0
    else:
        s, p = pick(r, [1, 1, 1, 1, 2, 2]), pick(r, [f // 2, f // 2, f // 2, 0])
    w = h if r.random() < .85 else pick(r, WIDTHS)
    if not fits(dict(n=n, c=c, h=h, w=w, k=k, f=f, s=s, p=p), 2 ** 34, 2 ** 24):
        return None
    return dict(w=w, n=n, c=c, h=h, k=k, f=f, s=s, p=p, last=int(r.random() < .3), dt=pick(r, [0, 0, 1, 1, 2, 3]), det=int(r.random() < .35),
                bias=int(r.random() < .5))


def output_of(x):
    return [(x[side] + 2 * x["p"] - x["f"]) // x["s"] + 1 for side in ("h", "w")]


def operands_of(x, seed, of_tf32="tf32"):
    """Image, filter, gradient and bias in FP32; of odd seeds all exact results but a few are zero. Where TF32 multiplies, they are numbers that TF32 has;
    or (`of_tf32`: f32) others, of which results show how they are rounded."""
    numbers = record_dispatch.DTYPES[x["dt"]]
    r, numbers = np.random.Generator(np.random.PCG64(seed)), of_tf32 if numbers == "tf32" else numbers
    n, c, k, f, (q, q2) = x["n"], x["c"], x["k"], x["f"], output_of(x)
    values = lambda *shape: record_dispatch.values(r, shape, numbers)
    image, weight, gradient, bias = values(n, c, x["h"], x["w"]), values(k, c, f, f), values(n, k, q, q2), values(k)

    def halves(count):
        order = np.argsort(r.random(count), kind="stable")
        return order[:count // 2], order[count // 2:count // 2 * 2]

    if seed % 2:
        one, other = halves(c)
        image[:, other], weight[:, other] = image[:, one], -weight[:, one]
        if c % 2 and c > 1:
            weight[:, np.setdiff1d(np.arange(c), np.r_[one, other])] *= np.float32(2. ** (-4 if numbers == "f16" else -8))
        one, other = halves(k)
        gradient[:, other], weight[other] = gradient[:, one], -weight[one]
        one, other = halves(n)
        image[other], gradient[other] = image[one], -gradient[one]
        bias[:] = 0
    return image, weight, gradient, bias


def places_of(x, seed, count=PLACES):
    """Places of the output, of the gradient of data and of that of weights."""
    r, (q, q2) = np.random.Generator(np.random.PCG64(seed + 1)), output_of(x)
    shapes = (x["n"], x["k"], q, q2), (x["n"], x["c"], x["h"], x["w"]), (x["k"], x["c"], x["f"], x["f"])
    return [np.stack([(r.random(count) * size).astype(np.int64) for size in shape], 1) for shape in shapes]


def log_of_grids():
    """A log that keeps GRIDS numbers of the grids of each call, and of all calls."""
    for six, more in (("grids[6] = {}", f"grids[{GRIDS}] = {{}}"), ("current.launches < 2", f"current.launches < {GRIDS // 3}"),
                      ("current.grids + 6)", f"current.grids + {GRIDS})")):
        record_dispatch.SOURCE = record_dispatch.SOURCE.replace(six, more)
    log = record_dispatch.Log()
    log.lib.log_grid_calls(ctypes.c_uint64(1 << 40))
    return log


def main(out, seed, seconds, with_results):
    import torch
    begin = time.time()
    log = log_of_grids()
    r, rows, results, drawn = np.random.Generator(np.random.PCG64(seed)), [], [], 0
    torch.zeros(8, device="cuda")
    while time.time() - begin < seconds:
        x, drawn = draw(r), drawn + 1
        if x is None:
            continue
        n, c, k, f, (q, q2), of = x["n"], x["c"], x["k"], x["f"], output_of(x), seed * 1000000 + drawn
        dtype = {0: torch.float16, 1: torch.bfloat16}.get(x["dt"], torch.float32)
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = x["dt"] == 2, bool(x["det"])
        shapes = (n, c, x["h"], x["w"]), (k, c, f, f), (n, k, q, q2), (k,)
        full = with_results and max(np.prod(shape) for shape in shapes) < 250000 and n * c * k * f * f * q * q2 < 2 ** 28
        tensors = [torch.from_numpy(t).cuda().to(dtype) for t in operands_of(x, of)] if full else \
            [torch.zeros(shape, device="cuda", dtype=dtype) for shape in shapes]
        form = torch.channels_last if x["last"] else torch.contiguous_format
        image, weight, gradient = [t.contiguous(memory_format=form) for t in tensors[:3]]
        words = [x["s"]] * 2, [x["p"]] * 2, [1, 1], False, [0, 0], 1
        given = []
        log.drop()
        given.append(torch.ops.aten.convolution(image, weight, tensors[3] if x["bias"] else None, *words))
        log.mark(1)
        for which in ([True, False, False], [False, True, False]):
            log.drop()
            given.append(torch.ops.aten.convolution_backward(gradient, image, weight, None, *words, which)[which.index(True)])
            log.mark(1)
        if full:
            for t, at in zip(given, places_of(x, of)):
                bits = t[tuple(torch.from_numpy(at.T).cuda())].contiguous().view(torch.int16 if x["dt"] < 2 else torch.int32)
                results.append(bits.cpu().numpy().astype(np.int32))
        rows.append([x[name] for name in ("n", "c", "h", "k", "f", "s", "p", "last", "dt", "det", "bias")] + [of, int(full), x["w"]])
    np.savez_compressed(out, rows=np.array(rows), values=np.concatenate(results) if results else np.zeros(0, np.int32),
                        device=torch.cuda.get_device_name(), **log.take())
    print(out, len(rows), "convolutions,", len(results) // 3, "with results", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:] == ["results"])

#!/usr/bin/env python3
"""Records which kernels convolutions and their gradients launch, many of them: python3 sweep_convolutions.py OUT SEED SECONDS [ROWS.npy|f16|bf16|tf32|f32].

Nothing runs: calls are captured into graphs. What is kept of each pass: names of kernels, and the grid of the kernel that multiplies. The calls are
drawn from the seed (`calls_of`), half of them as record_convolutions.py does, half as layers of CNNs, U-Nets and their like have them, all of one type where
it is named; or ROWS has them, columns of NAMES.
"""
import hashlib
import os
import sys
import time

os.environ.setdefault("TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT", "300")

import numpy as np

import record_convolutions
import record_dispatch
from convolution_kinds import kernels_of

CHANNELS = [1, 2, 3, 3, 4, 6, 8, 8, 10, 12, 16, 16, 16, 20, 24, 24, 32, 32, 32, 32, 40, 48, 48, 64, 64, 64, 64, 80, 96, 96, 112, 120, 128, 128, 128, 144,
            160, 192, 192, 240, 256, 256, 320, 384, 480, 512, 512, 640, 768, 1024]
IMAGES = [1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 8, 10, 12, 16, 16, 16, 20, 24, 25, 32, 32, 32, 40, 48, 50, 64, 64, 64, 96, 100, 128, 128, 128, 200, 256, 256, 512]
SIDES = [1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 8, 8, 9, 10, 12, 12, 14, 14, 16, 16, 16, 18, 20, 24, 24, 26, 28, 28, 28, 30, 32, 32, 32, 36, 40, 48, 48, 56, 56, 60,
         64, 64, 72, 80, 96, 100, 112, 112, 128, 128, 160, 192, 224, 224, 256]
# filter, stride, padding
FILTERS = [(3, 1, 1)] * 10 + [(3, 2, 1)] * 4 + [(1, 1, 0)] * 5 + [(1, 2, 0)] * 2 + [(3, 1, 0)] * 2 + [(4, 2, 1)] * 2 + [(2, 2, 0)] * 2 + \
    [(3, 2, 0), (5, 1, 2), (5, 1, 0), (5, 2, 2), (7, 2, 3), (7, 1, 3), (4, 4, 0), (8, 8, 0), (16, 16, 0), (2, 1, 0), (4, 1, 0), (4, 1, 2)]
NAMES = ("part", "n", "c", "h", "w", "k", "f", "s", "p", "last", "dt", "det")
pick = record_convolutions.pick


def draw(r):
    f, s, p = pick(r, FILTERS)
    n, c, h = pick(r, IMAGES), pick(r, CHANNELS), pick(r, SIDES)
    c = c if r.random() < .92 else 1 + int(r.random() * 130)
    likeness = r.random()
    k = c if likeness < .3 else 2 * c if likeness < .42 else max(1, c // 2) if likeness < .52 else max(1, c // 4) if likeness < .55 else \
        pick(r, CHANNELS) if likeness < .94 else 1 + int(r.random() * 130)
    n = n if r.random() < .94 else 1 + int(r.random() * 128)
    h = h if r.random() < .92 else 1 + int(r.random() * 64)
    w = h if r.random() < .88 else pick(r, SIDES)
    if not record_convolutions.fits(dict(n=n, c=c, h=h, w=w, k=k, f=f, s=s, p=p), 2 ** 35, 2 ** 24.5):
        return None
    return dict(w=w, n=n, c=c, h=h, k=k, f=f, s=s, p=p, last=int(r.random() < .25), dt=pick(r, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]), det=int(r.random() < .35))


def calls_of(seed, numbers=-1):
    """All calls of a seed, one after the other, of one type or (-1) of all; `part`: 0 as record_convolutions.py draws them, 1 the others."""
    r = np.random.Generator(np.random.PCG64(seed))
    while True:
        part = int(r.random() < .55)
        x = draw(r) if part else record_convolutions.draw(r)
        if x is not None:
            x["part"] = part
            x["dt"] = x["dt"] if numbers < 0 else numbers
            yield x


def words_of(x):
    return [x["s"]] * 2, [x["p"]] * 2, [1, 1], False, [0, 0], 1


def shapes_of(x):
    q, q2 = record_convolutions.output_of(x)
    return (x["n"], x["c"], x["h"], x["w"]), (x["k"], x["c"], x["f"], x["f"]), (x["n"], x["k"], q, q2)


class Session:
    def __init__(self):
        import torch
        self.torch = torch
        self.log, self.capture = record_convolutions.log_of_grids(), record_dispatch.Capture(torch)
        self.raw = torch.zeros(3 * 2 ** 27, dtype=torch.uint8, device="cuda")

    def tensors(self, x):
        dtype = {0: self.torch.float16, 1: self.torch.bfloat16}.get(x["dt"], self.torch.float32)
        result, each = [], 2 ** 27 // (2 if x["dt"] < 2 else 4)
        for i, (a, b, c, d) in enumerate(shapes_of(x)):
            strides = (b * c * d, 1, d * b, b) if x["last"] else (b * c * d, c * d, d, 1)
            result.append(self.raw.view(dtype).as_strided((a, b, c, d), strides, i * each))
        return result

    def launch(self, x, tensors):
        """The three results; each pass' launches are logged."""
        torch, given = self.torch, []
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = x["dt"] == 2, bool(x["det"])
        image, weight, gradient = tensors
        words = words_of(x)
        self.log.drop()
        given.append(torch.ops.aten.convolution(image, weight, None, *words))
        ids = [self.log.mark(1)]
        for which in ([True, False, False], [False, True, False]):
            self.log.drop()
            given.append(torch.ops.aten.convolution_backward(gradient, image, weight, None, *words, which)[which.index(True)])
            ids.append(self.log.mark(1))
        return given, ids

    def warm_up(self):
        for dt in range(4):
            for f in (1, 3):
                for last in (0, 1):
                    x = dict(n=4, c=16, h=16, w=16, k=16, f=f, s=1, p=f // 2, last=last, dt=dt, det=0)
                    self.launch(x, self.tensors(x))
        self.torch.cuda.synchronize()


def take_grids(session):
    """Log.take knows calls of six numbers; here they have more."""
    log = session.log
    count = int(log.lib.log_calls())
    keys = [log.lib.log_name(i).decode() for i in range(log.lib.log_names())]
    return keys, log.array("log_ids", (count,)), log.array("log_grids", (count, record_convolutions.GRIDS))


def main(out, seed, seconds, rows=(), numbers=-1):
    begin = time.time()
    session = Session()
    torch = session.torch
    with torch.cuda.stream(session.capture.stream):
        session.warm_up()
        first, calls, used, failures = int(session.log.lib.log_calls()), [], 0, 0
        start, source = time.time(), iter(rows) if rows else calls_of(seed, numbers)
        while time.time() - begin < seconds:
            session.capture.begin()
            for _ in range(20):
                x = next(source, None)
                if x is None:
                    seconds = 0
                    break
                used += 1
                before = int(session.log.lib.log_calls())
                try:
                    session.launch(x, session.tensors(x))
                except Exception as error:
                    failures += 1
                    if failures < 4:
                        print("failed:", x, repr(error)[:200], flush=True)
                    for _ in range(3 - int(session.log.lib.log_calls()) + before):
                        session.log.drop()
                        session.log.mark(1)
                    session.capture.end()
                    session.capture.begin()
                calls.append([x[name] for name in NAMES])
            session.capture.end()
            if torch.cuda.memory_reserved() > 5 * 2 ** 30:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
    took = time.time() - start
    keys, ids, grids = take_grids(session)
    ids, grids = ids[first:].reshape(-1, 3), grids[first:].reshape(-1, 3, record_convolutions.GRIDS)
    # The key without what log_mark adds; the grid of the kernel that multiplies.
    bare = [key.rsplit("#", 2)[0] for key in keys]
    unique = sorted(set(bare))
    number = {key: i for i, key in enumerate(unique)}
    ids = np.array([number[key] for key in bare], np.int64)[ids]
    place = np.array([(kernels_of(key + "#1#0") or [(0, "")])[0][0] for key in unique])
    shown = np.array(["segment_k_on" in key for key in unique])
    at = np.minimum(place[ids], record_convolutions.GRIDS // 3 - 1)
    core = np.stack([np.take_along_axis(grids, (3 * at + i)[..., None], 2)[..., 0] for i in range(3)], -1)
    core[..., :2][~shown[ids]] = 0
    calls = np.array(calls, np.int32)
    given = {"calls": calls} if len(rows) else {}
    np.savez(out, seed=seed, numbers=numbers, **given, digest=hashlib.sha256(calls.tobytes()).hexdigest(), count=len(calls), ids=ids.astype(np.uint16 if len(unique) < 65536 else np.uint32),
             grids=core.astype(np.uint16), keys=np.frombuffer("\n".join(unique).encode(), np.uint8), device=torch.cuda.get_device_name())
    print(out, len(calls), "calls, %.1f a second," % (len(calls) / took), failures, "failed", flush=True)


if __name__ == "__main__":
    which, types = sys.argv[4] if len(sys.argv) > 4 else "", record_dispatch.DTYPES
    given = [dict(zip(NAMES, row)) for row in np.load(which).tolist()] if which and which not in types else ()
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), given, types.index(which) if which in types else -1)

#!/usr/bin/env python3
"""Records what convolutions by Winograd's transforms leave in their workspaces: python3 record_workspaces.py OUT SECONDS.

Small calls are drawn until the time is over; of every kernel the first two are kept: sizes (columns of NAMES, then the pass and the seed of the operands, as
record_convolutions.py makes them), the names of the kernels, the result in FP32, and all memory that PyTorch allocated for the call.
"""
import ctypes
import re
import sys
import time
from collections import Counter

import numpy as np

import record_convolutions
import sweep_convolutions as sweep
from convolution_kinds import kernels_of

CHANNELS = [3, 8, 12, 16, 20, 24, 32, 32, 40, 48, 64, 80]
SIDES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16]
MOST = 1_500_000  # bytes of a call
ALL = 12_500_000


def draw(r):
    f = 3 if r.random() < .7 else 5
    c, k, h = record_convolutions.pick(r, CHANNELS), record_convolutions.pick(r, CHANNELS), record_convolutions.pick(r, SIDES)
    w = h if r.random() < .6 else record_convolutions.pick(r, [2, 4, 5, 8, 11])
    p = f // 2 if r.random() < .75 else 0
    if h + 2 * p < f or w + 2 * p < f:
        return None
    return dict(part=0, n=record_convolutions.pick(r, [1, 1, 2, 2, 3, 4, 6]), c=c, h=h, w=w, k=k, f=f, s=1, p=p, last=0, dt=record_convolutions.pick(r, [0, 1, 2, 3, 3]), det=1)


def memory_of(torch, call):
    """The result of a call, and address and size of what was allocated for it."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(enabled="all", context=None)
    before = len(torch.cuda.memory._snapshot()["device_traces"][0])
    result = call()
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][0][before:]
    torch.cuda.memory._record_memory_history(enabled=None)
    return result, [(x["addr"], x["size"]) for x in trace if x["action"] == "alloc"]


def main(out, seconds):
    begin, session = time.time(), sweep.Session()
    torch, log, driver = session.torch, session.log, ctypes.CDLL("libcuda.so.1")
    had, kept, size, r = Counter(), {}, 0, np.random.Generator(np.random.PCG64(77))
    with torch.cuda.stream(session.capture.stream):
        session.warm_up()
        while time.time() - begin < seconds and size < ALL:
            x = draw(r)
            if x is None:
                continue
            first = int(log.lib.log_calls())
            session.capture.begin()
            session.launch(x, session.tensors(x))
            session.capture.end()
            keys = [log.lib.log_name(i).decode() for i in np.ctypeslib.as_array(log.lib.log_ids(), (first + 3,))[first:].tolist()]
            for direction in range(3):
                family = (x["dt"], direction, "+".join(re.sub(r"/\d+$", "", name) for _, name in kernels_of(keys[direction])))
                if "winograd" not in keys[direction] or had[family] >= 2:
                    continue
                dtype, seed = {0: torch.float16, 1: torch.bfloat16}.get(x["dt"], torch.float32), 2 * len(had)
                image, weight, gradient = [torch.from_numpy(t).cuda().to(dtype) for t in record_convolutions.operands_of(x, seed)[:3]]
                torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = x["dt"] == 2, True
                words, which = sweep.words_of(x), [direction == 1, direction == 2, False]
                result, memory = memory_of(torch, lambda: torch.ops.aten.convolution(image, weight, None, *words) if direction == 0 else
                                           torch.ops.aten.convolution_backward(gradient, image, weight, None, *words, which)[direction - 1])
                if sum(count for _, count in memory) > MOST:
                    continue
                had[family] += 1
                name = str(len(kept))
                kept[name] = [x[column] for column in sweep.NAMES] + [direction, seed]
                kept[name + "_key"] = np.frombuffer(keys[direction].encode(), np.uint8)
                kept[name + "_result"] = result.float().cpu().numpy()
                for i, (address, count) in enumerate(memory):
                    content = np.zeros(count, np.uint8)
                    if driver.cuMemcpyDtoH_v2(content.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(address), ctypes.c_size_t(count)) == 0:
                        kept[f"{name}_memory{i}"] = content
                        size += count
    np.savez_compressed(out, **kept)
    print(out, sum(had.values()), "calls", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))

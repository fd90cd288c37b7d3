#!/usr/bin/env python3
"""Records which kernels PyTorch's listed convolutions launch: python3 record_listed_convolutions.py FOLDER PROCESS PROCESSES SECONDS [FIRST [KINDS]].
KINDS: numbers of the lists' kinds, as 8,18, or a file that fit_listed_convolutions.py's `missing` wrote, with the calls that are wanted, or `drawn`: drawn
calls beside the listed ones.

Of the lists in convolution_lists.py every convolution and its two gradients are captured, nothing runs. A gradient that is added by atomics is captured again
as cudnn.deterministic has it. The processes take runs of calls in turn; each writes FOLDER/PROCESS-FIRST.npz and says which run would be next, to go on with.

PyTorch asks cuDNN for all engines that may do a call, some dozens, and takes the first one that it can build: `few_engines` answers with three. Where none of
these was taken (PyTorch asks once more, then) the call counts as failed. Of 4,096 calls that were recorded with all engines, too, all launched the same.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

FEW = r'''
#include <dlfcn.h>
#include <stdint.h>
#define RESULTS 202  // CUDNN_ATTR_ENGINEHEUR_RESULTS
int few_asked = 0, few_answers = 3;
typedef int (*Get)(void*, int, int, int64_t, int64_t*, void*);
int cudnnBackendGetAttribute(void* d, int name, int type, int64_t wanted, int64_t* count, void* out) {
  static Get real = 0;
  if (!real) {
    void* lib = dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_NOLOAD);
    if (!lib) lib = dlopen("libcudnn.so.9", RTLD_NOW);
    real = (Get)dlsym(lib, "cudnnBackendGetAttribute");
  }
  if (name != RESULTS) return real(d, name, type, wanted, count, out);
  int status = real(d, name, type, wanted > few_answers ? few_answers : wanted, count, out);
  if (wanted == 0) ++few_asked;
  if (count && *count > few_answers) *count = few_answers;
  return status;
}
'''


def few_engines():
    """Starts this program again with the library that answers with few engines."""
    if "FEW_ENGINES" in os.environ:
        return ctypes.CDLL(os.environ["FEW_ENGINES"])
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "few.c"), os.path.join(folder, "few.so")
    with open(source, "w") as file:
        file.write(FEW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", source, "-o", library, "-ldl"], check=True)
    os.environ.update(FEW_ENGINES=library, LD_PRELOAD=library)
    os.execv(sys.executable, [sys.executable, *sys.argv])


# How often the heuristics were asked.
ASKED = ctypes.c_int.in_dll(few_engines(), "few_asked") if __name__ == "__main__" else None
# How many engines they answer with, at most: of FP32 PyTorch leaves out those that multiply in TF32, which come first.
ANSWERS = ctypes.c_int.in_dll(few_engines(), "few_answers") if __name__ == "__main__" else None
MOST_ANSWERS, MOST_OF_FP32 = 3, 16
os.environ.setdefault("TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT", "300")

import numpy as np

import record_convolutions
from convolution_kinds import kernels_of
from convolution_lists import KINDS, VARIANTS, calls_of, drawn_of
from record_shapes import packed
from sweep_convolutions import Session, words_of

RUN = 2048  # calls
BY_ATOMICS = ("dgrad_engine", "wgrad_alg0_engine")
FAILED = "failed"
# Kernels whose grid says more than its depth.
KEEP_GRIDS = ("segment_k_on", "gemv", "dot_kernel")
GRADIENTS = ([True, False, False], [False, True, False])


def wanted(file):
    """Variants, kinds and numbers of calls that a file names: its arrays are called `place numbers last kind`."""
    arrays = np.load(file)
    for name in sorted(arrays, key=lambda name: int(name.split()[0])):
        _, numbers, last, kind = (int(x) for x in name.split())
        yield (numbers, last), kind, arrays[name].astype(np.int64)


def drawn_runs():
    """Of drawn calls, in any order, so that each process has some of all."""
    parts = [(variant, kind, len(drawn_of(kind)[0])) for variant in sorted(VARIANTS)[:6] for kind in range(len(KINDS))]
    found = [(variant, kind, np.arange(i, min(i + 64, count))) for variant, kind, count in parts for i in range(0, count, 64)]
    return [found[i] for i in np.random.default_rng(5).permutation(len(found))]


def runs(kinds=range(len(KINDS))):
    """variant, kind, and the numbers of the calls that are recorded, of all runs."""
    if kinds == "drawn":
        return drawn_runs()
    if isinstance(kinds, str):
        parts = wanted(kinds)
    else:
        parts = ((variant, kind, np.flatnonzero(calls_of(kind)[1])) for variant in VARIANTS for kind in kinds)
    return [(variant, kind, at[i:i + RUN]) for variant, kind, at in parts for i in range(0, len(at), RUN)]


class Recorder:
    def __init__(self):
        self.session = Session()
        self.log, self.torch = self.session.log, self.session.torch
        self.by_atomics, self.known, self.failures = {}, 0, 0

    def is_by_atomics(self, number):
        for i in range(self.known, number + 1):
            self.by_atomics[i] = any(x in self.log.lib.log_name(i).decode() for x in BY_ATOMICS)
        self.known = max(self.known, number + 1)
        return self.by_atomics[number]

    def launched(self, call):
        """The place of what a call launches in the log; -1 where it failed."""
        self.log.drop()
        ASKED.value = 0
        try:
            call()
        except Exception as error:
            if self.failures < 3:
                print("failed:", repr(error)[:200], flush=True)
            self.failures += 1
            self.session.capture.end()
            self.session.capture.begin()
            return -1
        at = int(self.log.lib.log_calls())
        self.log.mark(1)
        if ASKED.value > 1:
            self.failures += 1
            return -1
        return at

    def record(self, rows, last, numbers):
        """Of each row five places in the log: output, gradients, and gradients as cudnn.deterministic has them."""
        torch, ids = self.torch, []
        convolution, backward = torch.ops.aten.convolution, torch.ops.aten.convolution_backward
        torch.backends.cudnn.allow_tf32 = numbers == 2
        ANSWERS.value = MOST_ANSWERS if numbers < 3 else MOST_OF_FP32
        for i in range(0, len(rows), 40):
            self.session.capture.begin()
            places = []
            for n, c, h, k, f, s, p in rows[i:i + 40].tolist():
                x = dict(n=n, c=c, h=h, w=h, k=k, f=f, s=s, p=p, last=last, dt=numbers)
                image, weight, gradient = self.session.tensors(x)
                words = words_of(x)
                torch.backends.cudnn.deterministic = False
                here = [self.launched(lambda: convolution(image, weight, None, *words))]
                here += [self.launched(lambda: backward(gradient, image, weight, None, *words, which)) for which in GRADIENTS]
                for j in (0, 1):
                    number = int(self.log.lib.log_ids()[here[1 + j]]) if here[1 + j] >= 0 else -1
                    if number >= 0 and self.is_by_atomics(number):
                        torch.backends.cudnn.deterministic = True
                        here.append(self.launched(lambda: backward(gradient, image, weight, None, *words, GRADIENTS[j])))
                    else:
                        here.append(here[1 + j])
                places.append(here)
            self.session.capture.end()
            ids += places
        return ids


def main(folder, process, processes, seconds, first=0, kinds=range(len(KINDS))):
    begin = time.time()
    recorder = Recorder()
    torch, log = recorder.torch, recorder.log
    mine, places = runs(kinds)[process::processes], []
    next_run, start, calls = first, 0, {kind: (drawn_of if kinds == "drawn" else calls_of)(kind)[0] for kind in range(len(KINDS))}
    with torch.cuda.stream(recorder.session.capture.stream):
        recorder.session.warm_up()
        start = time.time()
        while next_run < len(mine) and time.time() - begin < seconds:
            (numbers, last), kind, at = mine[next_run]
            places += recorder.record(calls[kind][at], last, numbers)
            next_run += 1
            if torch.cuda.memory_reserved() > 5 * 2 ** 30:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
    took, places = time.time() - start, np.array(places, np.int64)
    total = int(log.lib.log_calls())
    all_keys = [log.lib.log_name(i).decode() for i in range(log.lib.log_names())] + [FAILED + "#1#0"]
    ids, grids = log.array("log_ids", (total,)).astype(np.int64), log.array("log_grids", (total, record_convolutions.GRIDS))
    of_kernel = np.array([(kernels_of(key) or [(0, "")])[0][0] for key in all_keys])
    keeps_grid = np.array([any(word in key for word in KEEP_GRIDS) for key in all_keys])
    at = np.minimum(of_kernel[ids], record_convolutions.GRIDS // 3 - 1)
    core = np.stack([np.take_along_axis(grids, (3 * at + i)[:, None], 1)[:, 0] for i in range(3)], 1).astype(np.int64)
    core[~keeps_grid[ids], :2] = 0
    # How many parts cuBLAS' reduction adds.
    names, words = zip(*(key.rsplit("#", 2)[::2] for key in all_keys))
    rows = np.concatenate([np.stack([ids, *core.T], 1), [[len(all_keys) - 1, 0, 0, 0]]])
    rows = np.column_stack([rows, np.array([int(word) for word in words])[rows[:, 0]]])
    number_of = {name: i for i, name in enumerate(sorted(set(names)))}
    rows[:, 0] = np.array([number_of[name] for name in names])[rows[:, 0]]
    unique, number = np.unique(rows, axis=0, return_inverse=True)
    labels = number.reshape(-1)[np.where(places < 0, total, places)]
    done = mine[first:next_run]
    which = np.concatenate([np.column_stack([np.tile((*variant, kind), (len(at), 1)), at]) for variant, kind, at in done]) if done else np.zeros((0, 4))
    np.savez(os.path.join(folder, f"{process}-{first}.npz"), process=process, processes=processes, first=first, next=next_run, count=len(places),
             which=packed(which.astype(np.uint32).T), labels=packed(labels.astype(np.uint32).reshape(-1, 5).T), unique=packed(unique.astype(np.uint32)),
             keys=packed(np.frombuffer("\n".join(number_of).encode(), np.uint8)), device=torch.cuda.get_device_name(), torch=torch.__version__)
    print(process, len(places), "calls, %.0f a second," % (len(places) / max(took, 1)), recorder.failures, "failed,", len(unique), "labels, next run", next_run, "of", len(mine), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:4]), float(sys.argv[4]), *(int(x) for x in sys.argv[5:6]), *(x if x.endswith(".npz") or x == "drawn" else [int(y) for y in x.split(",")] for x in sys.argv[6:7]))

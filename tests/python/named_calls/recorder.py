"""python -m named_calls [--twice] [NAME...]: computes the calls on this machine's GPU and writes what they give, one line of JSON each.

NAME is part of a case's name. Each result is told by type, shape, strides and a digest of its elements; the gradients are those for
numbers from -1 to 1 as the first result's gradient. With --twice each is computed twice, and "unsteady" are the results that differ.
"""

import argparse
import hashlib
import json

import torch
from drawn_calls.calls import described

from .cases import CASES, f64


def digest_of(operands):
    return hashlib.blake2b(" ".join(str(described(x)) for x in operands).encode(), digest_size=4).hexdigest()


def computed(function, operands, grad):
    """Stages, each with its results; one that ends with an error says so."""
    stages = {}
    at = [x.cuda().requires_grad_(grad and x.is_floating_point()) for x in operands]
    try:
        results = function(*at)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        stages["forward"] = [described(x) for x in results]
        if grad and results[0].requires_grad:
            first = results[0]
            first.backward(torch.linspace(-1, 1, first.numel(), dtype=f64).to(first.dtype).reshape(first.shape).cuda())
            stages["backward"] = [None if x.grad is None else described(x.grad) for x in at]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what ends a program
        stages["ended"] = {"refused": type(error).__name__ == "Unmodelled", "error": f"{type(error).__name__}: {error}"[:200]}
    return stages


def differing(stages, again):
    return [[stage, i] for stage in ("forward", "backward") for i, (x, y) in enumerate(zip(stages.get(stage, []), again.get(stage, []))) if x != y]


def main():
    parser = argparse.ArgumentParser(prog="named_calls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for name, (function, operands, grad) in CASES.items():
        if options.names and not any(part in name for part in options.names):
            continue
        stages = computed(function, operands, grad)
        unsteady = differing(stages, computed(function, operands, grad)) if options.twice else []
        print(json.dumps({"name": name, "operands": digest_of(operands), **stages, "unsteady": unsteady}), flush=True)

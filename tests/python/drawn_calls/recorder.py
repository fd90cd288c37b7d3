"""python -m drawn_calls PARTS SEED [OPTIONS]: draws calls, computes them on this machine's GPU and writes what they give.

PARTS is `all` or names of parts with commas between them. The file has a line of JSON for each call.
"""

import argparse
import contextlib
import json
import sys
import traceback
import warnings

import torch

from .answers import ANSWERS, difference, read_answers
from .calls import Call
from .parts import NUMBERS, PARTS


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="drawn_calls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", help="all, or some of " + ",".join(PARTS))
    parser.add_argument("seed", type=int)
    parser.add_argument("--out", help="the file to write; else standard output")
    parser.add_argument("--count", type=int, default=1500, help="how many calls of each part")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--device", default="cuda", help="cpu: the CPU's own operators, to check the drawing")
    parser.add_argument("--twice", action="store_true", help="compute each call twice and mark what differs as unsteady: for a real GPU")
    parser.add_argument("--only", help="indices of calls with commas between them: tells about them, and whether they give what the H200 gave")
    parser.add_argument("--save", help="with --only: keeps operands and results in this file, for torch.load")
    options = parser.parse_args(arguments)
    options.parts = list(PARTS) if options.parts == "all" else options.parts.split(",")
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part}")
    return options


def computed(part, seed, index, device, tell=False):
    """The call after it was drawn and computed, and its record."""
    call = Call(NUMBERS[part], seed, index, device)
    torch.default_generator.manual_seed(call.seed)  # alone: a GPU's generator stays as it is
    ended = None
    try:
        PARTS[part](call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what ends a program
        if tell:
            traceback.print_exc(limit=-5)
        text = (str(error).strip().splitlines() or [""])[0][:200]
        ended = {"stage": call.stage, "refused": type(error).__name__ == "Unmodelled", "error": f"{type(error).__name__}: {text}"}
    return call, {"part": part, "seed": seed, **call.record(), **({"ended": ended} if ended else {})}


def record(part, seed, index, options):
    _, first = computed(part, seed, index, options.device)
    if options.twice and "ended" not in first:
        _, again = computed(part, seed, index, options.device)
        unsteady = [stage for stage in ("forward", "backward") if first.get(stage) != again.get(stage)]
        if unsteady:
            first["unsteady"] = unsteady
    return first


def write(options, file):
    for part in options.parts:
        for index in range(options.start, options.start + options.count):
            call = record(part, options.seed, index, options)
            print(json.dumps(call, separators=(",", ":")), file=file, flush=True)
            if "CUDA error" in call.get("ended", {}).get("error", ""):
                sys.exit(f"{part} {index}: {call['ended']['error']}; this process can compute no more: go on with --start {index + 1}")


def tell(options):
    """What is known about some calls, for people."""
    kept = {}
    for part in options.parts:
        answers = read_answers(part).get(options.seed, {}) if (ANSWERS / f"{part}.txt").exists() else {}
        for index in map(int, options.only.split(",")):
            call, said = computed(part, options.seed, index, options.device, tell=True)
            print(f"{part} {index}: {said['operator']} {said['type']} {said['arguments']}", *said["operands"], sep="\n  ")
            for stage in ("forward", "backward"):
                for k, result in enumerate(said.get(stage, [])):
                    print(f"  > {stage} {k}:", *(result or ["none"]))
            if "ended" in said:
                print(f"  ended in {said['ended']['stage']}: {said['ended']['error']}")
            print(" ", "not recorded" if index not in answers else difference(answers[index], said) or "as on the H200 in all that is known")
            kept[f"{part} {index}"] = {"call": said, "tensors": {name: tensor.detach().cpu() for name, tensor in call.kept.items() if tensor is not None}}
    if options.save:
        torch.save(kept, options.save)


def main(arguments=None):
    options = options_of(arguments)
    warnings.filterwarnings("ignore")
    if options.only:
        tell(options)
        return
    with open(options.out, "w") if options.out else contextlib.nullcontext(sys.stdout) as file:
        write(options, file)

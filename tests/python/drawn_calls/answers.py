"""python -m drawn_calls.answers RECORDED...: writes h200/NAME.txt of what an H200 gave for drawn calls; reads and compares such answers.

A line of the file is a call: its index, a fingerprint of each result, and behind `|` those of the gradients. `-` is an operand without a gradient,
`error` what PyTorch has no kernel for, `unsteady` what differed when the H200 computed it again. Above the calls of a seed stands a digest of
the operands of its first calls and one of all.
"""

import base64
import hashlib
import itertools
import json
import math
import sys
from pathlib import Path

ANSWERS = Path(__file__).resolve().parent / "h200"
FIRST = 60  # calls that are computed in quick tests
STAGES = ("forward", "backward")
WORDS = ("error", "unsteady")


def fingerprint(result):
    """Four letters (24 bits) that tell of type, shape, strides and elements."""
    if result is None:
        return "-"
    dtype, shape, strides, elements = result
    seen = [] if 0 in shape else [stride for n, stride in zip(shape, strides) if n > 1]  # others have no effect
    text = f"{dtype} {list(shape)} {seen} {elements}"
    return base64.b64encode(hashlib.blake2b(text.encode(), digest_size=3).digest()).decode()


def digest_of_operands(calls):
    return hashlib.blake2b("".join(call["drawn"] for call in calls).encode(), digest_size=4).hexdigest()


def stages_of(call):
    """What a recorded call gave in each stage: fingerprints or a word."""
    stages = {stage: [fingerprint(result) for result in call[stage]] for stage in STAGES if stage in call}
    stages.update(dict.fromkeys(call.get("unsteady", ()), "unsteady"))
    if "ended" in call:
        stages["backward" if "forward" in call else "forward"] = "error"
    return stages


def words_of(stage):
    return stage if isinstance(stage, str) else " ".join(stage)


def lines_of(calls):
    """The calls of one seed."""
    yield f"seed {calls[0]['seed']} operands {digest_of_operands(calls[:FIRST])} {digest_of_operands(calls)}"
    for call in calls:
        yield f"{call['index']} " + " | ".join(words_of(stage) for stage in stages_of(call).values())


def read_answers(part):
    """Of each seed the calls by index: stages with fingerprints or a word."""
    answers = {}
    for line in (ANSWERS / f"{part}.txt").read_text().splitlines():
        first, *rest = line.split(" ")
        if first == "seed":
            calls = answers[int(rest[0])] = {}
            continue
        stages = " ".join(rest).split(" | ")
        calls[int(first)] = {name: stage if stage in WORDS else stage.split() for name, stage in zip(STAGES, stages)}
    return answers


def recorded_operands(part, seed):
    """The digests of the operands of the first calls and of all."""
    lines = (ANSWERS / f"{part}.txt").read_text().splitlines()
    return next(tuple(line.split()[3:]) for line in lines if line.startswith(f"seed {seed} "))


def strides_of(result, there):
    """The strides, if dense in some order, with which the result would have that fingerprint."""
    dtype, shape, _, elements = result
    for order in itertools.permutations(range(len(shape))):
        strides = [math.prod(shape[k] for k in order[order.index(dim) + 1:]) for dim in range(len(shape))]
        if fingerprint([dtype, shape, strides, elements]) == there:
            return strides
    return None


def told(result, there):
    """In which way the result is not the H200's."""
    if result is None or there == "-":
        return "is there on one of them alone"
    dtype, shape, strides, _ = result
    order = strides_of(result, there)
    return f"{dtype}{shape} " + (f"has strides {strides}, and the H200's {order}" if order else "is not the H200's")


def difference(answer, call):
    """What in this call is not what the H200 gave; empty where nothing is. What it refuses is not compared."""
    here = stages_of(call)
    for stage, there in answer.items():
        if there in WORDS:
            continue
        got = here.get(stage)
        if got is None:
            return "" if was_refused(call) else f"{stage}: nothing for {len(there)} results"
        if got == "error":
            return "" if was_refused(call) else f"{stage}: {call['ended']['error']}"
        if got != there:
            if len(got) != len(there):
                return f"{stage}: {len(got)} results, and {len(there)} on the H200"
            return f"{stage}: " + ", ".join(f"result {k} {told(call[stage][k], b)}" for k, (a, b) in enumerate(zip(got, there)) if a != b)
    if "backward" in here and "backward" not in answer and here["backward"] != "error" and answer["forward"] not in WORDS:
        return "backward: gradients where the H200 had none"
    return ""


def was_refused(call):
    return "ended" in call and call["ended"]["refused"]


def is_answered(answer, call):
    """Whether the call gives everything that the H200 gave, rightly or not."""
    return not was_refused(call) and any(stage not in WORDS for stage in answer.values())


def write_answers(paths):
    recorded = {}
    for path in paths:
        for line in Path(path).read_text().splitlines():
            call = json.loads(line)
            recorded.setdefault(call["part"], {}).setdefault(call["seed"], {})[call["index"]] = call
    for part, seeds in recorded.items():
        lines = [line for _, calls in sorted(seeds.items()) for line in lines_of([call for _, call in sorted(calls.items())])]
        (ANSWERS / f"{part}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_answers(sys.argv[1:])

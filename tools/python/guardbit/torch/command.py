"""The command `python -m guardbit.torch`."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import itertools
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from .run_report import RULE

MACHINES = {"h200": "2.11"}
DIFFERENT, USAGE, NOT_MODELLED = 1, 2, 3


def guesses(word: str) -> float:
    """Which share of the recorded calls like it must agree with a plan that is taken."""
    words = {"stop": RULE, "take": 0.0}
    try:
        share = words[word] if word in words else float(word)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not stop, take or a number from 0 to 1")
    return share


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m guardbit.torch", usage="python -m guardbit.torch --machine h200 [OPTIONS] SCRIPT ARGS...",
        description="Runs an unchanged PyTorch script on a computer without a GPU; tensors of cuda have the bits that the machine gives them.",
        epilog="Exit status: the script's own; 3 where something is not modelled, 1 where a call differs from the recording, 2 for usage.")
    parser.add_argument("--machine", required=True, choices=sorted(MACHINES), help="an H200 (sm_90, 132 multiprocessors, CUDA 13.0)")
    parser.add_argument("--book", metavar="FILE", help="plans of products, as guardbit replay --book writes them")
    parser.add_argument("--unmodelled", choices=["stop", "torch"], default="stop",
                        help="an operator without a model: stop (default), or compute it by PyTorch and list it")
    parser.add_argument("--guesses", metavar="stop|take|SHARE", type=guesses, default=guesses("stop"),
                        help="a product whose plan is not known: stop (default), or take the one of the recorded calls most like it, "
                        "else one ascending chain of the usual instruction; a share of 0 to 1: take it where at least so many of the "
                        "recorded calls like it agree")
    parser.add_argument("--report", metavar="FILE", nargs="?", const="-", help="calls, time and plans: on standard error, or as JSON to =FILE")
    parser.add_argument("--record", metavar="FILE", help="write all calls with operands and predicted results, as guardbit.torch.record does")
    parser.add_argument("--against", metavar="RECORDING", help="stop at the first call that differs from this recording of the program")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    parser.add_argument("script", metavar="SCRIPT", nargs=1)
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    return parser.parse_args(with_report_alone(arguments))


def with_report_alone(arguments: list[str]) -> list[str]:
    """What follows a --report without = is not its file."""
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("--"):
            return [*found, argument, *rest]
        found.append("--report=-" if argument == "--report" else argument)
        if "=" not in argument and argument not in ("--report", "--help"):
            found.extend(itertools.islice(rest, 1))
    return found


def message(text: str) -> None:
    print(f"guardbit.torch: {text}", file=sys.stderr)


def refuse(text: str) -> int:
    message(text)
    return USAGE


def fault_of(options: argparse.Namespace) -> str | None:
    """What is wrong with the options, before anything runs."""
    for path in (options.script[0], options.book, options.against):
        if path and not os.path.isfile(path):
            return f"{path}: {'is a folder' if os.path.isdir(path) else 'no such file'}"
    if options.threads < 0:
        return f"--threads {options.threads}: is 0 (all) or more"
    if options.report and options.report != "-" and not is_writable(options.report):
        return f"--report={options.report}: cannot be written"
    if options.record and not is_writable(options.record):
        return f"--record {options.record}: cannot be written"
    return None


def is_writable(path: str) -> bool:
    folder = os.path.dirname(path) or "."
    return not os.path.isdir(path) and os.path.isdir(folder) and os.access(folder, os.W_OK)


def torch_version() -> str | None:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def load_driver() -> Any:
    """In the place of a driver: says that no device has a context, so that PyTorch asks for nothing else, and that the CPU is Intel's, as the
    H200's host was. Before PyTorch is loaded."""
    for path in sorted(Path(__file__).parent.parent.glob("_no_driver*.so")):
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return None


def main(arguments: list[str] | None = None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    script = options.script[0]
    fault = fault_of(options)
    if fault is not None:
        return refuse(fault)
    version, wanted = torch_version(), MACHINES[options.machine]
    if version is None:
        return refuse("PyTorch is not installed: pip install torch==2.11.0")
    if not version.startswith(wanted + "."):
        return refuse(f"PyTorch {version} is installed; {options.machine} is modelled with PyTorch {wanted}")
    driver = load_driver()
    from .script_run import run
    return run(script, options.arguments, options, driver)


def write_report(report: Any, where: str) -> None:
    if where == "-":
        print("\n".join(report.lines()), file=sys.stderr)
        return
    Path(where).write_text(json.dumps(report.as_json(), indent=1))


def print_exception(error: BaseException, script: str) -> None:
    """As the interpreter does, from the script's first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)

#!/usr/bin/env python3
"""Records every operator that a PyTorch program calls, with its inputs and outputs:

  python3 record_program.py [OPTIONS] FILE.safetensors PROGRAM [ARGUMENTS ...]

or, inside a program, `with Recorder("file.safetensors"): ...`, which is also `guardbit.torch.record`. `guardbit replay FILE`
computes the operators again. tools/python/guardbit/torch/recording/recorder.py, which this script loads from its place beside
the sources, says what the file holds. Needs PyTorch, not the package; on a computer without a GPU the operators of the CPU
are recorded.
"""

import argparse
import os
import runpy
import subprocess
import sys
import types
from pathlib import Path

# The package itself needs its compiled part, which this script does without.
_recording = types.ModuleType("guardbit_recording")
_recording.__path__ = [str(Path(__file__).resolve().parents[1] / "python/guardbit/torch/recording")]
sys.modules["guardbit_recording"] = _recording
from guardbit_recording.recorder import Recorder  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", action="store_true", help="also names and grids of the kernels")
    parser.add_argument("--limit", type=int, metavar="BYTES",
                        help="of products with larger operands only samples are stored; other such calls are left out")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth step, where an optimizer's step ends one")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="of products past the limit (then 1 MiB where none is given) N rows and columns, else 16")
    parser.add_argument("--only", metavar="NAMES", help="only these operators, as in 'mm,addmm'")
    parser.add_argument("--xz", action="store_true", help="compress the file; it is then FILE.safetensors.xz")
    parser.add_argument("file")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for problem, place in ((not os.path.isfile(options.program), options.program),
                           (not os.path.isdir(os.path.dirname(os.path.abspath(options.file))), options.file)):
        if problem:
            parser.error(f"{place}: no such file or folder")
    sys.argv = [options.program, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.program))
    only = options.only.split(",") if options.only else None
    recorder = Recorder(options.file, every=options.every, sample=options.sample, kernels=options.kernels, limit=options.limit, only=only)
    try:
        with recorder:
            runpy.run_path(options.program, run_name="__main__")
    finally:
        if options.xz and os.path.exists(options.file):
            subprocess.run(["xz", "-9", "-T0", "-f", options.file], check=True)
    print(f"{options.file}: {len(recorder.calls)} calls, {len(recorder.contents.entries)} tensors"
          + (f", {recorder.left_out} left out" if recorder.left_out else ""))


if __name__ == "__main__":
    main()

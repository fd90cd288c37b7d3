#!/usr/bin/env python3
"""Prints, as a Markdown table, how quickly `guardbit cast` converts a file beside how quickly cp copies it.

usage: cast_rates.py GUARDBIT FOLDER [MIB] [TURNS]

The file, of FP32 numbers, is made in FOLDER, and stays in the page cache as long as memory allows. cp and cast run in
turns, each into a file that is not there; a ratio is cp's time over cast's of the same turn, and the table has medians.
"""
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import time

FORMATS = ["e4m3", "fp16", "bf16", "mxfp8_e4m3", "nvfp4"]
DEVIATIONS = [1, 0.02, 0.02, 0.05, 0.5, 2, 0.02, 30]


def make_file(path, mebibytes):
    """A .safetensors file of normal numbers of several deviations; one mebibyte of them, repeated."""
    numbers = random.Random(3)
    part = b"".join(struct.pack("<32768f", *(numbers.gauss(0, deviation) for _ in range(32768))) for deviation in DEVIATIONS)
    size = mebibytes << 20
    header = json.dumps({"w": {"dtype": "F32", "shape": [size >> 14, 4096], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _ in range(mebibytes):
            file.write(part)


def seconds(command, output):
    output.unlink(missing_ok=True)
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    taken = time.monotonic() - begin
    output.unlink()
    return taken


def main():
    guardbit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    mebibytes, turns = (int(word) for word in (sys.argv[3:] + ["1024", "7"][len(sys.argv) - 3:]))
    source, copy, result = (folder / name for name in ["in.safetensors", "copy.safetensors", "out.safetensors"])
    make_file(source, mebibytes)
    seconds(["cp", source, copy], copy)
    print("| to | threads | GB/s of input | cp, GB/s | of cp |\n|---|---:|---:|---:|---:|")
    for threads in [1, 2]:
        for name in FORMATS:
            cast = [guardbit, "cast", source, "--to", name, "--threads", str(threads), "-o", result]
            pairs = [(seconds(["cp", source, copy], copy), seconds(cast, result)) for _ in range(turns)]
            size = (mebibytes << 20) / 1e9
            rates = [size / statistics.median(times) for times in zip(*pairs)]
            ratio = statistics.median(by_cp / by_cast for by_cp, by_cast in pairs)
            print(f"| {name} | {threads} | {rates[1]:.2f} | {rates[0]:.2f} | **{ratio:.2f}** |", flush=True)
    source.unlink()


main()

#!/usr/bin/env python3
"""Prints, as a Markdown table, how quickly operators are computed beside PyTorch's own on the CPU.

usage: operator_rates.py GUARDBIT [THREADS] [TURNS]

2^22 FP32 elements, 4096 rows of 1024. `guardbit bench --kind operator` and PyTorch run in turns, each with so many
threads (2); a rate is the best of all turns. Needs PyTorch, and guardbit_benchmark beside the command.
"""
import json
import subprocess
import sys
import time

import torch

ROWS, COLUMNS = 4096, 1024


def torch_operators():
    """By the names that the benchmarks have."""
    torch.manual_seed(1)
    x, dy = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    weight, bias = torch.randn(COLUMNS), torch.randn(COLUMNS)
    y = torch.softmax(x, -1)
    _, mean, reciprocal = torch.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5)
    parameter, gradient, first, second = torch.randn(4, ROWS * COLUMNS).unbind()
    second.abs_()
    step = torch.tensor(1.0)
    aten = torch.ops.aten
    return {
        "softmax": lambda: torch.softmax(x, -1),
        "softmax_backward": lambda: aten._softmax_backward_data(dy, y, -1, torch.float32),
        "layer_norm": lambda: torch.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5),
        "layer_norm_backward": lambda: aten.native_layer_norm_backward(
            dy, x, [COLUMNS], mean, reciprocal, weight, bias, [True, True, True]),
        "gelu": lambda: aten.gelu(x),
        "gelu_backward": lambda: aten.gelu_backward(dy, x),
        "sum": lambda: x.sum(),
        "sum_of_rows": lambda: x.sum(-1),
        "adamw": lambda: torch._fused_adamw_(
            [parameter], [gradient], [first], [second], [], [step], lr=1e-3, beta1=0.9, beta2=0.999,
            weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False),
    }


def seconds(operator, least=0.1):
    """The best of runs that take so long together."""
    operator()
    best, end = float("inf"), time.monotonic() + least
    while time.monotonic() < end:
        begin = time.perf_counter()
        operator()
        best = min(best, time.perf_counter() - begin)
    return best


def main():
    guardbit = sys.argv[1]
    threads, turns = (int(word) for word in (sys.argv[2:] + ["2", "3"][len(sys.argv) - 2:]))
    torch.set_num_threads(threads)
    operators = torch_operators()
    rates, peers = dict.fromkeys(operators, 0.0), dict.fromkeys(operators, 0.0)
    for _ in range(turns):
        for name, operator in operators.items():
            only = f"operator/{name}/"
            command = [guardbit, "bench", "--kind", "operator", "--only", only, "--threads", str(threads),
                       "--time", "0.1", "--json"]
            for result in json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["results"]:
                rates[name] = max(rates[name], result["rate"])
            peers[name] = max(peers[name], ROWS * COLUMNS / seconds(operator) * 1e-9)
    print(f"| operator | 10^9 elements/s | PyTorch {torch.__version__} | of PyTorch's |\n|---|---:|---:|---:|")
    for name in operators:
        print(f"| {name} | {rates[name]:.2f} | {peers[name]:.2f} | **{rates[name] / peers[name]:.2f}** |")


if __name__ == "__main__":
    main()

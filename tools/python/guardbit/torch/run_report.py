"""What a run was made of."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .. import _core

# Where so many of the recorded calls like it agree a plan is known by a rule, as `guardbit plan` says it.
RULE = _core.rule_agrees / 1000


# Functions of PyTorch on the CPU that gave other bits on an EPYC with AVX2 than on the H200's host, a Xeon with AVX-512, of a million FP32 numbers each.
OF_HOST = frozenset("acos asin atan erf erfc erfinv exp log log10 log2 sqrt tan tanh gelu _softmax _log_softmax mm addmm bmm baddbmm sum var linalg_qr "
                    "_fft_r2c _fft_c2c".split())


class Report:
    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.plans: Counter[str] = Counter()
        self.guesses: Counter[str] = Counter()
        self.unmodelled: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.cpu_calls = 0
        self.of_host: Counter[str] = Counter()
        self.left_in_doubt = 0

    def add(self, name: str, plan: str, seconds: float, guessed: bool) -> None:
        self.calls[name] += 1
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.plans[plan] += 1
        if guessed:
            self.guesses[name] += 1

    def add_cpu_call(self, packet: str, is_like_host: bool) -> None:
        """A call whose tensors are all on the CPU; has this one the vectors of the H200's host?"""
        self.cpu_calls += 1
        name = packet.rstrip("_")
        if name in OF_HOST and not is_like_host:
            self.of_host[name] += 1

    def add_unmodelled(self, name: str, reason: str) -> None:
        self.unmodelled[name] += 1
        self.reasons[name] = reason

    def lines(self) -> list[str]:
        """A line for each operator, the slowest first."""
        total = sum(self.calls.values())
        lines = [f"{total} calls predicted in {sum(self.seconds.values()):.2f} s, {sum(self.guesses.values())} by a guessed plan; "
                 f"{sum(self.unmodelled.values())} computed by PyTorch; {self.cpu_calls} calls of the CPU"]
        for name, seconds in sorted(self.seconds.items(), key=lambda x: -x[1]):
            guessed = f", {self.guesses[name]} by a guessed plan" if self.guesses[name] else ""
            lines.append(f"  {seconds:8.3f} s  {self.calls[name]:6d}  {name}{guessed}")
        for name, count in self.unmodelled.most_common():
            lines.append(f"  not predicted: {count} calls of {name}: {self.reasons[name]}")
        if self.left_in_doubt:
            lines.append(f"  {self.left_in_doubt} tensors that depend on them went to the CPU")
        return lines

    def as_json(self) -> dict[str, Any]:
        return {"calls": dict(self.calls), "seconds": self.seconds, "plans": dict(self.plans), "guessed": dict(self.guesses),
                "unmodelled": dict(self.unmodelled), "reasons": self.reasons, "cpu_calls": self.cpu_calls, "of_host": dict(self.of_host), "left_in_doubt": self.left_in_doubt}

#!/usr/bin/env python3
"""Makes captures of the answers of two Radeon cards that AMD publishes with its emulator rocjitsu.

rdna_captures.py FIXTURES OUTPUT_FOLDER

FIXTURES is a folder with the headers of emulation/rocjitsu/tests/fixtures/float_dot of the repository ROCm/rocm-systems:
gfx1100_cases.h, gfx1201_cases.h and packed_wmma_cases.h, or some of them. Each list of cases becomes captures that
`guardbit verify` reads. The answers are AMD's and are not part of this project.
"""

import json
import os
import re
import struct
import sys

TILE = 16


def numbers_of(text, name):
    """The hexadecimal numbers of the array `name`, in order."""
    found = re.search(r"\b" + name + r"\b[^=;]*=\s*\{", text)
    if not found:
        raise ValueError(f"no array {name}")
    end = text.index("};", found.end())
    return [int(x, 16) for x in re.findall(r"0x[0-9a-fA-F]+", text[found.end() : end])]


def code(value, fraction_bits, bias):
    """A small integer in a floating format of that many fraction bits."""
    magnitude = abs(value)
    if magnitude == 0:
        return 0
    exponent = magnitude.bit_length() - 1
    fraction = (magnitude << fraction_bits >> exponent) - (1 << fraction_bits)
    sign_bit = 1 << (31 if fraction_bits == 23 else 15)
    return (sign_bit if value < 0 else 0) | (exponent + bias) << fraction_bits | fraction


FORMATS = {"f16": ("F16", 10, 15), "bf16": ("BF16", 7, 127), "f32": ("F32", 23, 127)}


class Recording:
    """Executions of one instruction: rows of A, columns of B, C and D as flat lists of codes."""

    def __init__(self, arch, instruction, operands, results, shape):
        self.metadata = {"capture": "1", "kind": "instruction", "arch": arch, "instruction": instruction}
        self.operands, self.results, self.shape = operands, results, shape
        self.a, self.b, self.c, self.d = [], [], [], []

    def add(self, a, b, c, d):
        for own, codes in ((self.a, a), (self.b, b), (self.c, c), (self.d, d)):
            own.extend(codes)

    def content(self):
        m, n, k = self.shape
        count = len(self.d) // (m * n)
        header, chunks, offset = {"__metadata__": self.metadata}, [], 0
        for name, codes, kind, size in (
            ("a", self.a, self.operands, (m, k)),
            ("b", self.b, self.operands, (k, n)),
            ("c", self.c, self.results, (m, n)),
            ("d", self.d, self.results, (m, n)),
        ):
            chunk = struct.pack(f"<{len(codes)}{'I' if kind == 'f32' else 'H'}", *codes)
            header[name] = {
                "dtype": FORMATS[kind][0],
                "shape": [count, *size],
                "data_offsets": [offset, offset + len(chunk)],
            }
            chunks.append(chunk)
            offset += len(chunk)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def halves(word):
    return [word & 0xFFFF, word >> 16]


def dot2(text, arch, name, kind):
    """Records of packed A, packed B, C and the answer."""
    x = numbers_of(text, name)
    recording = Recording(arch, f"v_dot2_f32_{kind}", kind, "f32", (1, 1, 2))
    for a, b, c, d in zip(*[iter(x)] * 4, strict=True):
        recording.add(halves(a), halves(b), [c], [d])
    return recording


def gfx1100(text):
    yield dot2(text, "gfx1100", "kDot2F16Cases", "f16")
    yield dot2(text, "gfx1100", "kDot2BF16Cases", "bf16")
    # The answers are of one matrix of small integers, whose operands these formulas give.
    answers = numbers_of(text, "kWmmaIntegerResult")
    for kind in ("f16", "bf16"):
        _, bits, bias = FORMATS[kind]
        recording = Recording("gfx1100", f"v_wmma_f32_16x16x16_{kind}", kind, "f32", (TILE, TILE, TILE))
        places = [(i, j) for i in range(TILE) for j in range(TILE)]
        recording.add(
            [code(7 * (TILE * m + k) % 17 - 8, bits, bias) for m, k in places],
            [code(11 * (TILE * k + n) % 17 - 8, bits, bias) for k, n in places],
            [code(13 * (TILE * m + n) % 129 - 64, 23, 127) for m, n in places],
            answers,
        )
        yield recording


def gfx1201(text):
    for kind, part in (("f16", "F16"), ("bf16", "BF16")):
        yield dot2(text, "gfx1201", f"kGfx12Dot{part}Cases", kind)
        x = numbers_of(text, f"kGfx12Wmma{part}Cases")
        size = 2 * TILE + 3
        for wave, answer in (("w32", 1), ("w64", 2)):
            recording = Recording("gfx1201", f"v_wmma_f32_16x16x16_{kind}_{wave}", kind, "f32", (TILE, TILE, TILE))
            for begin in range(0, len(x), size):
                case = x[begin : begin + size]
                # One element's operands: here every element of a tile has them.
                row, column, area = case[:TILE], case[TILE : 2 * TILE], TILE * TILE
                recording.add(
                    row * TILE,
                    [value for value in column for _ in range(TILE)],
                    [case[2 * TILE]] * area,
                    [case[2 * TILE + answer]] * area,
                )
            yield recording


def packed_wmma(text):
    """Seven matrices for each type: A, B, and words whose lower half is C; answers by card, wave, type and matrix."""
    inputs = numbers_of(text, "kPackedWmmaInputs")
    answers = numbers_of(text, "kPackedWmmaExpected")
    area, matrices = TILE * TILE, 7
    for index in range(8):
        gfx12, wave64, is_bf16 = index >> 2 & 1, index >> 1 & 1, index & 1
        kind = "bf16" if is_bf16 else "f16"
        suffix = ("_w64" if wave64 else "_w32") if gfx12 else ""
        arch = "gfx1201" if gfx12 else "gfx1100"
        recording = Recording(arch, f"v_wmma_{kind}_16x16x16_{kind}{suffix}", kind, kind, (TILE, TILE, TILE))
        for matrix in range(matrices):
            begin = 3 * area * (matrices * is_bf16 + matrix)
            answer = area * (matrices * index + matrix)
            recording.add(
                inputs[begin : begin + area],
                inputs[begin + area : begin + 2 * area],
                [word & 0xFFFF for word in inputs[begin + 2 * area : begin + 3 * area]],
                answers[answer : answer + area],
            )
        # RDNA3 has one name for both wave sizes.
        yield recording, "" if gfx12 else ("-wave64" if wave64 else "-wave32")


def captures_of(path):
    """Names and contents of the captures of one header."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    makers = {"gfx1100_cases.h": gfx1100, "gfx1201_cases.h": gfx1201, "packed_wmma_cases.h": packed_wmma}
    for made in makers[os.path.basename(path)](text):
        recording, suffix = made if isinstance(made, tuple) else (made, "")
        yield f"{recording.metadata['arch']}-{recording.metadata['instruction']}{suffix}.safetensors", recording.content()


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    fixtures, folder = arguments
    names = ("gfx1100_cases.h", "gfx1201_cases.h", "packed_wmma_cases.h")
    paths = [path for path in (os.path.join(fixtures, name) for name in names) if os.path.exists(path)]
    if not paths:
        print(f"rdna_captures.py: {fixtures}: none of {', '.join(names)} is here", file=sys.stderr)
        return 2
    try:
        os.makedirs(folder, exist_ok=True)
        for path in paths:
            for name, content in captures_of(path):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
                print(os.path.join(folder, name))
    except (OSError, ValueError, KeyError, struct.error) as error:
        print(f"rdna_captures.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Cuts capture files to some of their executions; the metadata stays, and `executions` says which were kept.

cut_capture.py EXECUTIONS OUTPUT_FOLDER CAPTURE...

EXECUTIONS is a list such as 0-9 or 0,3,40-44, counted from 0 in each file. Executions that a file does not have are an
error. A capture that was cut before keeps counting in its original recording.
"""

import json
import os
import struct
import sys


def parse_executions(text):
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def ranges(numbers):
    """[0, 1, 2, 5] as "0-2,5"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def cut(path, wanted):
    """The header and data of the capture with only the wanted executions."""
    header, data = read(path)
    metadata = header.pop("__metadata__")
    count = header["a"]["shape"][0]
    before = parse_executions(metadata["executions"]) if "executions" in metadata else list(range(count))
    missing = [t for t in wanted if t >= count]
    if missing:
        raise ValueError(f"{path}: execution {missing[0]} is out of range (valid: 0 to {count - 1})")
    metadata["executions"] = ranges([before[t] for t in wanted])
    result, chunks, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"][0]):
        begin, end = tensor["data_offsets"]
        if tensor["shape"][0] != count:
            raise ValueError(f"{path}: tensor '{name}' has {tensor['shape'][0]} executions where a has {count}")
        size = (end - begin) // count
        chunk = b"".join(data[begin + t * size : begin + (t + 1) * size] for t in wanted)
        chunks.append(chunk)
        shape = [len(wanted), *tensor["shape"][1:]]
        result[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": [offset, offset + len(chunk)]}
        offset += len(chunk)
    return result, b"".join(chunks)


def write(path, header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = path + ".part"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    os.replace(temporary, path)


def main(arguments):
    if len(arguments) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        wanted = parse_executions(arguments[0])
        for path in arguments[2:]:
            write(os.path.join(arguments[1], os.path.basename(path)), *cut(path, wanted))
    except (OSError, ValueError, KeyError) as error:
        print(f"cut_capture.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs one command line in a folder of its own and writes down what it printed and wrote."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from lines import Line
from masks import masked

# Programs that command lines may use beside guardbit. rsvg-convert is none of them: what it makes of
# a picture depends on its version.
PROGRAMS = ("cat", "cp", "cut", "grep", "head", "ls", "mkdir", "sed", "sh", "tail", "tr", "wc")

# Sanitizers and coverage are told by their own variables.
KEPT_VARIABLES = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE",
                  "LD_LIBRARY_PATH", "LD_PRELOAD", "GUARDBIT_CPU")  # fmt: skip

# Longer texts are stored as their beginning, a count and a hash; their titles end in these words.
CUT_TEXT = "only its beginning"
MOST_LINES, MOST_CHARACTERS, HEAD_LINES, HEAD_CHARACTERS = 700, 20000, 60, 4500


class Workplace(NamedTuple):
    """What all command lines share."""

    scratch: Path
    inputs: Path
    programs: Path
    repository: Path
    timeout: float


def make_programs(folder: Path, command: Path) -> None:
    """A folder with guardbit and nothing more than command lines may use."""
    folder.mkdir()
    (folder / "guardbit").symlink_to(command)
    for name in PROGRAMS:
        place = shutil.which(name)
        if place is None:
            raise FileNotFoundError(f"no program {name}")
        (folder / name).symlink_to(place)


# ---- Texts and files as text ----


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _block(title: str, text: str, whole: bool) -> str:
    """A text under its title; of a long one the beginning, unless all of it is asked for."""
    if not text:
        return f"==== {title}: nothing\n"
    lines = text.split("\n")
    is_open = lines[-1] != ""
    if not is_open:
        lines.pop()
    title += f": {len(lines)} line{'' if len(lines) == 1 else 's'}"
    title += ", no newline at the end" if is_open else ""
    if not whole and (len(lines) > MOST_LINES or len(text) > MOST_CHARACTERS):
        title += f", {len(text)} characters, sha256 {_digest(text.encode())}, {CUT_TEXT}"
        lines = "\n".join(lines[:HEAD_LINES])[:HEAD_CHARACTERS].split("\n")
    return f"==== {title}\n" + "".join(line + "\n" for line in lines)


def _as_text(data: bytes) -> Optional[str]:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _npy_summary(data: bytes) -> str:
    size = struct.unpack("<H", data[8:10])[0]
    return data[10 : 10 + size].decode().strip() + f" sha256 {_digest(data)}"


def _npz_summary(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        arrays = [f"{name}: {_npy_summary(file.read(name))}\n" for name in file.namelist()]
    return "".join(arrays) + f"{len(data)} bytes, sha256 {_digest(data)}"


def _safetensors_summary(data: bytes, mask: Callable[[str], str]) -> str:
    """Its head may hold what is masked, so head and data have hashes of their own."""
    size = struct.unpack("<Q", data[:8])[0]
    if size > len(data) - 8:
        raise ValueError("a head that is longer than the file")
    head = data[8 : 8 + size].decode().rstrip()
    text = f"safetensors, sha256 {_digest(mask(head).encode())} of its head"
    for name, entry in json.loads(head).items():
        text += f"\n{name}: {json.dumps(entry, ensure_ascii=False)}"
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            text += f" sha256 {_digest(data[begin:end])}"
    return mask(text)


def _binary_summary(data: bytes, mask: Callable[[str], str]) -> str:
    """What is in a binary file, with hashes for what cannot be read."""
    try:
        if data[:6] == b"\x93NUMPY":
            return _npy_summary(data)
        if data[:4] == b"PK\x03\x04":
            return _npz_summary(data)
        if data[8:9] == b"{":
            return _safetensors_summary(data, mask)
    except (ValueError, KeyError, struct.error, zipfile.BadZipFile):
        pass  # it is not what it looks like
    return f"{len(data)} bytes, sha256 {_digest(data)}"


def _written_files(folder: Path, skipped: Tuple[str, ...]) -> List[Path]:
    files = []
    for place, folders, names in os.walk(str(folder)):
        if Path(place) == folder:
            folders[:] = [name for name in folders if name not in skipped]
            names = [name for name in names if name not in skipped]
        files += [Path(place) / name for name in names]
        paths = [Path(place) / name for name in folders]
        files += [path for path in paths if not any(path.iterdir())]
    return sorted(files)


# ---- Running ----


def _environment(work: Workplace, folder: Path, temporary: Path) -> Dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {
        **kept,
        "PATH": str(work.programs),
        "HOME": str(folder),
        "TMPDIR": str(temporary),
        "PYTHON": sys.executable,
        "LC_ALL": "C",
        "TERM": "dumb",
        "COLUMNS": "80",
        "LINES": "24",
        "TZ": "UTC",
    }


def _run(
    shell: str, folder: Path, environment: Dict[str, str], timeout: float
) -> Tuple[str, bytes, bytes]:
    """Exit status (or what happened instead), standard output, standard error."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", shell],
        cwd=str(folder),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, error = process.communicate()
        return f"none: still running after {timeout:g} s", out, error
    return str(process.returncode), out, error


def record(line: Line, work: Workplace, whole: bool = False) -> str:
    """Runs the line and says what it did, as text that is the same wherever it runs."""
    folder = work.scratch / line.name
    temporary = work.scratch / (line.name + ".tmp")
    folder.mkdir()
    temporary.mkdir()
    (folder / "in").symlink_to(work.inputs)
    (folder / "repo").symlink_to(work.repository)
    environment = _environment(work, folder, temporary)
    status, out, error = _run(line.shell, folder, environment, work.timeout)

    paths = [(folder, "<FOLDER>"), (temporary, "<TMPDIR>"), (work.repository, "<REPOSITORY>"),
             (work.inputs, "<INPUTS>"), (work.scratch, "<SCRATCH>")]  # fmt: skip

    def mask(text: str) -> str:
        return masked(text, paths)

    def stream(title: str, data: bytes) -> str:
        return _block(title, mask(data.decode("utf-8", "backslashreplace")), whole)

    text = "".join(f"$ {part}\n" for part in line.shell.split("\n"))
    text += f"status {status}\n" + stream("stdout", out) + stream("stderr", error)
    for path in _written_files(folder, ("in", "repo")) + _written_files(temporary, ()):
        title = "file " + mask(os.path.relpath(str(path), str(folder)))
        if path.is_dir():
            text += f"==== empty folder {title[5:]}\n"
            continue
        data = path.read_bytes()
        content = _as_text(data)
        if content is not None:
            if path.suffix in (".html", ".svg"):
                content = content.replace("><", ">⏎\n<")  # its lines are too long to compare
            text += _block(title, mask(content), whole)
        else:
            text += f"==== {title}: binary\n" + _binary_summary(data, mask) + "\n"
    return text

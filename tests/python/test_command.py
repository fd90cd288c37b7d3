"""The command that comes with the package behaves as a program of its own, though it lies in the module."""

import signal
import subprocess
import time

import numpy as np
import pytest


def test_it_has_its_recordings(command, tmp_path):
    done = subprocess.run([command, "experiment", "run", "E02", "--quick"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "Not there" not in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words, status, told", [
    (["--version"], 0, b""),
    (["nonsense"], 2, b"guardbit: unknown command 'nonsense' (valid: "),
    (["verify", b"\xff\n.safetensors"], 2, b"guardbit: \xff\\x0a.safetensors: "),
])
def test_status_and_errors_are_the_programs(command, words, status, told):
    done = subprocess.run([command, *words], capture_output=True)
    assert (done.returncode, done.stderr[:len(told)], done.stderr.count(b"\n")) == (status, told, min(status, 1)), done.stderr


def test_a_reader_may_go_away(command):
    with subprocess.Popen([command, "list", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


def test_ctrl_c_ends_it(command, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3000, 3000), np.float64))
    words = [command, "gemm", "a.npy", "a.npy", "--arch", "sm_90", "--engine", "reference", "--threads", "1", "-o", "d.npy"]
    # A shell's background jobs ignore SIGINT, and so do their children.
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
        try:
            time.sleep(1.5)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert (process.returncode, error) == (130, "guardbit: interrupted: nothing written\n")
    assert time.monotonic() - start < 5

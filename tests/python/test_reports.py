"""explain, compare, verify, probe, traces, scalers and assert_equal_bits."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import guardbit
from guardbit.testing import assert_equal_bits


def product(rng, m=48, n=40, k=96, dtype=np.float16):
    a = rng.standard_normal((m, k)).astype(dtype)
    b = rng.standard_normal((k, n)).astype(dtype)
    return a, b


def without_time(found):
    return {key: value for key, value in found.items() if key not in ("seconds", "file")}


def test_explain_equals_the_command(command, tmp_path, rng):
    a, b = product(rng)
    d = guardbit.matmul(a, b, arch="sm_90")
    for name, x in (("a", a), ("b", b), ("d", d)):
        np.save(tmp_path / f"{name}.npy", x)
    done = subprocess.run([command, "explain", "--a", tmp_path / "a.npy", "--b", tmp_path / "b.npy", "--d", tmp_path / "d.npy", "--json"],
                          capture_output=True, text=True, check=True)
    found = guardbit.explain(d, a, b)
    assert without_time(found.to_dict()) == without_time(json.loads(done.stdout))
    assert found and found.verdict == "exact_plan"
    assert_equal_bits(guardbit.matmul(a, b, plan=found.plan), d)
    assert "explained" in repr(found) and found._repr_html_().startswith("<pre>")


def test_plan_equals_the_command(command, golden):
    sizes = {"m": 250, "n": 4096, "k": 2560}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]

    def printed(*more):
        return subprocess.run([command, "plan", *words, *more], capture_output=True, text=True)

    found = guardbit.plan("mm", **sizes, dtype="bf16", layout="NT")
    assert found.to_dict() == json.loads(printed("--call", "mm", "--dtype", "bf16", "--layout", "NT", "--json").stdout)
    assert repr(found) == printed("--call", "mm", "--dtype", "bf16", "--layout", "NT").stdout.rstrip("\n")
    assert found.text == found.plan.text and found.known in ("rule", "nearest")
    assert guardbit.plan("mm", m=100000, n=8192, k=4096, dtype="fp16").call.m == 100000
    tf32 = guardbit.plan("bmm", **sizes, batch=3, dtype=np.float32, tf32=True, a_stride=(640000, 2560, 1), b_stride=(10485760, 4096, 1))
    assert tf32.to_dict()["call"]["dtype"] == "tf32"
    for words_of_error, arguments in (("a_stride", {"a_stride": (2560, 1)}), ("tf32", {"tf32": True}), ("like: the atlas", {"like": "cublas-12:sm_90"}),
                                      ("unknown layout", {"layout": "XX"}), ("a_stride: is out", {"a_stride": (2**63, 1), "b_stride": (1, 1)})):
        with pytest.raises(ValueError, match=words_of_error):
            guardbit.plan("mm", **sizes, dtype="fp16", **arguments)
    with pytest.raises(TypeError, match="b_stride: is a list of whole numbers"):
        guardbit.plan("mm", **sizes, dtype="fp16", a_stride=(1, 1), b_stride=0.5)


def test_explain_names_what_is_wrong(rng):
    a, b = product(rng, dtype=np.float32)
    d = guardbit.matmul(a[:, :64], b[:64])
    found = guardbit.explain(d, a, b)
    assert not found and found.plan is None
    assert found.verdict == "wrong"
    assert found.findings[0].kind == "missing_k" and found.findings[0].k == [[64, 96]]


def test_explain_of_a_capture(golden):
    found = guardbit.explain(golden / "gemm" / "mm_fp32_33x17x100.safetensors")
    assert found.plan == "simt/fma.fp32 split=4x4:ceil d=fp32" or found.verdict == "exact_plan"
    with pytest.raises(guardbit.Error, match="nothing.safetensors: cannot be read"):
        guardbit.explain("nothing.safetensors")
    with pytest.raises(ValueError, match="needs d, a and b"):
        guardbit.explain(np.ones((2, 2)))


def test_compare(rng):
    a, b = product(rng, dtype=np.float32)
    d = guardbit.matmul(a, b)
    found = guardbit.compare(d, a=a, b=b, plan=guardbit.plan_of(a, b))
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    norm = np.linalg.norm((d - exact).astype(float)) / np.linalg.norm(exact.astype(float))
    assert np.isclose(found.normwise.frobenius, norm, rtol=1e-6)
    assert guardbit.compare(d, d.astype(np.float64)).ulp.max == 0
    assert guardbit.compare(d, exact.astype(np.float64)).plot()._repr_svg_().startswith("<")


def test_probe_finds_the_arithmetic_of_a_function():
    found = guardbit.probe(lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)) * np.float32(1), a="fp16", d="fp32", k=1)
    assert found.k == 1
    chain = guardbit.probe(lambda a, b, c: guardbit.matmul(a, b, c, plan="simt/fma.fp32 add=initial d=fp32"),
                           a="fp32", c="fp32", d="fp32", k=8)
    assert chain and "fma" in chain.instruction_text
    with pytest.raises(ZeroDivisionError):
        guardbit.probe(lambda a, b: 1 // 0, a="fp16", d="fp32")
    with pytest.raises(TypeError, match="cannot be called"):
        guardbit.probe(3, a="fp16", d="fp32")


def test_traces_of_arrays_equal_those_of_files(command, tmp_path, rng):
    tensors = {f"step{step}/w.grad_out": (rng.standard_normal((16, 128)) * 1e-6).astype(np.float32) for step in (1, 2)}
    np.savez(tmp_path / "t.npz", **tensors)
    for words, ours in ((["trace"], guardbit.trace(tensors)),
                        (["recipe", "compare"], guardbit.recipes.compare(tensors))):
        done = subprocess.run([command, *words, tmp_path / "t.npz", "--json"], capture_output=True, text=True, check=True)
        expected = json.loads(done.stdout)
        found = ours.to_dict()
        for report in (expected, found):
            for tensor in report["tensors"]:
                tensor.pop("file", None)
        assert found["tensors"] == expected["tensors"]
    assert guardbit.scaler.replay(tensors).steps
    steps = [{"w.grad": (rng.standard_normal((8, 8)) * 10.0**-i).astype(np.float32)} for i in range(3)]
    by_name = guardbit.scaler.replay({f"step{i}/w.grad": x["w.grad"] for i, x in enumerate(steps)}).to_dict()
    assert len(by_name["steps"]) == 3
    assert guardbit.scaler.replay(steps).to_dict() == guardbit.scaler.replay(dict(enumerate(steps))).to_dict() == by_name
    assert [t.name for t in guardbit.trace([{"x": steps[0]["w.grad"]}, {"y": steps[1]["w.grad"]}]).tensors] == ["x", "y"]
    assert guardbit.scaler.schedule("clean*2000,overflow").steps


def test_assert_equal_bits_says_what_it_knows(rng):
    a, b = product(rng)
    d = guardbit.matmul(a, b, arch="sm_90")
    assert_equal_bits(d, d.copy())
    wrong = d.copy()
    wrong[3, 5] += np.float16(1)
    with pytest.raises(AssertionError) as raised:
        assert_equal_bits(wrong, d, a=a, b=b)
    text = str(raised.value)
    assert "1 of 1920 elements differ (fp16)" in text and "[3, 5]: 0x" in text and "explain says of actual:" in text
    with pytest.raises(AssertionError, match="fp16 and expected fp32"):
        assert_equal_bits(d, d.astype(np.float32))
    with pytest.raises(AssertionError):
        assert_equal_bits(np.float32([0.0]), np.float32([-0.0]))
    nans = np.uint32([0x7FC00000, 0x7FFFFFFF]).view(np.float32)
    assert_equal_bits(nans[:1], nans[1:], any_nan=True)
    with pytest.raises(AssertionError):
        assert_equal_bits(nans[:1], nans[1:])


def test_the_fixture(assert_equal_bits):
    assert_equal_bits(np.ones(3), np.ones(3))


def test_ctrl_c_ends_work():
    code = ("import numpy as np, guardbit\n"
            "a = np.ones((6000, 6000), np.float64)\n"
            "print('begin', flush=True)\n"
            "guardbit.matmul(a, a, plan='simt/fma.fp64 compute=fp64 d=fp64', threads=1)\n")
    # A shell's background jobs ignore SIGINT, and so do their children.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + code
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "begin\n"
            time.sleep(0.7)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert "KeyboardInterrupt" in error and time.monotonic() - start < 5


def test_other_threads_go_on_meanwhile():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    a = np.ones((700, 700), np.float64)
    guardbit.matmul(a, a, plan="simt/fma.fp64 compute=fp64 d=fp64", threads=1)
    done.set()
    thread.join()
    assert len(ticks) > 5


def memory_of(setup, work):
    """KB by which the process grows while it works; what stands in `setup` is there before."""
    code = ("import resource, numpy as np, guardbit\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            f"{setup}\n"
            "before = peak()\n"
            f"{work}\n"
            "print(peak() - before)\n")
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_no_copy_of_large_operands():
    grown = memory_of("a = np.ones((1 << 13, 1 << 13), np.float16)\nb = np.ones((1 << 13, 1), np.float16)",  # 128 MiB
                      "guardbit.matmul(a, b); guardbit.matmul(b.T, a.T)")
    assert grown < 60_000, f"{grown} KB more for operands of 131072 KB"


# What is written has a place before; 1 GiB of operands or source.
@pytest.mark.long
@pytest.mark.parametrize("setup, work", [
    ("a = np.ones((1 << 15, 1 << 14), np.float16)\nb = np.ones((1 << 14, 1), np.float16)", "guardbit.matmul(a, b, arch='sm_90')"),
    ("a = np.ones((1 << 14, 1 << 15), np.float16)\nb = np.ones((1 << 14, 1), np.float16)", "guardbit.matmul(a.T, b, arch='sm_90')"),
    ("a = np.ones((1 << 15, 1 << 14), np.float16)\nb = np.ones((1, 1 << 15), np.float16)", "guardbit.matmul(b, a, arch='sm_90')"),
    ("a = np.ones(1 << 28, np.float32)\nout = np.ones(1 << 28, np.float16)", "guardbit.cast(a, 'fp16', out=out)"),
    ("a = np.ones(1 << 28, np.float32)", "guardbit.trace({'x.wgrad': a}, formats='fp16', scales=[0])"),
    ("a = np.ones((1 << 14, 1 << 14), np.float32)\nb = a.astype(np.float16)", "guardbit.compare(b, a); guardbit.compare(a.T[:99], a[:99])"),
], ids=["matmul_a", "matmul_transposed", "matmul_b", "cast", "trace", "compare"])
def test_no_copy_of_a_gibibyte(setup, work):
    grown = memory_of(setup, work)
    assert grown < 150_000, f"{grown} KB more for 1048576 KB"


@pytest.mark.long
def test_a_product_is_as_fast_as_the_commands(command, tmp_path, rng):
    """In turns, on one thread, in CPU time; the best of each. What the command takes to start and to read is taken away: its product of A and one column."""
    for name, shape in (("a", (1024, 1024)), ("b", (1024, 1024)), ("column", (1024, 1))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float16))

    def seconds_of_the_command(b):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [command, "gemm", tmp_path / "a.npy", tmp_path / f"{b}.npy", "--arch", "sm_90", "--threads", "1", "-o", tmp_path / f"{b}_d.npy"]
        subprocess.run(words, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    a, b = np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy")
    ours, commands, starts = [], [], []
    for _ in range(15):
        commands.append(seconds_of_the_command("b"))
        starts.append(seconds_of_the_command("column"))
        start = time.process_time()
        d = guardbit.matmul(a, b, arch="sm_90", threads=1)
        ours.append(time.process_time() - start)
    assert np.load(tmp_path / "b_d.npy").tobytes() == d.tobytes()
    alone = min(commands) - min(starts)
    assert min(ours) < 1.05 * alone, f"{min(ours):.4f} s beside {alone:.4f} s"


def test_import_is_quick():
    code = "import time, numpy; t = time.process_time(); import guardbit; print(time.process_time() - t)"
    seconds = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    assert min(seconds) < 0.1


def test_import_is_light():
    code = "import guardbit; print(guardbit.testing.assert_equal_bits.__name__, hasattr(guardbit, 'nothing'))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "assert_equal_bits False"
    code = "import sys, guardbit; print(sorted(m for m in sys.modules if m.split('.')[0] in ('torch', 'jax', 'cupy', 'ml_dtypes', 'pytest')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_errors_name_arguments(rng):
    with pytest.raises(guardbit.Error) as raised:
        guardbit.trace({"x": np.ones(3, np.float32)}, scales="x")
    assert str(raised.value).startswith("scales: ")
    assert issubclass(guardbit.Error, ValueError)
    with pytest.raises(guardbit.Error, match="^pattern: 'dynamic' says nothing"):
        guardbit.scaler.schedule("dynamic")
    a, b = product(rng)
    with pytest.raises(guardbit.Error, match="^d: is not of the shape of A"):
        guardbit.explain(a, a, b)
    with pytest.raises(ValueError, match="^time_limit: -1.0 is no number of seconds"):
        guardbit.explain(a, a, b, time_limit=-1)
    assert os.linesep not in str(raised.value)

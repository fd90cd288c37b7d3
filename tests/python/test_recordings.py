"""Recordings of programs: what guardbit.torch.record writes, and runs as an H200 that write one or are compared with one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import guardbit

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import guardbit.torch  # noqa: E402
from guardbit.torch.recording.against import Against, Differs  # noqa: E402
from guardbit.torch.recording.contents import Recording  # noqa: E402

NEEDS_2_11 = pytest.mark.skipif(not torch.__version__.startswith("2.11."), reason="the H200 is modelled with PyTorch 2.11")
PROGRAM = """
import sys
import torch
from torch import nn
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(32, 24), nn.Tanh(), nn.Dropout(0.2), nn.Linear(24, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
x = torch.randn(16, 32).cuda()
for step in range(3):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(x)
print(loss.item())
"""


def train(steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.ReLU(), torch.nn.Linear(30, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(50, 40)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return x, model


def test_a_recording_holds_operands_and_results(tmp_path):
    path = tmp_path / "run.safetensors"
    with guardbit.torch.record(path):
        x, _ = train(1)
    tensors = guardbit.load(path)
    calls = json.loads(tensors.metadata["ops"])
    assert tensors.metadata["kind"] == "recording" and tensors.metadata["torch"] == torch.__version__
    product = next(call for call in calls if call["op"] == "aten.addmm.default")
    bias, a, b = (torch.from_numpy(tensors[argument["tensor"]]) for argument in product["args"])
    assert torch.equal(a, x) and product["args"][2]["stride"] == [1, 40]
    assert torch.equal(torch.from_numpy(tensors[product["out"]["tensor"]]), torch.addmm(bias, x, b.T.contiguous().T))
    assert "aten.threshold_backward.default" in {call["op"] for call in calls}


def test_every_step_is_one_of_the_optimizer_or_of_the_program(tmp_path):
    path = tmp_path / "run.safetensors"
    with guardbit.torch.record(path, every=2):
        train(5)
    recording = Recording(str(path))
    assert [call["step"] for call in recording.calls if "step" in call] == [2, 4]
    assert sum(call["op"] == "aten.addmm.default" for call in recording.calls) == 2 * 3
    with guardbit.torch.record(path, every=2) as run:
        for _ in range(3):
            run.step()
            torch.ones(3) + 1
    assert [call.get("step") for call in Recording(str(path)).calls] == [2, None]  # ones, add


def test_samples_are_what_the_products_needed(tmp_path):
    path = tmp_path / "run.safetensors"
    with guardbit.torch.record(path, sample=3, limit=4000, only=["addmm", "mm", "relu"]) as run:
        x, _ = train(1)
    recording = Recording(str(path))
    product = recording.calls[0]
    assert product["sampled"] == {"rows": [0, 24, 49], "columns": [0, 14, 29]} and product["out"]["shape"] == [50, 30]
    bias, a, b, d = (recording.tensor(place["tensor"]) for place in (*product["args"], product["out"]))
    assert torch.equal(a, x[[0, 24, 49]]) and b.shape == (40, 3) and bias.shape == (3,)
    assert torch.allclose(d, bias + a @ b)
    assert run.left_out == 1 and recording.metadata["left_out"] == "1"  # relu's operand is past the limit


def test_what_is_printed_is_not_recorded(tmp_path):
    path = tmp_path / "run.safetensors"
    with guardbit.torch.record(path):
        repr(torch.ones(3))
    assert [call["op"] for call in Recording(str(path)).calls] == ["aten.ones.default"]


def test_an_error_leaves_the_recording_of_what_came_before(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(RuntimeError):
        with guardbit.torch.record(path):
            torch.ones(3).exp() @ torch.ones(4)
    assert "aten.exp.default" in [call["op"] for call in Recording(str(path)).calls]


@pytest.mark.parametrize("options, told", [({"every": 0}, "every: 0"), ({"sample": 0}, "sample: 0")])
def test_bad_numbers_are_refused(tmp_path, options, told):
    with pytest.raises(ValueError, match=told):
        guardbit.torch.record(tmp_path / "x", **options)


class Compared(TorchDispatchMode):
    """The operators of the CPU beside those of a recording."""

    def __init__(self, path):
        super().__init__()
        self.against = Against(path, lambda x: x.detach(), lambda values: True)
        self.against.begin()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.against.watched(func, args, kwargs or {}, lambda: func(*args, **(kwargs or {})))


@pytest.mark.parametrize("row, column, told", [
    (24, 0, "aten.mm.default, call 1: self before it: element [24, 0] is "), (23, 0, None),
    (0, 14, "aten.mm.default, call 1: mat2 before it: element [0, 14] is "), (0, 13, None),
])
def test_sampled_products_are_compared_where_they_were_kept(tmp_path, row, column, told):
    a, b = torch.randn(50, 40), torch.randn(40, 30)
    with guardbit.torch.record(tmp_path / "run.safetensors", sample=3, limit=1000):
        torch.mm(a, b)
    path = tmp_path / "as_on_gpu.safetensors"
    calls = json.loads(json.dumps(Recording(str(tmp_path / "run.safetensors")).calls).replace('"cpu"', '"cuda:0"'))
    rewrite(tmp_path / "run.safetensors", path, calls)
    if row:
        a[row, 0] += 1
    else:
        b[0, column] += 1
    compared = Compared(str(path))
    try:
        with compared:
            torch.mm(a, b)
        found = None
    except Differs as error:
        found = str(error)
    finally:
        compared.against.close()
    assert found is None and compared.against.compared == 1 if told is None else found is not None and found.startswith(told)


def run(folder, *arguments):
    return subprocess.run([sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", "--guesses", "take", *arguments], cwd=folder,
                          capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "script").write_text(PROGRAM)
    result = run(folder, "--record", "run.safetensors", "script", "0.1")
    assert result.returncode == 0, result.stderr
    return folder


@NEEDS_2_11
def test_a_predicted_run_is_recorded_and_replays(recorded, command):
    recording = Recording(str(recorded / "run.safetensors"))
    assert recording.metadata["device"] == "NVIDIA H200" and recording.metadata["predicted"].startswith("guardbit ")
    on_gpu = [call for call in recording.calls if '"cuda:0"' in json.dumps(call)]
    assert sum(call["op"] == "aten.addmm.default" for call in on_gpu) == 6
    assert [call["philox_offset"] for call in on_gpu if call["op"] == "aten.native_dropout.default"] == [0, 4, 8]
    replayed = subprocess.run([command, "replay", str(recorded / "run.safetensors"), "--json"], capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed.stdout


@NEEDS_2_11
def test_the_same_run_has_no_difference(recorded):
    result = run(recorded, "--against", "run.safetensors", "script", "0.1")
    assert result.returncode == 0, result.stderr
    assert " calls equal those of run.safetensors\n" in result.stderr


@NEEDS_2_11
def test_the_first_difference_ends_the_run(recorded):
    result = run(recorded, "--against", "run.safetensors", "script", "0.2")
    assert result.returncode == 1
    assert "guardbit.torch: script:14: aten._foreach_add_.List, call " in result.stderr
    assert ": alpha is -0.2 here, -0.1 in run.safetensors\n" in result.stderr and result.stdout == ""


@NEEDS_2_11
def test_one_changed_bit_is_named_with_its_place(recorded, tmp_path):
    recording = Recording(str(recorded / "run.safetensors"))
    number, call = [(i, call) for i, call in enumerate(recording.calls) if call["op"] == "aten.tanh_backward.default"][1]
    name = call["out"]["tensor"]
    value = recording.tensor(name)
    data = bytearray((recorded / "run.safetensors").read_bytes())
    _, shape, begin, _ = recording.places[name]
    place = 5 * shape[1] + 7
    data[begin + 2 * place] ^= 1
    (recorded / "changed.safetensors").write_bytes(data)
    result = run(recorded, "--against", "changed.safetensors", "script", "0.1")
    code = int(value.view(torch.int16)[5, 7]) & 0xFFFF
    assert result.returncode == 1
    assert "script:13: aten.tanh_backward.default, call " in result.stderr
    assert f": its result: element [5, 7] is 0x{code:04x} (" in result.stderr and f") here, 0x{code ^ 1:04x} (" in result.stderr
    assert f"; 1 of {value.numel()} elements differ\n" in result.stderr


@NEEDS_2_11
def test_steps_that_were_recorded_are_compared(recorded):
    recording = Recording(str(recorded / "run.safetensors"))
    # As if every second step had been recorded.
    calls, step = [], 0
    for call in recording.calls:
        step = call.get("step", step)
        if step % 2 == 0:
            calls.append(call)
    rewrite(recorded / "run.safetensors", recorded / "every.safetensors", calls, every="2")
    result = run(recorded, "--against", "every.safetensors", "script", "0.1")
    assert result.returncode == 0 and f"{sum('cuda:0' in json.dumps(x) for x in calls)} calls equal" in result.stderr, result.stderr


def rewrite(source, target, calls, **metadata):
    """The same tensors with other calls."""
    data = source.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header["__metadata__"].update(ops=json.dumps(calls), **metadata)
    text = json.dumps(header).encode()
    target.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size:])


@NEEDS_2_11
@pytest.mark.parametrize("options, told", [
    (("--record", "absent/run"), "--record absent/run: cannot be written"), (("--against", "script"), "script: is no recording of a program"),
    (("--against", "absent"), "absent: no such file"),
])
def test_bad_files_are_refused(recorded, options, told):
    result = run(recorded, *options, "script", "0.1")
    assert result.returncode == 2 and result.stderr == f"guardbit.torch: {told}\n"

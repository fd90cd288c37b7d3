"""Convolutions that an H200 computed, by the kernels that the atlas says cuDNN takes."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.__version__.startswith("2.11."):
    pytest.skip(f"PyTorch {torch.__version__}: the H200 is modelled with 2.11", allow_module_level=True)

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "recorded_convolutions.py"
GOLDEN = ROOT / "tests" / "golden" / "convolutions"
SCRIPTS, RECORDED, WITH_FP32_OPERANDS = ROOT / "tools" / "scripts" / "atlas", GOLDEN / "convolutions.npz", GOLDEN / "tf32_operands.npz"
IN_PARTS = GOLDEN / "parts.npz"


def counts(file):
    result = subprocess.run([sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", "--guesses", "take", str(PROGRAM), str(SCRIPTS),
                             str(file)], capture_output=True, text=True, check=False)
    assert result.stdout, result.stderr
    return ast.literal_eval(result.stdout)


def test_recorded_convolutions_and_their_gradients():
    found = counts(RECORDED)
    assert sum(found.values()) == 3 * 81
    # Guesses, of which 750 and 0 of 1000 recorded calls like them agree: a chain of each image for four parts of K in turn, and blocks of channels
    # for another kernel of a call that is not deterministic.
    assert found["different"] == 2
    assert found["equal"] > 210


def test_how_operands_become_tf32():
    assert counts(WITH_FP32_OPERANDS) == {"equal": 65, "different": 0, "no plan": 0}


def test_parts_of_k_and_products_of_places():
    # A guess: a gradient of weights in FP16 of filters of 8 x 8.
    assert counts(IN_PARTS) == {"equal": 90, "different": 1, "no plan": 0}


def test_other_bits_are_noticed(tmp_path):
    recorded = dict(np.load(RECORDED))
    recorded["values"][0, 0, 3] ^= 1
    np.savez(tmp_path / "changed.npz", **recorded)
    assert counts(tmp_path / "changed.npz")["different"] == 3


def test_a_picture_that_begins_elsewhere_is_a_guess(tmp_path):
    # cuDNN is told where tensors begin; the recorded ones are aligned.
    program = tmp_path / "slices"
    program.write_text("import torch\nx, w = torch.randn(16 * 28 * 28 + 1, device='cuda'), torch.randn(32, 1, 3, 3, device='cuda')\n"
                       "for i in (0, 1):\n    print(torch.nn.functional.conv2d(x[i:i + 12544].view(16, 1, 28, 28), w).shape[1], flush=True)\n")
    result = subprocess.run([sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", str(program)], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 3
    assert result.stdout == "32\n"
    assert "the library's plan for this shape is not known" in result.stderr


def test_a_channel_that_is_repeated_is_computed_as_a_copy_of_it(tmp_path):
    # Its stride of 0 is not that of channels that lie together.
    program = tmp_path / "repeated"
    program.write_text("import torch\ntorch.backends.cudnn.deterministic = True\nx, w = torch.randn(16, 1, 28, 28, device='cuda'), torch.randn(32, 3, 3, 3, device='cuda')\n"
                       "a, b = (torch.nn.functional.conv2d(y, w) for y in (x.expand(-1, 3, -1, -1), x.expand(-1, 3, -1, -1).contiguous()))\n"
                       "print(torch.equal(a.cpu(), b.cpu()), a.stride() == b.stride())\n")
    result = subprocess.run([sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", str(program)], capture_output=True, text=True,
                            check=False)
    assert (result.returncode, result.stdout) == (0, "True True\n"), result.stderr

"""Calls of operators by name (named_calls/README.md), as guardbit predicts them, against what an H200 gave for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.__version__.startswith("2.11."):
    pytest.skip(f"PyTorch {torch.__version__}: the H200 is modelled with 2.11", allow_module_level=True)

HERE = Path(__file__).parent
# Beginnings of the names of calls of which nothing, or the gradient alone, has a model; all others are answered.
WITHOUT_MODEL = {
    "nothing": ("bilinear", "conv3d", "cudnn_grid_sampler", "draws dirichlet", "draws gamma", "draws poisson", "euclidean torch.float64", "f32 special.erfcx",
                "f32 special.log_ndtr", "f32 special.ndtri", "f64 batch_norm", "f64 conv2d", "f64 erfinv", "f64 instance_norm", "f64 lgamma", "f64 mm",
                "f64 special.erfcx", "f64 special.log_ndtr", "f64 special.ndtri", "f64 weight_norm", "igamma", "polygamma 2", "rfft"),
    "gradient": ("polygamma 1",),
}


def predicted():
    command = [sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", "named_calls/__main__.py"]
    result = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return {call["name"]: call for call in map(json.loads, result.stdout.splitlines())}


def recorded():
    return {call["name"]: call for call in map(json.loads, (HERE / "named_calls" / "h200.jsonl").read_text().splitlines())}


def wrong_results(call, there):
    """Results that are not the H200's, of those that it gave twice."""
    for stage in ("forward", "backward"):
        if stage in call:
            assert len(call[stage]) == len(there[stage])
            yield from ((stage, i) for i, (a, b) in enumerate(zip(call[stage], there[stage])) if a != b and [stage, i] not in there["unsteady"])


def without_model(call):
    if "ended" not in call:
        return None
    assert call["ended"]["refused"], call["ended"]["error"]
    return "gradient" if "forward" in call else "nothing"


def test_named_calls_are_as_on_the_h200():
    calls, answers = predicted(), recorded()
    assert calls.keys() == answers.keys()
    assert all(call["operands"] == answers[name]["operands"] for name, call in calls.items()), "operands are drawn otherwise than for the recording"
    wrong = {name: list(found) for name, call in calls.items() if (found := list(wrong_results(call, answers[name])))}
    assert not wrong
    for word, names in WITHOUT_MODEL.items():
        assert {name for name, call in calls.items() if without_model(call) == word} == {name for name in calls if name.startswith(names)}

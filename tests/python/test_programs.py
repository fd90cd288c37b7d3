"""Programs run as on an H200 (python -m guardbit.torch), against what an H200 printed for them (programs/h200)."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.__version__.startswith("2.11."):
    pytest.skip(f"PyTorch {torch.__version__}: the H200 is modelled with 2.11", allow_module_level=True)

PROGRAMS = Path(__file__).parent / "programs"
RECORDED = {
    "mlp_fp32": "mlp.py fp32", "mlp_bf16": "mlp.py bf16", "mlp_fp16": "mlp.py fp16", "cnn_fp32": "cnn.py fp32", "cnn_fp16": "cnn.py fp16",
    "gpt_written_bf16": "gpt.py written bf16 AdamW", "gpt_default_bf16": "gpt.py default bf16 AdamW", "gpt_flash_fp16": "gpt.py flash fp16 fused-AdamW",
    "gpt_efficient_bf16": "gpt.py efficient bf16 fused-AdamW", "gpt_cudnn_fp16": "gpt.py cudnn fp16 SGD", "gpt_math_fp32": "gpt.py math fp32 single-Adam",
    "accumulate": "accumulate.py", "optimizers_foreach": "optimizers.py foreach", "optimizers_single": "optimizers.py single",
    "llama_bf16": "llama.py bf16", "llama_fp16": "llama.py fp16", "generate_llama_bf16": "generate.py llama bf16",
    "generate_qwen3_bf16": "generate.py qwen3 bf16", "generate_gpt2_fp16": "generate.py gpt2 fp16", "vit_bf16": "vit.py bf16", "vit_fp16": "vit.py fp16",
    "mlp_batches": "mlp_batches.py", "draws": "draws.py", "permutations": "permutations.py", "gru_bf16": "rnn_language.py GRU bf16", "masks": "masks.py",
    "recommender_bf16": "recommender.py bf16", "recommender_fp16": "recommender.py fp16",
    "lstm_fp32": "rnn_language.py LSTM fp32", "lstm_fp16": "rnn_language.py LSTM fp16", "lstm_bf16": "rnn_language.py LSTM bf16",
    "gru_fp32": "rnn_language.py GRU fp32", "recommender_fp32": "recommender.py fp32", "encoder_fp32": "encoder.py fp32",
    "encoder_fp16": "encoder.py fp16", "encoder_bf16": "encoder.py bf16", "policy": "policy.py", "formulas": "formulas.py", "sums_with_products": "sums_with_products.py",
    "batch_norms": "batch_norms.py", "unet_bf16": "unet.py bf16", "unet_fp16": "unet.py fp16",
    "qwen3_0.6b": "qwen3.py 0.6B", "qwen3_4b": "qwen3.py 4B",
}
# Of these a product or a convolution is a guess, unless their book has its plan.
GUESSED = {"accumulate", "cnn_fp16", "formulas", "recommender_bf16", "recommender_fp16", "sums_with_products", "lstm_fp32", "gru_fp32", "unet_bf16", "unet_fp16", "qwen3_4b"}
NEEDS = {"generate.py": "transformers", "qwen3.py": "transformers", "vit.py": "torchvision"}


def run(*arguments, options=("--guesses", "take"), folder=PROGRAMS):
    return subprocess.run([sys.executable, "-W", "ignore", "-m", "guardbit.torch", "--machine", "h200", *options, *arguments], cwd=folder,
                          capture_output=True, text=True, check=False)


def check(name):
    script, *arguments = RECORDED[name].split()
    needed = NEEDS.get(script)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    book = PROGRAMS / "books" / f"{name}.json"
    options = () if name not in GUESSED else ("--book", str(book)) if book.exists() else ("--guesses", "take")
    result = run(script, *arguments, options=options)
    assert result.returncode == 0, result.stderr
    expected = (PROGRAMS / "h200" / f"{name}.txt").read_text().splitlines()
    if result.stdout.splitlines() != expected and "this CPU, which has no AVX-512" in result.stderr:
        pytest.skip(f"other lines than the H200's, as the weights or data may be that the CPU made: {result.stderr.splitlines()[-1]}")
    assert result.stdout.splitlines() == expected


def test_a_program_prints_what_the_h200_printed():
    check("mlp_bf16")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(RECORDED) - {"mlp_bf16"}))
def test_programs_print_what_the_h200_printed(name):
    check(name)


def test_a_wrong_plan_is_noticed(tmp_path):
    book = tmp_path / "book.json"
    wrong = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 alpha=1.0625 d=bf16"
    shape = "aten.mm.default bf16[96,64;1,96] bf16[64,96;96,1] bf16[96,96;96,1]"
    book.write_text(json.dumps({"plan_book": 1, "plans": {shape: [wrong]}}))
    result = run("mlp.py", "bf16", options=("--guesses", "take", "--book", str(book)))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() != (PROGRAMS / "h200" / "mlp_bf16.txt").read_text().splitlines()


def test_a_plan_of_the_book_comes_before_the_tiled_gradient_of_the_atlas(tmp_path):
    name = script(tmp_path, "import torch\ntorch.manual_seed(0)\nx = torch.randn(16, 2, 16, 16, device='cuda').half()\n"
                            "w = torch.randn(8, 2, 3, 3, device='cuda').half().requires_grad_()\n"
                            "torch.nn.functional.conv2d(x, w, padding=1).sum().backward()\nprint(w.grad.cpu().tolist())\n")
    shape = ("aten.convolution_backward.default weight fp16[16,2,16,16,;512,256,16,1,] fp16[8,2,3,3,;18,9,3,1,] fp16[8,2,3,3,;18,9,3,1,] "
             "1,1 1,1 1,1 groups=1")
    book = tmp_path / "book.json"
    book.write_text(json.dumps({"plan_book": 1, "plans": {shape: ["sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 alpha=1.0625 d=fp16"]}}))
    tiled, planned = (run(name, options=("--guesses", "take", *options), folder=tmp_path) for options in ((), ("--book", str(book))))
    assert tiled.returncode == 0 and planned.returncode == 0, tiled.stderr + planned.stderr
    assert tiled.stdout != planned.stdout


def script(folder, text):
    path = folder / "script"
    path.write_text(text)
    return path.name


def test_a_script_has_its_arguments_and_its_status(tmp_path):
    name = script(tmp_path, "import sys, torch\nprint(__name__, sys.argv[1:], sys.path[0] != '')\nassert torch.ones(2, device='cuda').is_cuda\n"
                            "print(torch.ones(2).cuda() + 1, f'{torch.ones(()).cuda() / 4:.3f}')\nsys.exit(7)\n")
    result = run(name, "--report", "x", folder=tmp_path)
    assert result.returncode == 7 and result.stderr == ""
    assert result.stdout == "__main__ ['--report', 'x'] True\ntensor([2., 2.], device='cuda:0') 0.250\n"


def test_a_report_does_not_take_the_script_for_its_file(tmp_path):
    name = script(tmp_path, "import sys, torch\ntorch.ones(3, device='cuda').exp()\nprint(sys.argv[1:])\n")
    result = run("--report", "--threads", "1", name, "--report", folder=tmp_path)
    assert result.returncode == 0 and result.stdout == "['--report']\n"
    assert result.stderr.startswith("1 calls predicted in ") and "aten.exp.default" in result.stderr
    assert run("--report=report.json", name, folder=tmp_path).returncode == 0
    assert json.loads((tmp_path / "report.json").read_text())["calls"] == {"aten.exp.default": 1}


@pytest.mark.long
@pytest.mark.parametrize("name, least", [("attention", 8), ("batch_norms", 28), ("layers", 80), ("optimizers", 6), ("pointwise", 378), ("program_gpt", 175),
                                         ("orders", 270), ("gradients", 199), ("encoder_layers", 12)])
def test_recorded_calls_have_the_recorded_results(golden, name, least):
    result = run("calls_of_recordings.py", str(golden / "operators" / f"{name}.safetensors"), folder=Path(__file__).parent)
    counts = json.loads(result.stdout.splitlines()[-1])
    assert result.returncode == 0 and counts["equal"] >= least and counts.keys() <= {"equal", "Unmodelled"}, result.stdout + result.stderr


LOADER = """
import torch
torch.manual_seed(0)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, i):
        return torch.randn(3) + i


if __name__ == "__main__":
    for x in torch.utils.data.DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, pin_memory=DEVICE == "cuda"):
        print(x.to(DEVICE).exp().cpu().sum(1).int().tolist(), x.tolist())
"""


def test_workers_of_a_loader_give_what_they_give_without_a_gpu(tmp_path):
    on_gpu = run(script(tmp_path, LOADER.replace("DEVICE", "'cuda'")), folder=tmp_path)
    assert on_gpu.returncode == 0 and on_gpu.stdout, on_gpu.stderr
    plain = subprocess.run([sys.executable, script(tmp_path, LOADER.replace("DEVICE", "'cpu'"))], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert on_gpu.stdout == plain.stdout


def test_methods_of_tensors_are_not_hidden(tmp_path):
    name = script(tmp_path, "import torch\nx = torch.arange(3.0, device='cuda')\ny = torch.Generator(device='cuda')\nprint(x.inner(x).item(), y.device)\n")
    result = run(name, folder=tmp_path)
    assert result.returncode == 0 and result.stdout == "5.0 cuda:0\n", result.stderr


COMPOSED = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(6, 8), torch.rand(6, 8)
image = torch.randn(2, 4, 6, 6)
index = torch.tensor([4, 0, 2])


def of(device, f, *tensors):
    tensors = [t.to(device).requires_grad_(t.is_floating_point()) for t in tensors]
    result = f(*tensors)
    result.sum().backward() if result.requires_grad else None
    return [t.detach().cpu() for t in (result, *(t.grad for t in tensors if t.grad is not None))]


def bce(p, t):
    return F.binary_cross_entropy(p, t, reduction="none")


for name, f, tensors in (
    ("prelu", lambda a, w: F.prelu(a, w), (x, torch.rand(8))), ("prelu", lambda a, w: F.prelu(a, w), (x.half(), torch.rand(8).half())),
    ("celu gradient", lambda a: F.celu(a, 1.0).clamp(min=0), (x,)), ("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), (image,)),
    ("pad", lambda a: F.pad(a.detach(), (1, 2), mode="reflect"), (x,)), ("pad", lambda a: F.pad(a.detach(), (1, 2, 1, 1), mode="replicate"), (image,)),
    ("unfold", lambda a: F.unfold(a.detach(), 3), (image,)), ("max pool", lambda a: F.adaptive_max_pool2d(a.detach(), 2), (image,)),
    ("median", lambda a: a.detach().median(), (x,)), ("count", lambda a: (a.detach() > 0).count_nonzero(1), (x,)),
    ("isin", lambda a: torch.isin(a.detach(), a.detach()[0]), (x,)), ("extremes", lambda a: torch.stack(a.detach().aminmax()), (x,)),
    ("greatest", lambda a: torch.zeros(8, 8, device=a.device).scatter_reduce(0, (a.detach() > 0).long(), a.detach(), "amax"), (x,)),
    ("histogram", lambda a: torch.histc((a.detach() * 2).round(), 9, -4, 4), (x,)),
    ("cumsum", lambda a: (a.detach() > 0).cumsum(1, dtype=torch.int32), (x,)),
    ("relu of integers", lambda a: (a.detach() * 4).long().relu(), (x,)),
    ("ldexp", lambda a: torch.ldexp(a.detach(), torch.arange(8, device=a.device) - 3), (x,)),
    ("ldexp", lambda a: torch.ldexp(a.detach(), torch.arange(8, device=a.device) - 3), (x.bfloat16(),)),
    ("index_add", lambda a, b: a.index_add(0, index.to(a.device), b), (x, y[:3])),
    ("picked twice", lambda a: a[torch.tensor([1, 1, 5], device=a.device)] * 3, (x,)),
):
    print(name, all(map(torch.equal, of("cpu", f, *tensors), of("cuda", f, *tensors))))
p, t = y.cuda().requires_grad_(), (x > 0).float()
bce(p, t.cuda()).sum().backward()
wide = y.double().requires_grad_()
bce(wide, t.double()).sum().backward()
print("binary_cross_entropy", float(((p.grad.cpu().double() - wide.grad) / wide.grad).abs().max()) < 4 * 2.0**-24)
norm = torch.nn.BatchNorm1d(8).cuda()
norm(x.cuda()).square().sum().backward()
print("gradients of a norm alone", norm.weight.grad.shape == norm.bias.grad.shape == (8,))
print(tuple(F.logsigmoid(x.cuda().requires_grad_()).shape), F.embedding_bag(index[None].cuda(), x.cuda(), mode="mean").shape == (1, 8))
print(torch.allclose(x.cuda()[:, :6].trace().cpu(), x[:, :6].trace()), isinstance(torch.nn.Linear(1, 1), torch.nn.DataParallel))
try:
    x.cuda().numpy()
except TypeError as error:
    print(str(error)[:14])
"""


def test_operators_that_others_compute_are_predicted(tmp_path):
    result = run(script(tmp_path, COMPOSED), folder=tmp_path)
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stderr
    assert [line for line in lines[:-3] if not line.endswith(" True")] == [] and len(lines) == 25
    assert lines[-3:] == ["(6, 8) True", "True False", "can't convert "]


UNFIT = """
import torch
import torch.nn.functional as F

a, b, image = (torch.zeros(*shape, device="cuda") for shape in ((9, 40), (40, 24), (1, 3, 8, 8)))
for call in (
    lambda: a @ a, lambda: torch.addmm(torch.zeros(5, device="cuda"), a, b), lambda: a + torch.zeros(7, device="cuda"), lambda: torch.cat([a, b]),
    lambda: torch.bmm(a[None], a[None]), lambda: F.linear(a, b), lambda: F.conv2d(image, torch.zeros(4, 2, 3, 3, device="cuda")),
    lambda: F.layer_norm(a, (7,)), lambda: torch.baddbmm(a, a[None], b[None]),
):
    try:
        call()
        print("no error")
    except RuntimeError as error:
        print(error)
"""


def test_shapes_that_do_not_fit_are_errors_of_the_script(tmp_path):
    result = run(script(tmp_path, UNFIT), folder=tmp_path)
    on_cpu = subprocess.run([sys.executable, "-c", UNFIT.replace("cuda", "cpu")], capture_output=True, text=True, check=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == on_cpu.stdout and "no error" not in result.stdout


@pytest.mark.parametrize("body, what", [
    ("torch.zeros(3, device='cuda').index_add_(0, torch.tensor([1, 1], device='cuda'), torch.ones(2, device='cuda'))", "aten.index_add_.default"),
    ("torch.zeros(3, dtype=torch.complex64, device='cuda').exp()", "aten.exp.default"), ("torch.nn.DataParallel(torch.nn.Linear(1, 1))", "torch.nn.DataParallel"),
    ("torch.rand(3, 3, device='cuda').mode(0)", "aten.mode.default"),
    ("q, k = (torch.ones(1, 1, n, 64, dtype=torch.half, device='cuda') for n in (1, 600))\n"
     "torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=torch.ones(1, 600, dtype=torch.bool, device='cuda'))",
     "aten._scaled_dot_product_cudnn_attention.default"),
    ("x = torch.ones(1, 1, 4, 4, dtype=torch.float64, device='cuda')\ntorch.nn.functional.conv2d(x, x)", "aten.convolution.default"),
    ("x = torch.ones(4, 4, device='cuda', requires_grad=True)\ntorch.linalg.inv(x)", "aten.linalg_inv_ex.default"),
    ("torch.arange(4, device='cuda').logsumexp(0)", "aten.logsumexp.default"),
    ("torch.compile(lambda x: x)", "torch.compile"),
])
def test_what_has_no_model_ends_the_run_by_name_and_line(tmp_path, body, what):
    name = script(tmp_path, f"import torch\ntry:\n    pass\nexcept Exception:\n    pass\n{body}\nprint('not reached')\n")
    result = run(name, folder=tmp_path)
    line = 5 + len(body.splitlines())
    assert result.returncode == 3 and result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith(f"guardbit.torch: script:{line}: {what} has no model: ")


def test_pytorch_computes_what_has_no_model_where_asked(tmp_path):
    name = script(tmp_path, "import torch\nx = torch.ones(3, device='cuda')\nprint(torch.igamma(x, x - x).tolist())\n")
    result = run(name, folder=tmp_path, options=("--unmodelled=torch",))
    assert result.returncode == 0 and result.stdout == "[0.0, 0.0, 0.0]\n"
    assert "not predicted, computed by PyTorch: aten.igamma.default; 1 tensors that depend on them went to the CPU" in result.stderr


def test_a_gradient_of_a_product_is_that_of_the_program_or_of_the_recording(tmp_path):
    name = script(tmp_path, "import torch\nx = (torch.rand(4, 5, device='cuda') + 1).requires_grad_()\nx.prod(1).sum().backward()\nprint(x.grad.sum().item())\n")
    predicted = run(name, folder=tmp_path, options=("--record", "run.safetensors"))
    assert predicted.returncode == 0, predicted.stderr
    again = run(name, folder=tmp_path, options=("--against", "run.safetensors"))
    assert (again.returncode, again.stdout) == (0, predicted.stdout), again.stderr
    # A recorder on a GPU sees products of all other elements, no quotient.
    data = (tmp_path / "run.safetensors").read_bytes()
    (tmp_path / "gpu.safetensors").write_bytes(data.replace(b'"predicted"', b'"any_other"'))
    of_gpu = run(name, folder=tmp_path, options=("--against", "gpu.safetensors"))
    assert of_gpu.returncode == 1 and "aten.div.Tensor in gpu.safetensors" in of_gpu.stderr


def test_guesses_are_not_taken_unasked(tmp_path):
    name = script(tmp_path, "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
                            "torch.ones(88, 5504, device='cuda') @ torch.ones(2048, 5504, device='cuda').T\n")
    result = run(name, folder=tmp_path, options=())
    operands = "self float32 [88, 5504], mat2 float32 [5504, 2048] of strides [1, 5504]"
    told = f"script:3: aten.mm.default has no model: the library's plan for this shape is not known; {operands}"
    assert result.returncode == 3 and result.stderr.splitlines()[-1].endswith(told)
    # Of calls that nothing is known of no share agrees.
    assert run(name, folder=tmp_path, options=("--guesses", "1")).returncode == 3
    assert run(name, folder=tmp_path, options=("--guesses", "0")).returncode == 0
    assert "is not stop, take or a number from 0 to 1" in run(name, folder=tmp_path, options=("--guesses", "7")).stderr


def test_results_of_convolutions_lie_as_their_operands(tmp_path):
    name = script(tmp_path, "import torch\nx = torch.randn(2, 16, 6, 6, device='cuda').half()\nw = torch.randn(8, 16, 3, 3, device='cuda').half()\n"
                            "print(torch.nn.functional.conv2d(x, w).stride())\nx = x.to(memory_format=torch.channels_last)\n"
                            "print(torch.nn.functional.conv2d(x, w).stride())\n")
    result = run(name, folder=tmp_path)
    assert result.returncode == 0 and result.stdout == "(128, 16, 4, 1)\n(128, 1, 32, 8)\n", result.stderr


def test_usage(tmp_path):
    assert run("absent", folder=tmp_path).returncode == 2
    result = subprocess.run([sys.executable, "-m", "guardbit.torch", "--machine", "b200", "x"], capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "h200" in result.stderr


@pytest.mark.parametrize("options, told", [
    (("--book", "absent"), "absent: no such file"), (("--book", "."), ".: is a folder"), (("--book", "script"), "script: "),
    (("--threads", "-3"), "--threads -3: is 0 (all) or more"), (("--report=absent/report",), "--report=absent/report: cannot be written"),
])
def test_bad_options_are_refused_before_the_script_runs(tmp_path, options, told):
    name = script(tmp_path, "print('ran')\n")
    result = run(name, options=options, folder=tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"guardbit.torch: {told}") and result.stderr.count("\n") == 1


def test_a_tensor_of_inference_mode_leaves_the_gpu_outside_of_it(tmp_path):
    name = script(tmp_path, "import torch\nwith torch.inference_mode():\n    x = torch.arange(4, device='cuda').half() + 1\n"
                            "y = x.cpu()\nprint(y.device, y.contiguous().reshape(-1).view(torch.uint8).numpy().tolist(), x[1:].tolist())\n")
    result = run(name, options=(), folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "cpu [0, 60, 0, 64, 0, 66, 0, 68] [2.0, 3.0, 4.0]\n"


def test_another_workspace_is_no_rule(tmp_path):
    text = "import os, torch\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = '{}'\nx = torch.ones(64, 64, device='cuda').bfloat16()\nprint((x @ x).float().sum().item())\n"
    usual = run(script(tmp_path, text.format(":4096:8")), options=(), folder=tmp_path)
    assert (usual.returncode, usual.stdout) == (0, "262144.0\n"), usual.stderr
    other = run(script(tmp_path, text.format(":16:8")), options=(), folder=tmp_path)
    assert other.returncode == 3 and "aten.mm.default" in other.stderr

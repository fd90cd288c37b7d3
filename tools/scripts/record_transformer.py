#!/usr/bin/env python3
"""Trains a small transformer on the Python library's own source text, in FP16 under a loss scaler, and records what its
gradients are: python3 record_transformer.py FOLDER (needs PyTorch, safetensors and a GPU; about three minutes).

At each captured step the gradients of the very same weights and batch are taken again, in FP32 (the truth) and in FP16
under several loss scales, before unscaling. Of each gradient that the FP16 passes store, the FP32 number that the store
rounded is taken as well: what loses it is then that one rounding, and can be told beforehand to the last element.
FOLDER gets evenly spaced samples of the tensors, steps in the names,
  transformer_fp32.safetensors     gradients of the FP32 pass, and some weights and updates
  transformer_stores.safetensors   what the FP16 passes rounded, under each scale (scale_0 is 2^0)
  transformer_fp16.safetensors     what they stored
and counts of whole tensors
  transformer_counts.json   what became zero in FP16 under each scale, what the stores' FP32 numbers promise, what
                            PyTorch's own casts of the FP32 gradients make of them; the scaler's log

record_transformer.py --check COUNTS TRACE… compares the counts with what 'guardbit trace --json' said of the files that
--whole wrote.
"""

import argparse
import glob
import json
import os
import sys
import sysconfig

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

CONTEXT, BATCH, STEPS = 256, 32, 1200
CAPTURED = (40, 1199)
SCALES = (0, 8, 16)  # log2, beside the scaler's own
CASTS = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
CAST_SCALES = range(0, 33, 4)
STORED = ("0", "8", "scaler")  # scales under which samples of the stores are kept
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # the CPU to try the script out

taps = None  # gradients of tensors inside the model, while they are recorded


def tap(name, tensor):
    """The tensor; its gradient is kept under the name."""
    if taps is not None:
        tensor.register_hook(lambda gradient: taps.__setitem__(name, gradient.detach().clone()))
    return tensor


class Block(torch.nn.Module):
    """Attention is computed in FP32 from FP16 queries, keys and values, so that each FP16 store of its gradients is a
    cast that can be seen; `half_attention` leaves it to the FP16 kernel, which rounds inside."""

    half_attention = False

    def __init__(self, name, width, heads):
        super().__init__()
        self.name, self.heads = name, heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(width, 2))
        if Block.half_attention:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            q, k, v = (tap(f"{self.name}.{part}", y.float()) for part, y in zip("qkv", (q, k, v)))
            with torch.autocast(DEVICE, enabled=False):
                mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = tap(self.name + ".out", x + self.out(mixed.transpose(1, 2).reshape(n, t, width)))
        return tap(self.name + ".down", x + self.down(F.gelu(self.up(self.norm2(x)))))


class Transformer(torch.nn.Module):
    def __init__(self, width=384, layers=6, heads=6):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(256, width), torch.nn.Embedding(CONTEXT, width)
        self.b = torch.nn.ModuleList(Block(f"b.{i}", width, heads) for i in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 256)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.b:
            x = block(x)
        return self.head(self.norm(x))


def text():
    """The bytes of the standard library's modules, tests left out, in the order of their names."""
    folder = sysconfig.get_paths()["stdlib"]
    files = [f for f in sorted(glob.glob(folder + "/**/*.py", recursive=True)) if "/test" not in f and "-packages" not in f]
    return torch.tensor(list(b"".join(open(f, "rb").read() for f in files)[: 16 << 20]), dtype=torch.uint8).to(DEVICE).long()


def same_bits(x, y):
    """How many FP16 numbers differ."""
    return int((x.half().view(torch.int16) != y.half().view(torch.int16)).sum())


def product(a, b):
    """The FP32 sums of a product of FP16 matrices."""
    if DEVICE == "cpu":
        return a.float() @ b.float()
    return torch.mm(a, b, out_dtype=torch.float32)


class Recorder:
    """Gradients of the linear layers' outputs, inputs and parameters, as they are before unscaling."""

    def __init__(self, model):
        self.model, self.outputs, self.inputs, self.seen = model, {}, {}, {}
        self.linears = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
        for name, module in self.linears.items():
            module.register_full_backward_hook(self.backward_hook(name))
            module.register_forward_hook(self.forward_hook(name))

    def backward_hook(self, name):
        def keep(_module, inputs, outputs):
            self.outputs[name + ".gout"] = outputs[0].detach().clone()
            self.inputs[name + ".gin"] = inputs[0].detach().clone()

        return keep

    def forward_hook(self, name):
        def keep(_module, inputs, output):
            self.seen[name] = (inputs[0].detach(), output.detach())

        return keep

    def gradients(self, tokens, half, scale, half_attention=False):
        """By name; and for a pass in FP16 what each was rounded from, and how that was seen."""
        global taps
        self.model.zero_grad(set_to_none=True)
        taps, Block.half_attention = {}, half_attention
        with torch.autocast(DEVICE, torch.float16, enabled=half):
            loss = loss_of(self.model, tokens)
        (loss * scale).backward()
        found = dict(self.outputs)
        for name, parameter in self.model.named_parameters():
            if name.endswith("weight") and "norm" not in name:
                found[name + ".wgrad"] = parameter.grad.detach().clone()
        stores = self.stores() if half and not half_attention else {}
        self.model.zero_grad(set_to_none=True)
        taps, Block.half_attention = None, False
        return found, stores

    def stores(self):
        """name -> (FP32 numbers, the FP16 numbers that were stored for them, how the former were seen)"""
        found = {}
        for name, module in self.linears.items():
            g = self.outputs[name + ".gout"].half()
            block, part = name.rpartition(".")[::2]
            if name == "head":
                found[name + ".gout"] = taps["logits"], g, "cast"
            elif part in ("out", "down"):  # an FP16 summand of an FP32 sum
                found[name + ".gout"] = taps[name], g, "cast"
            elif part == "qkv":
                n, t = g.shape[:2]
                parts = [taps[f"{block}.{p}"].transpose(1, 2).reshape(n, t, -1) for p in "qkv"]
                found[name + ".gout"] = torch.cat(parts, 2), g, "cast"
            else:
                before = self.inputs[block + ".down.gin"].float()
                gelu = torch.ops.aten.gelu_backward(before, self.seen[name][1].float(), approximate="none")
                found[name + ".gout"] = gelu, g, "same kernel in FP32"
            rows, a = g.flatten(0, -2), self.seen[name][0].half().flatten(0, -2)
            stored = self.inputs[name + ".gin"].half().flatten(0, -2)
            found[name + ".gin"] = product(rows, module.weight.detach().half()), stored, "product"
            found[name + ".weight.wgrad"] = product(rows.t(), a), module.weight.grad.half(), "product"
            found[name + ".bias.wgrad"] = rows.sum(0, dtype=torch.float32), module.bias.grad.half(), "sum"
        return found


def loss_of(model, tokens):
    logits = tap("logits", model(tokens[:, :-1]).float())
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def sample(tensor, count=2560):
    flat = tensor.flatten()
    return flat[:: max(1, flat.numel() // count)][:count].contiguous().cpu()


def is_sampled(name):
    return not name.startswith(("b.1.", "b.2.", "b.4.", "place"))


def casts(truth):
    """Of the numbers other than zero: how many each cast makes zero, how many finite ones it makes non-finite."""
    rows = {}
    for name, dtype in CASTS.items():
        rows[name] = {"underflow": {}, "overflow": {}}
        for k in CAST_SCALES:
            scaled = truth * torch.tensor(2.0**k, device=truth.device)
            stored = scaled.to(dtype).float()
            rows[name]["underflow"][k] = int(((stored == 0) & (truth != 0)).sum())
            rows[name]["overflow"][k] = int((~stored.isfinite() & truth.isfinite()).sum())
    return rows


def counts_of_store(rounded, stored):
    """Of the FP32 numbers that a store rounds: what their rounding promises, and what happened."""
    promised, is_number = rounded.half(), rounded.isfinite()
    return {
        "elements": rounded.numel(),
        "underflow": int(((promised == 0) & (rounded != 0)).sum()),
        "happened": int(((stored == 0) & (rounded != 0)).sum()),
        "overflow": int((~promised.isfinite() & is_number).sum()),
        "happened_overflow": int((~stored.isfinite() & is_number).sum()),
        "differing": same_bits(rounded, stored)}


class Capture:
    """What the files hold."""

    def __init__(self, whole):
        self.whole = whole  # a folder, or None
        self.truth, self.half, self.rounded, self.tensors, self.stores, self.head = {}, {}, {}, {}, {}, {}

    def take(self, recorder, tokens, step, scales):
        place, is_last = f"step{step:04d}.", step == CAPTURED[-1]
        exact = recorder.gradients(tokens, False, 1.0)[0]
        unscaled = None
        for name, g in exact.items():
            row = {"elements": g.numel(), "zeros": int((g == 0).sum()), "casts": casts(g), "fp16": {}}
            self.tensors[place + name] = row
            if is_sampled(name):
                self.truth[place + name] = sample(g)
                row["sample_casts"] = casts(sample(g).to(DEVICE))
        for key, scale in scales.items():
            seen, stores = recorder.gradients(tokens, True, scale)
            for name, g in exact.items():
                promised = (g * torch.tensor(scale, device=DEVICE)).half()
                self.tensors[place + name]["fp16"][key] = {
                    "scale": scale, "zeros": int((seen[name] == 0).sum()),
                    "nonfinite": int((~seen[name].isfinite()).sum()),
                    "predicted_zeros": int((promised == 0).sum()),
                    "predicted_nonfinite": int((~promised.isfinite()).sum())}
            for name, (rounded, stored, how) in stores.items():
                self.stores.setdefault(place + name, {})[key] = counts_of_store(rounded, stored) | {"seen_by": how}
                if is_last and is_sampled(name) and key in STORED:
                    self.rounded[f"scale_{key}/{place}{name}"] = sample(rounded, 768)
                    self.half[f"scale_{key}/{place}{name}"] = sample(stored, 768)
            logits = stores["head.gout"][0]
            unscaled = logits if unscaled is None else unscaled  # the first scale is 2^0
            self.head[place + key] = int((logits != unscaled * torch.tensor(scale, device=DEVICE)).sum())
            if is_last and self.whole:
                self.write_whole(f"stores_{key}", {place + n: r for n, (r, _, _) in stores.items()})
        seen = recorder.gradients(tokens, True, scales["0"], half_attention=True)[0]
        for name in exact:
            self.tensors[place + name]["half_attention_zeros"] = int((seen[name] == 0).sum())
        if is_last and self.whole:
            self.write_whole("truth", {place + name: g for name, g in exact.items()})

    def write_whole(self, name, tensors):
        os.makedirs(self.whole, exist_ok=True)
        save_file({n: t.contiguous().cpu() for n, t in tensors.items()}, os.path.join(self.whole, name + ".safetensors"))


def check(counts, traces):
    """Compares with what 'guardbit trace --json' counted in whole tensors; the trace's file says what they are."""
    with open(counts) as file:
        recorded = json.load(file)
    compared = wrong = 0
    for path in traces:
        with open(path) as file:
            tensors = json.load(file)["tensors"]
        for tensor in tensors:
            key = os.path.basename(tensor["file"]).removeprefix("stores_").removesuffix(".safetensors")
            if key == "truth":
                expected = recorded["tensors"][tensor["name"]]["casts"]
            else:
                store = recorded["stores"][tensor["name"]][key]
                expected = {"fp16": {"underflow": {"0": store["happened"]}, "overflow": {"0": store["happened_overflow"]}}}
            for name, outcomes in expected.items():
                for outcome, by_scale in outcomes.items():
                    for scale, count in by_scale.items():
                        compared += 1
                        said = tensor["formats"][name][outcome][scale]
                        if said != count:
                            wrong += 1
                            if wrong <= 20:
                                print(tensor["name"], name, outcome, "at 2^" + scale, "said", said, "happened", count)
    print(compared, "counts compared,", wrong, "differ")
    return wrong != 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--whole", metavar="FOLDER", help="also write whole tensors of the last captured step")
    parser.add_argument("--check", nargs="+", metavar="FILE", help="compare counts with guardbit's")
    parser.add_argument("--try-out", action="store_true", help="a small model and few steps")
    arguments = parser.parse_args()
    if not arguments.check and not arguments.folder:
        parser.error("a folder is needed")
    return arguments


def main():
    global CONTEXT, BATCH, STEPS, CAPTURED
    arguments = parse_arguments()
    if arguments.check:
        sys.exit(check(arguments.check[0], arguments.check[1:]))
    shape = {}
    if arguments.try_out:
        CONTEXT, BATCH, STEPS, CAPTURED, shape = 32, 4, 6, (1, 5), {"width": 64, "layers": 6, "heads": 2}
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    # So that each product is an FP32 sum, rounded once.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    corpus, model = text(), Transformer(**shape).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-4)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**24, growth_interval=150)
    recorder, random = Recorder(model), torch.Generator().manual_seed(1)
    capture, log = Capture(arguments.whole), []
    for step in range(STEPS):
        starts = torch.randint(len(corpus) - CONTEXT - 1, (BATCH, 1), generator=random).to(DEVICE)
        tokens = corpus[starts + torch.arange(CONTEXT + 1, device=DEVICE)]
        if step in CAPTURED:
            scales = {str(k): 2.0**k for k in SCALES} | {"scaler": scaler.get_scale()}
            capture.take(recorder, tokens, step, scales)
            print("captured", step, "scale", scales["scaler"], flush=True)
        with torch.autocast(DEVICE, torch.float16):
            loss = loss_of(model, tokens)
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        weights = {n: p.detach().clone() for n, p in model.named_parameters()} if step == CAPTURED[-1] else {}
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        log.append([step, round(loss.item(), 5), before, scaler.get_scale() < before, scaler.get_scale()])
        for name, old in weights.items():
            if is_sampled(name) and name.endswith("weight") and "norm" not in name:
                new = dict(model.named_parameters())[name].detach()
                capture.truth[f"step{step:04d}.{name}"] = sample(old, 1024)
                capture.truth[f"step{step:04d}.{name}.update"] = sample(new - old, 1024)
    parameters = sum(p.numel() for p in model.parameters())
    print("parameters", parameters, "loss", log[0][1], log[-1][1], flush=True)
    differing = sum(row["differing"] for rows in capture.stores.values() for row in rows.values())
    print("stores whose FP32 numbers round to other FP16 numbers:", differing, flush=True)
    folder = arguments.folder
    os.makedirs(folder, exist_ok=True)
    save_file(capture.truth, os.path.join(folder, "transformer_fp32.safetensors"))
    save_file(capture.rounded, os.path.join(folder, "transformer_stores.safetensors"))
    save_file(capture.half, os.path.join(folder, "transformer_fp16.safetensors"))
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    about = {"torch": torch.__version__, "device": device, "corpus_bytes": len(corpus), "parameters": parameters,
             "tensors": capture.tensors, "stores": capture.stores, "unscaled_logits_times_scale_differing": capture.head,
             "log": {"columns": ["step", "loss", "scale", "overflow", "scale_after"], "rows": log}}
    with open(os.path.join(folder, "transformer_counts.json"), "w") as file:
        json.dump(about, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()

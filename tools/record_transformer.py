#!/usr/bin/env python3
"""Trains a small transformer on the Python library's own source text, in FP16 under a loss scaler, and records what its
gradients are: python3 record_transformer.py FOLDER (needs PyTorch, safetensors and a GPU; about two minutes).

At each captured step the gradients of the very same weights and batch are taken again, in FP32 (the truth) and in FP16
under several loss scales, before unscaling. FOLDER gets
  transformer_fp32.safetensors, transformer_fp16.safetensors   evenly spaced samples of the tensors, steps in the names
  transformer_counts.json   counts of whole tensors: what became zero in FP16 under each scale, and what PyTorch's own
                            casts of the FP32 gradients make of them; the scaler's log
"""

import argparse
import glob
import json
import os
import sysconfig

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

CONTEXT, BATCH, STEPS = 256, 32, 1200
CAPTURED = (40, 1199)
SCALES = (0, 8, 16)  # log2, beside the scaler's own
CASTS = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
CAST_SCALES = range(0, 33, 4)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(width, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(torch.nn.Module):
    def __init__(self, width=384, layers=6, heads=6):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(256, width), torch.nn.Embedding(CONTEXT, width)
        self.b = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
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
    return torch.tensor(list(b"".join(open(f, "rb").read() for f in files)[: 16 << 20]), dtype=torch.uint8).cuda().long()


class Recorder:
    """Gradients of the linear layers' outputs and of the weights, as they are before unscaling."""

    def __init__(self, model):
        self.model, self.outputs = model, {}
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear):
                module.register_full_backward_hook(self.hook(name))

    def hook(self, name):
        def keep(_module, _inputs, outputs):
            self.outputs[name + ".gout"] = outputs[0].detach().clone()

        return keep

    def gradients(self, tokens, half, scale):
        self.model.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16, enabled=half):
            loss = loss_of(self.model, tokens)
        (loss * scale).backward()
        found = dict(self.outputs)
        for name, parameter in self.model.named_parameters():
            if name.endswith("weight") and "norm" not in name:
                found[name + ".wgrad"] = parameter.grad.detach().clone()
        self.model.zero_grad(set_to_none=True)
        return found


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())


def sample(tensor, count=3584):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--whole", metavar="FILE", help="also write the FP32 tensors of the last captured step, whole")
    arguments = parser.parse_args()
    folder, whole = arguments.folder, arguments.whole
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    corpus, model = text(), Transformer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 6e-4)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**24, growth_interval=150)
    recorder, random = Recorder(model), torch.Generator().manual_seed(1)
    truth, half, log, tensors = {}, {}, [], {}
    for step in range(STEPS):
        starts = torch.randint(len(corpus) - CONTEXT - 1, (BATCH, 1), generator=random).cuda()
        tokens = corpus[starts + torch.arange(CONTEXT + 1, device="cuda")]
        if step in CAPTURED:
            exact = recorder.gradients(tokens, False, 1.0)
            scales = {str(k): 2.0**k for k in SCALES} | {"scaler": scaler.get_scale()}
            observed = {key: recorder.gradients(tokens, True, s) for key, s in scales.items()}
            for name, g in exact.items():
                row = {"elements": g.numel(), "zeros": int((g == 0).sum()), "casts": casts(g), "fp16": {}}
                for key, s in scales.items():
                    seen, predicted = observed[key][name], (g * torch.tensor(s, device="cuda")).half()
                    row["fp16"][key] = {
                        "scale": s, "zeros": int((seen == 0).sum()), "nonfinite": int((~seen.isfinite()).sum()),
                        "predicted_zeros": int((predicted == 0).sum()),
                        "predicted_nonfinite": int((~predicted.isfinite()).sum())}
                tensors[f"step{step:04d}.{name}"] = row
                if is_sampled(name):
                    truth[f"step{step:04d}.{name}"] = sample(g)
                    row["sample_casts"] = casts(sample(g).cuda())
                    for key in ("0", "scaler"):
                        half[f"scale_{key}/step{step:04d}.{name}"] = sample(observed[key][name]).half()
            print("captured", step, "scale", scales["scaler"], flush=True)
            if whole and step == CAPTURED[-1]:
                save_file({f"step{step:04d}.{n}": g.contiguous().cpu() for n, g in exact.items()}, whole)
        with torch.autocast("cuda", torch.float16):
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
                truth[f"step{step:04d}.{name}"] = sample(old, 1024)
                truth[f"step{step:04d}.{name}.update"] = sample(new - old, 1024)
    print("parameters", sum(p.numel() for p in model.parameters()), "loss", log[0][1], log[-1][1], flush=True)
    os.makedirs(folder, exist_ok=True)
    save_file(truth, os.path.join(folder, "transformer_fp32.safetensors"))
    save_file(half, os.path.join(folder, "transformer_fp16.safetensors"))
    about = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "corpus_bytes": len(corpus),
             "parameters": sum(p.numel() for p in model.parameters()), "tensors": tensors,
             "log": {"columns": ["step", "loss", "scale", "overflow", "scale_after"], "rows": log}}
    with open(os.path.join(folder, "transformer_counts.json"), "w") as file:
        json.dump(about, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()

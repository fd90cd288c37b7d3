"""Models of many kinds, trained for some steps or used: models.py MODEL [OPTIONS]. --help lists them."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from whole import DEVICE, GPT, Llama, ViT, cross_entropy

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def optimizer_of(name, parameters, rate):
    adam = {"lr": rate, "weight_decay": 0.1, "betas": (0.9, 0.95)}
    return {
        "adamw": lambda: torch.optim.AdamW(parameters, **adam),
        "adamw_fused": lambda: torch.optim.AdamW(parameters, fused=True, **adam),
        "adamw_single": lambda: torch.optim.AdamW(parameters, foreach=False, **adam),
        "adam": lambda: torch.optim.Adam(parameters, lr=rate),
        "adam_fused": lambda: torch.optim.Adam(parameters, lr=rate, fused=True, amsgrad=True),
        "sgd": lambda: torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4, nesterov=True),
        "sgd_fused": lambda: torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4, fused=True),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=rate),
        "adagrad": lambda: torch.optim.Adagrad(parameters, lr=rate),
        "adafactor": lambda: torch.optim.Adafactor(parameters, lr=rate),
        "nadam": lambda: torch.optim.NAdam(parameters, lr=rate),
        "lion_like": lambda: torch.optim.Adamax(parameters, lr=rate),
        "muon": lambda: torch.optim.Muon([p for p in parameters if p.ndim == 2], lr=rate),
    }[name]()


def train(model, batches, loss_of, o):
    """`batches`: a list of (inputs, targets) on the device, `o.accumulate` of them a step."""
    dtype = DTYPES[o.dtype]
    model = model.to(DEVICE).train()
    if o.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(o.optimizer, list(model.parameters()), o.rate)
    scaler = torch.amp.GradScaler(DEVICE, enabled=dtype == torch.float16)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for i, (x, y) in enumerate(batches):
        with torch.autocast(DEVICE, dtype=dtype, enabled=dtype != torch.float32):
            loss = loss_of(model(x), y) / o.accumulate
        scaler.scale(loss).backward()
        if (i + 1) % o.accumulate == 0:
            if o.clip:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), o.clip)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            optimizer.zero_grad()
        print(loss.item())


def loss_with(o):
    return lambda x, y: F.cross_entropy(x.flatten(0, -2).float(), y.flatten(), label_smoothing=o.smoothing)


def images(o, classes=10):
    steps = o.steps * o.accumulate
    x = [torch.randn(o.batch, 3, o.image, o.image, device=DEVICE) for _ in range(steps)]
    if o.channels_last:
        x = [y.contiguous(memory_format=torch.channels_last) for y in x]
    return [(y, torch.randint(classes, (o.batch,), device=DEVICE)) for y in x]


def texts(o, words):
    shape = (o.steps * o.accumulate, o.batch, o.length + 1)
    return [(x[:, :-1].contiguous(), x[:, 1:].contiguous()) for x in torch.randint(words, shape).to(DEVICE)]


def gpt(o):
    model = GPT(o.attention, o.words, o.width, o.heads, o.layers, o.length, o.dropout)
    if not o.tied:
        model.head.weight = nn.Parameter(torch.randn(o.words, o.width) * 0.02)
    train(model, texts(o, o.words), loss_with(o), o)


def vit(o):
    class Model(ViT):
        def __init__(self):
            super().__init__(o.attention, o.width, o.heads, o.layers)

    o.image = 32
    train(Model(), images(o), cross_entropy, o)


def llama(o):
    """Training without a cache, or inference with one."""
    model = Llama(o.words, o.width, o.heads, max(1, o.heads // 2), o.layers, o.width * 8 // 3 // 8 * 8)
    if o.training:
        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x):
                model.head, head = nn.Identity(), model.head
                hidden = Llama.forward(model, x, [[] for _ in model.layers])
                model.head = head
                return head(hidden)

        train(Whole(), [(x, y[:, -1:]) for x, y in texts(o, o.words)], loss_with(o), o)
        return
    model = model.to(DEVICE).to(DTYPES[o.dtype]).eval()
    words, caches = torch.randint(o.words, (o.batch, o.length)).to(DEVICE), [[] for _ in model.layers]
    with torch.inference_mode() if not o.no_grad else torch.no_grad():
        for _ in range(o.steps):
            words = model(words, caches).argmax(-1)
            print(words.flatten().tolist())


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride, norm):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), norm(outputs), nn.ReLU(inplace=True),
                                  nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), norm(outputs))
        self.short = nn.Sequential() if stride == 1 and inputs == outputs else \
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def norm_of(name):
    return {"batch": nn.BatchNorm2d, "group": lambda c: nn.GroupNorm(8, c), "none": lambda c: nn.Identity(),
            "instance": lambda c: nn.InstanceNorm2d(c, affine=True)}[name]


def cnn(o):
    w, norm = o.width, norm_of(o.norm)
    train(nn.Sequential(nn.Conv2d(3, w, 3, 1, 1, bias=False), norm(w), nn.ReLU(), Residual(w, w, 1, norm),
                        Residual(w, 2 * w, 2, norm), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(o.dropout),
                        nn.Linear(2 * w, 10)), images(o), cross_entropy, o)


def vgg(o):
    w = o.width
    train(nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(w, 2 * w, 3, padding=1), nn.ReLU(),
                        nn.MaxPool2d(3, 2, 1), nn.Flatten(), nn.Linear(2 * w * (o.image // 4) ** 2, 64), nn.ReLU(),
                        nn.Dropout(o.dropout), nn.Linear(64, 10)), images(o), cross_entropy, o)


class UNet(nn.Module):
    """Down and up once, with group norm, SiLU, an embedding of the time, and interpolation."""

    def __init__(self, w, mode):
        super().__init__()
        self.mode, self.time = mode, nn.Sequential(nn.Linear(32, w), nn.SiLU(), nn.Linear(w, w))
        self.enter, self.down = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, 2 * w, 3, 2, 1)
        self.middle, self.up = nn.Conv2d(2 * w, 2 * w, 3, padding=1), nn.Conv2d(2 * w, w, 3, padding=1)
        self.leave = nn.Conv2d(2 * w, 3, 3, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(8, w), nn.GroupNorm(8, 2 * w), nn.GroupNorm(8, 2 * w)])

    def forward(self, xt):
        x, t = xt
        turns = torch.exp(torch.arange(16, device=x.device) * (-9.21 / 16)) * t[:, None]
        t = self.time(torch.cat([turns.sin(), turns.cos()], -1))[:, :, None, None]
        a = F.silu(self.norms[0](self.enter(x))) + t
        b = F.silu(self.norms[1](self.down(a)))
        b = b + F.silu(self.norms[2](self.middle(b)))
        b = F.interpolate(b, scale_factor=2, mode=self.mode)
        return self.leave(torch.cat([a, self.up(b)], 1))


def unet(o):
    batches = []
    for x, _ in images(o):
        noise, t = torch.randn_like(x), torch.rand(len(x), device=DEVICE)
        batches.append(((x * (1 - t[:, None, None, None]) + noise * t[:, None, None, None], t * 1000), noise))
    train(UNet(o.width, o.mode), batches, F.mse_loss, o)


class Recurrent(nn.Module):
    def __init__(self, kind, words, width):
        super().__init__()
        self.words, self.body = nn.Embedding(words, width), getattr(nn, kind)(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.body(self.words(x))[0])


def lstm(o):
    with torch.backends.cudnn.flags(enabled=False):
        train(Recurrent("LSTM", o.words, o.width), texts(o, o.words), loss_with(o), o)


def gru(o):
    with torch.backends.cudnn.flags(enabled=False):
        train(Recurrent("GRU", o.words, o.width), texts(o, o.words), loss_with(o), o)


class Cell(nn.Module):
    """LSTM written out in a loop."""

    def __init__(self, words, width):
        super().__init__()
        self.words, self.x, self.h = nn.Embedding(words, width), nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        x, found = self.x(self.words(x)), []
        h = c = torch.zeros_like(x[:, 0, : x.shape[2] // 4])
        for t in range(x.shape[1]):
            i, f, g, out = (x[:, t] + self.h(h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = out.sigmoid() * c.tanh()
            found.append(h)
        return self.head(torch.stack(found, 1))


def cell(o):
    train(Cell(o.words, o.width), texts(o, o.words), loss_with(o), o)


class Recommender(nn.Module):
    """Embedding bags of categories, products of pairs, an MLP."""

    def __init__(self, words, width):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(words, width, mode=mode) for mode in ("sum", "mean", "sum"))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 6, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        dense, places = x
        dense = self.bottom(dense)
        found = torch.stack([dense] + [bag(p) for bag, p in zip(self.bags, places)], 1)
        pairs = found @ found.transpose(1, 2)
        i, j = torch.tril_indices(4, 4, -1, device=dense.device)
        return self.top(torch.cat([dense, pairs[:, i, j]], 1)).squeeze(1)


def recommender(o):
    batches = [((torch.randn(o.batch, 13, device=DEVICE), torch.randint(o.words, (3, o.batch, 5), device=DEVICE)),
                torch.randint(2, (o.batch,), device=DEVICE).float()) for _ in range(o.steps)]
    train(Recommender(o.words, o.width), batches, F.binary_cross_entropy_with_logits, o)


def mlp(o):
    w = o.width
    model = nn.Sequential(nn.Linear(30, w), nn.BatchNorm1d(w), nn.ReLU(), nn.Dropout(o.dropout), nn.Linear(w, w), nn.GELU(),
                          nn.LayerNorm(w), nn.Linear(w, w), nn.SiLU(), nn.RMSNorm(w), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, 10))
    batches = [(torch.randn(o.batch, 30, device=DEVICE), torch.randint(10, (o.batch,), device=DEVICE)) for _ in range(o.steps)]
    train(model, batches, cross_entropy, o)


def autoencoder(o):
    w = o.width
    model = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(w, w, 4, 2, 1), nn.ELU(),
                          nn.ConvTranspose2d(w, w, 4, 2, 1), nn.GELU(), nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Sigmoid())
    train(model, [(x, x.sigmoid()) for x, _ in images(o)], F.smooth_l1_loss, o)


class Contrastive(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(64, width), nn.Linear(48, width), nn.Parameter(torch.tensor(2.6))

    def forward(self, xs):
        a, b = F.normalize(self.a(xs[0]), dim=-1), F.normalize(self.b(xs[1]), dim=-1)
        return self.scale.exp() * a @ b.T


def clip(o):
    batches = [((torch.randn(o.batch, 64, device=DEVICE), torch.randn(o.batch, 48, device=DEVICE)),
                torch.arange(o.batch, device=DEVICE)) for _ in range(o.steps)]
    train(Contrastive(o.width), batches, lambda x, y: (F.cross_entropy(x, y) + F.cross_entropy(x.T, y)) / 2, o)


def encoder(o):
    """torch.nn's own transformer, trained, with padding masks."""
    layer = nn.TransformerEncoderLayer(o.width, o.heads, 4 * o.width, o.dropout, batch_first=True, norm_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(o.words, o.width), nn.Linear(o.width, o.words)
            self.body = nn.TransformerEncoder(layer, o.layers, enable_nested_tensor=False)

        def forward(self, x):
            padding = torch.arange(x.shape[1], device=x.device)[None] >= x.shape[1] - 5 * torch.arange(len(x), device=x.device)[:, None]
            return self.head(self.body(self.words(x), src_key_padding_mask=padding))

    train(Model(), texts(o, o.words), loss_with(o), o)


def library(o):
    """A model of the transformers library with random weights."""
    import transformers as t
    common = {"vocab_size": o.words, "hidden_size": o.width, "num_hidden_layers": o.layers, "num_attention_heads": o.heads,
              "intermediate_size": 3 * o.width, "max_position_embeddings": 1024}
    grouped = dict(common, num_key_value_heads=max(1, o.heads // 2), head_dim=o.width // o.heads)
    config = {
        "gpt2": lambda: t.GPT2Config(vocab_size=o.words, n_embd=o.width, n_layer=o.layers, n_head=o.heads, bos_token_id=0, eos_token_id=0),
        "llama": lambda: t.LlamaConfig(**grouped), "qwen3": lambda: t.Qwen3Config(**grouped),
        "mistral": lambda: t.MistralConfig(**grouped), "gemma2": lambda: t.Gemma2Config(**grouped),
        "bert": lambda: t.BertConfig(**common), "opt": lambda: t.OPTConfig(
            vocab_size=o.words, hidden_size=o.width, num_hidden_layers=o.layers, num_attention_heads=o.heads, ffn_dim=3 * o.width, word_embed_proj_dim=o.width),
        "t5": lambda: t.T5Config(vocab_size=o.words, d_model=o.width, d_kv=o.width // o.heads, d_ff=2 * o.width, num_layers=o.layers, num_heads=o.heads,
                                 decoder_start_token_id=0),
        "vit": lambda: t.ViTConfig(hidden_size=o.width, num_hidden_layers=o.layers, num_attention_heads=o.heads, intermediate_size=3 * o.width, image_size=o.image, patch_size=8),
    }[o.name]()
    config._attn_implementation = o.implementation
    kind = {"bert": t.AutoModelForMaskedLM, "t5": t.AutoModelForSeq2SeqLM, "vit": t.AutoModelForImageClassification}.get(o.name, t.AutoModelForCausalLM)
    model = kind.from_config(config)
    if o.training:
        class Loss(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x):
                if o.name == "vit":
                    return self.inner(pixel_values=x).logits
                return self.inner(input_ids=x, labels=x).loss

        batches = images(o, 2) if o.name == "vit" else texts(o, o.words)
        train(Loss(), batches, cross_entropy if o.name == "vit" else lambda loss, _: loss, o)
        return
    model = model.to(DEVICE).to(DTYPES[o.dtype]).eval()
    words = torch.randint(1, o.words, (o.batch, o.length)).to(DEVICE)
    if o.name == "bert":
        with torch.no_grad():
            print(model(words).logits.sum().item())
    else:
        print(model.generate(words, max_new_tokens=o.steps, do_sample=o.sample, pad_token_id=0, eos_token_id=None).tolist())


def vision(o):
    """A model of torchvision with random weights."""
    import torchvision
    more = {"image_size": o.image} if o.name.startswith("vit") else {}
    model = getattr(torchvision.models, o.name)(num_classes=10, **more)
    if o.training:
        train(model, images(o), lambda x, y: cross_entropy(getattr(x, "logits", x), y), o)
        return
    model = model.to(DEVICE).to(DTYPES[o.dtype]).eval()
    with torch.inference_mode():
        for x, _ in images(o):
            print(model(x.to(DTYPES[o.dtype])).sum().item())


MODELS = {f.__name__: f for f in (gpt, vit, llama, cnn, vgg, unet, lstm, gru, cell, recommender, mlp, autoencoder, clip, encoder,
                                  library, vision)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("name", nargs="?", help="of a model of a library")
    for name, value in (("width", 64), ("heads", 4), ("layers", 1), ("length", 80), ("batch", 2), ("words", 96), ("steps", 2),
                        ("accumulate", 1), ("image", 32), ("seed", 1), ("dropout", 0.0), ("clip", 1.0), ("smoothing", 0.0),
                        ("rate", 1e-3)):
        parser.add_argument("--" + name, type=type(value), default=value)
    for name, value in (("dtype", "bf16"), ("attention", "any"), ("optimizer", "adamw"), ("norm", "batch"), ("mode", "nearest"),
                        ("implementation", "sdpa")):
        parser.add_argument("--" + name, default=value)
    for name in ("tied", "channels_last", "training", "tf32", "no_grad", "sample", "deterministic"):
        parser.add_argument("--" + name, action="store_true")
    o = parser.parse_args()
    if o.tf32:
        torch.set_float32_matmul_precision("high")
    if o.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(o.seed)
    MODELS[o.model](o)


if __name__ == "__main__":
    main()

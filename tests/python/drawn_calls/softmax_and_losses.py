"""Softmax and its logarithm; losses."""

import torch
import torch.nn.functional as F

from .number_types import NAMES, bf16, f16, f32, f64, i64


def softmax(call):
    call.operator = call.choice(["softmax", "log_softmax"])
    dtype = call.float_type()
    shape, dim = call.line()
    if call.chance(0.5) and len(shape) > 1:
        shape = (*shape[:dim], *shape[dim + 1:], shape[dim])
        dim = len(shape) - 1
    x = call.tensor(shape, dtype, kind=call.weighted(normal=70, big=12, small=12, wide=6))
    result = None
    if call.chance(0.2):
        result = f32 if dtype in (f16, bf16) or call.chance(0.4) else call.choice([f64, f16, bf16])
    call.note(dim=dim, to=result and NAMES[result])
    function = getattr(F, call.operator)
    call.compute(call.under_autocast(lambda: function(x, dim, dtype=result), 0.04), [x], 0.65)


def loss_of_classes(call, dtype, reduction):
    """nll_loss and cross_entropy."""
    of_logits = call.operator == "cross_entropy"
    form = call.weighted(single=8, rows=62, lines=8, images=16, volumes=6)
    space = {"single": 0, "rows": 0, "lines": 1, "images": 2, "volumes": 3}[form]
    budget = call.budget()
    classes = call.size(min(budget, 70000 if space == 0 else 300), 2)
    count = call.size(max(1, min(20000, budget // classes)))
    rest = call.factors(count, space + 1) if form != "single" else ()
    shape = (rest[0], classes, *rest[1:]) if rest else (classes,)
    x = call.tensor(shape, dtype, kind="normal" if call.chance(0.8) else None,
                    layout=call.choice(["contiguous", "offset"]) if space and not of_logits and call.chance(0.7) else None)
    weight = call.tensor((classes,), dtype, "positive", call.weighted(contiguous=80, offset=20), "w") if call.chance(0.25) else None
    ignored = call.choice([-100, -100, 0, 1])
    if of_logits and call.chance(0.25):
        smoothing = call.choice([0.0, 0.1])
        target = call.tensor(shape, dtype, kind="fraction", name="t")
        call.note(probs=1, smooth=smoothing)
        call.compute(call.under_autocast(lambda: F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing), 0.04),
                     [x, target] if call.chance(0.2) else [x], 0.7)
        return
    target = call.integers(rest, 0, classes, name="t")
    if call.chance(0.2) and ignored == -100 and target.numel() and target.is_contiguous():
        with torch.no_grad():
            target.view(-1)[:1].fill_(-100)
    smoothing = call.choice([0.0, 0.0, 0.1, 0.3]) if of_logits else 0.0
    call.note(ignore=ignored, smooth=smoothing)
    if of_logits:
        call.compute(call.under_autocast(lambda: F.cross_entropy(x, target, weight, ignore_index=ignored, reduction=reduction,
                                                                 label_smoothing=smoothing), 0.05), [x], 0.7)
    else:
        call.compute(lambda: F.nll_loss(x, target, weight, ignore_index=ignored, reduction=reduction), [x], 0.7)


def cosine_embedding(call, dtype, reduction):
    rows, width = call.shape(2, call.budget(2e5))
    lead = () if call.chance(0.1) else (rows,)
    x, y = call.tensor((*lead, width), dtype), call.tensor((*lead, width), dtype, name="y")
    target = call.tensor(lead, dtype, kind="sign", name="t")
    margin = call.choice([0.0, 0.3])
    call.compute(lambda: F.cosine_embedding_loss(x, y, target, margin, reduction=reduction), [x, y])


def triplet_margin(call, dtype, reduction):
    shape = call.shape(2, call.budget(2e5))
    x, y, z = (call.tensor(shape, dtype, name=name) for name in "xyz")
    p, swap, margin = call.choice([2.0, 2.0, 1.0, 3.0, float("inf")]), call.chance(0.3), call.choice([1.0, 0.5, 5.0])
    call.note(p=p, swap=swap)
    call.compute(lambda: F.triplet_margin_loss(x, y, z, margin, p, 1e-6, swap, reduction=reduction), [x, y, z])


def multi_margin(call, dtype, reduction):
    rows, classes = call.shape(2, call.budget(2e5))
    x, target = call.tensor((rows, classes), dtype), call.integers((rows,), 0, classes, name="t")
    p, margin = call.choice([1, 2]), call.choice([1.0, 0.3])
    weight = call.tensor((classes,), dtype, "positive", "contiguous", "w") if call.chance(0.3) else None
    call.note(p=p)
    call.compute(lambda: F.multi_margin_loss(x, target, p, margin, weight, reduction=reduction), [x])


def multilabel_margin(call, dtype, reduction):
    rows, classes = call.shape(2, call.budget(2e5))
    x = call.tensor((rows, classes), dtype)
    labels = torch.full((rows, classes), -1, dtype=i64)
    for row in range(min(rows, 2000)):
        count = call.between(0, min(classes, 4))
        labels[row, :count] = torch.tensor([call.random.getrandbits(16) % classes for _ in range(count)], dtype=i64)
    target = call.placed(labels, name="t")
    call.compute(lambda: F.multilabel_margin_loss(x, target, reduction=reduction), [x])


def multilabel_soft_margin(call, dtype, reduction):
    rows, classes = call.shape(2, call.budget(2e5))
    x, target = call.tensor((rows, classes), dtype), call.integers((rows, classes), 0, 2, dtype, name="t")
    weight = call.tensor((classes,), dtype, "positive", "contiguous", "w") if call.chance(0.3) else None
    call.compute(lambda: F.multilabel_soft_margin_loss(x, target, weight, reduction=reduction), [x])


def shape_of_a_pair(call):
    return call.shape(call.choice([1, 2, 2, 3, 4, 5]))


def loss_of_a_pair(call, dtype, reduction):
    """Losses of an input and a target of the same shape."""
    shape = shape_of_a_pair(call)
    options = {}
    if call.operator == "kl_div":
        options["log_target"] = call.chance(0.4)
        x = call.tensor(shape, dtype, kind="normal")
        target = call.tensor(shape, dtype, kind="normal" if options["log_target"] else "fraction", name="t")
        if reduction == "mean" and call.chance(0.4):
            reduction = "batchmean"
    else:
        x, target = call.tensor(shape, dtype), call.tensor(shape, dtype if call.chance(0.98) else f32, name="t")
    if call.operator == "huber_loss":
        options["delta"] = call.choice([1.0, 0.3, 2.5])
    if call.operator == "smooth_l1_loss":
        options["beta"] = call.choice([1.0, 0.3, 0.0])
    if call.operator == "mse_loss" and call.chance(0.1):
        options["weight"] = call.tensor(shape, dtype, kind="positive", name="w")
    call.note(red=reduction, **{name: "t" if isinstance(value, torch.Tensor) else value for name, value in options.items()})
    function = getattr(F, call.operator)
    call.compute(call.under_autocast(lambda: function(x, target, reduction=reduction, **options), 0.03), [x, target])


def binary_cross_entropy(call, dtype, reduction):
    shape = shape_of_a_pair(call)
    x = call.tensor(shape, dtype, kind="fraction")
    target = call.tensor(shape, dtype, kind="fraction", name="t") if call.chance(0.7) else call.integers(shape, 0, 2, dtype, name="t")
    weight = optional_weight(call, shape, dtype)
    call.compute(lambda: F.binary_cross_entropy(x, target, weight, reduction=reduction), [x])


def bce_with_logits(call, dtype, reduction):
    shape = shape_of_a_pair(call)
    x, target = call.tensor(shape, dtype), call.tensor(shape, dtype, kind="fraction", name="t")
    weight = optional_weight(call, shape, dtype)
    of_positive = call.tensor(shape[-1:], dtype, kind="positive", name="pw") if call.chance(0.25) else None
    call.compute(lambda: F.binary_cross_entropy_with_logits(x, target, weight, pos_weight=of_positive, reduction=reduction), [x])


def optional_weight(call, shape, dtype):
    return call.tensor(shape if call.chance(0.5) else shape[-1:], dtype, kind="positive", name="w") if call.chance(0.25) else None


def gaussian_nll(call, dtype, reduction):
    shape = shape_of_a_pair(call)
    x, target = call.tensor(shape, dtype), call.tensor(shape, dtype, name="t")
    variance = call.tensor(shape if call.chance(0.6) else (*shape[:-1], 1), dtype, kind="positive", name="var")
    full, eps = call.chance(0.4), call.choice([1e-6, 1e-3])
    call.note(full=full)
    call.compute(lambda: F.gaussian_nll_loss(x, target, variance, full, eps, reduction), [x, variance])


def poisson_nll(call, dtype, reduction):
    shape = shape_of_a_pair(call)
    of_logarithms, full = call.chance(0.6), call.chance(0.3)
    x = call.tensor(shape, dtype, kind="normal" if of_logarithms else "positive")
    target = call.integers(shape, 0, 9, dtype, name="t")
    call.note(log=of_logarithms, full=full)
    call.compute(lambda: F.poisson_nll_loss(x, target, log_input=of_logarithms, full=full, reduction=reduction), [x])


def loss_of_signs(call, dtype, reduction):
    """Losses whose target is 1 or -1."""
    shape = shape_of_a_pair(call)
    x, target = call.tensor(shape, dtype), call.tensor(shape, dtype, kind="sign", name="t")
    if call.operator == "margin_ranking":
        y, margin = call.tensor(shape, dtype, name="y"), call.choice([0.0, 0.5])
        call.compute(lambda: F.margin_ranking_loss(x, y, target, margin, reduction=reduction), [x, y])
    elif call.operator == "hinge_embedding":
        margin = call.choice([1.0, 0.5])
        call.compute(lambda: F.hinge_embedding_loss(x, target, margin, reduction=reduction), [x])
    else:
        call.compute(lambda: F.soft_margin_loss(x, target, reduction=reduction), [x])


LOSSES = {
    "nll_loss": loss_of_classes, "cross_entropy": loss_of_classes, "kl_div": loss_of_a_pair, "mse_loss": loss_of_a_pair, "l1_loss": loss_of_a_pair,
    "huber_loss": loss_of_a_pair, "smooth_l1_loss": loss_of_a_pair, "binary_cross_entropy": binary_cross_entropy, "bce_with_logits": bce_with_logits,
    "gaussian_nll": gaussian_nll, "poisson_nll": poisson_nll, "cosine_embedding": cosine_embedding, "triplet_margin": triplet_margin,
    "margin_ranking": loss_of_signs, "hinge_embedding": loss_of_signs, "soft_margin": loss_of_signs, "multilabel_margin": multilabel_margin,
    "multilabel_soft_margin": multilabel_soft_margin, "multi_margin": multi_margin,
}


def loss(call):
    call.operator = call.choice(["nll_loss", "cross_entropy", "cross_entropy", *list(LOSSES)[1:]])
    dtype = call.float_type()
    reduction = call.choice(["mean", "mean", "sum", "none"])
    call.note(red=reduction)
    LOSSES[call.operator](call, dtype, reduction)


def softmax_and_losses(call):
    softmax(call) if call.chance(0.45) else loss(call)

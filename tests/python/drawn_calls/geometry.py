"""Distances, similarities, outer products, and small formulas of several operators."""

import torch
import torch.nn.functional as F

from .number_types import boolean, f32, f64


def outer(call, dtype):
    x, y = call.tensor((call.spread(1, 300),), dtype), call.tensor((call.spread(1, 300),), dtype, name="y")
    if call.operator == "outer":
        call.compute(lambda: torch.outer(x, y), [x, y], 0.4)
    else:
        call.compute(lambda: torch.kron(x[:40], y[:40]), [x, y], 0)


def cdist(call, dtype):
    dtype = call.dtype = call.choice([f32, f32, f64])
    lead = call.shape(call.choice([0, 0, 1]), 4)
    first, second, width = call.spread(1, 60), call.spread(1, 60), call.spread(1, 700)
    p = call.choice([1.0, 2.0, float("inf"), 2.0, 3.0, 0.0, 0.5])
    x, y = call.tensor((*lead, first, width), dtype), call.tensor((*lead, second, width), dtype, name="y")
    call.note(p=p)
    call.compute(lambda: torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), [x, y], 0.4)


def of_a_pair(call, dtype):
    """cosine_similarity and pairwise_distance."""
    rank = call.choice([1, 2, 2, 3])
    shape = call.shape(rank, call.budget(2e5))
    x, y = call.tensor(shape, dtype), call.tensor(call.same_or_broadcast(shape, 0.8), dtype, name="y")
    if call.operator == "cosine_similarity":
        dim = call.between(0, rank - 1)
    else:
        p, keep = call.choice([2.0, 2.0, 1.0, 3.0, float("inf")]), call.chance(0.3)
    if y.dim() != rank:
        y = call.tensor(shape, dtype, name="y")
    if call.operator == "cosine_similarity":
        call.note(dim=dim)
        call.compute(lambda: F.cosine_similarity(x, y, dim), [x, y], 0.5)
    else:
        call.note(p=p)
        call.compute(lambda: F.pairwise_distance(x, y, p, 1e-6, keep), [x, y], 0.5)


def normalize(call, dtype):
    rank = call.choice([1, 2, 3, 4])
    x, dim, p = call.tensor(call.shape(rank, call.budget(2e5)), dtype), call.between(0, rank - 1), call.choice([2.0, 2.0, 1.0, 3.0, float("inf")])
    call.note(dim=dim, p=p)
    call.compute(lambda: F.normalize(x, p, dim), [x], 0.5)


def renorm(call, dtype):
    rank = call.choice([2, 2, 3])
    x, dim = call.tensor(call.shape(rank, call.budget(1e5)), dtype), call.between(0, rank - 1)
    p, greatest = call.choice([1.0, 2.0, 3.0]), call.choice([0.5, 1.0, 10.0])
    call.note(dim=dim, p=p, max=greatest)
    call.compute(lambda: torch.renorm(x, p, dim, greatest), [x], 0.3)


def trace(call, dtype):
    x = call.tensor(call.shape(2, call.budget(1e5)), dtype)
    call.compute(lambda: torch.trace(x), [x], 0.4)


def cross(call, dtype):
    rank = call.choice([1, 2, 3])
    shape = list(call.shape(rank, call.budget(1e5)))
    dim = call.between(0, rank - 1)
    shape[dim] = 3
    x, y = call.tensor(shape, dtype), call.tensor(shape, dtype, name="y")
    call.note(dim=dim)
    call.compute(lambda: torch.linalg.cross(x, y, dim=dim), [x, y], 0.4)


def einsum(call, dtype):
    """Without products of matrices."""
    equation = call.choice(["ij->ji", "ij->i", "ij->j", "ijk->kj", "ijk->", "ijk->jik", "ij,ij->ij", "ijk,ik->ijk", "i,j->ij", "ij,j->ij", "...i->...",
                            "bchw->bhwc", "bchw->c"])
    sizes = {letter: call.spread(1, 30) for letter in "ijkbchw"}
    tensors = [call.tensor(call.shape(3, 3000) if "." in letters else [sizes[letter] for letter in letters], dtype)
               for letters in equation.split("->")[0].split(",")]
    call.note(eq=equation)
    call.compute(lambda: torch.einsum(equation, *tensors), tensors, 0 if "," in equation else 0.4)


def dist(call, dtype):
    shape = call.shape(call.choice([1, 2, 3]), call.budget(1e5))
    x, y, p = call.tensor(shape, dtype), call.tensor(shape, dtype, name="y"), call.choice([2, 1, 3, float("inf"), 0])
    call.note(p=p)
    call.compute(lambda: torch.dist(x, y, p), [x, y], 0.3 if p else 0)


def weight_norm(call, dtype):
    rank = call.choice([2, 3, 4])
    shape = call.shape(rank, call.budget(1e5))
    dim = call.choice([0, rank - 1])
    directions = call.tensor(shape, dtype, kind="normal")
    lengths = call.tensor([n if k == dim else 1 for k, n in enumerate(shape)], dtype, kind="normal", name="g")
    call.note(dim=dim)
    call.compute(lambda: torch._weight_norm(directions, lengths, dim), [directions, lengths], 0.5)


def vander(call, dtype):
    x = call.tensor((call.spread(1, 100),), dtype, kind="unit")
    call.compute(lambda: torch.vander(x, 5, True))


def trapezoid(call, dtype):
    y = call.tensor(call.shape(2, call.budget(2e4)), dtype)
    call.compute(lambda: torch.trapezoid(y, dx=0.1), [y], 0.3)


def standard_deviation(call, dtype):
    x = call.tensor((call.spread(2, 3000),), dtype, kind="normal")
    call.compute(lambda: (x - x.mean()).square().mean().sqrt(), [x], 0.5)


def scaled_softmax(call, dtype):
    shape = call.shape(3, call.budget(5e4))
    x, mask = call.tensor(shape, dtype), call.integers(shape[-2:], 0, 2, boolean, name="m")
    call.compute(lambda: torch.softmax((x * 0.125).masked_fill(mask, -1e4), -1), [x], 0.5)


def scaled_features(call, dtype):
    shape = call.shape(4, call.budget(5e4))
    x, scale, shift = call.tensor(shape, dtype), call.tensor((shape[1],), dtype, name="a"), call.tensor((shape[1],), dtype, name="b")
    call.compute(lambda: x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1), [x, scale, shift], 0.6)


def batch_norm(call, dtype):
    """In inference."""
    shape = call.shape(call.choice([2, 3, 4, 4, 5]), call.budget(5e4))
    x = call.tensor(shape, dtype)
    weight, bias = call.weight_and_bias((shape[1],), dtype, "contiguous")
    mean = call.tensor((shape[1],), dtype, "normal", "contiguous", "rm")
    variance = call.tensor((shape[1],), dtype, "positive", "contiguous", "rv")
    call.compute(lambda: F.batch_norm(x, mean, variance, weight, bias, False), [x, weight, bias], 0.3)


FUNCTIONS = {
    "outer": outer, "kron": outer, "cdist": cdist, "cosine_similarity": of_a_pair, "pairwise_distance": of_a_pair, "normalize": normalize, "renorm": renorm,
    "trace": trace, "cross": cross, "einsum": einsum, "dist": dist, "weight_norm": weight_norm, "vander": vander, "trapezoid": trapezoid,
    "cov1": standard_deviation, "softmax_scaled": scaled_softmax, "feature_scale": scaled_features, "batch_norm_eval": batch_norm,
}
OPERATORS = ["outer", "cdist", "cdist", "cosine_similarity", "cosine_similarity", "pairwise_distance", "pairwise_distance", "normalize", "normalize",
             "normalize", "renorm", "trace", "cross", "cross", "einsum", "einsum", "dist", "weight_norm", "kron", "vander", "trapezoid", "cov1",
             "softmax_scaled", "feature_scale", "batch_norm_eval"]


def geometry(call, dtype):
    call.operator = call.choice(OPERATORS)
    FUNCTIONS[call.operator](call, dtype)

"""Gradients for which PyTorch has another formula where tensors are of a subclass. Prints a digest of each."""

import hashlib

import torch
import torch.nn.functional as F

numbers = torch.Generator().manual_seed(7)


def tensor(*shape, zeros=0):
    x = torch.randn(*shape, generator=numbers) * 0.3 + 1
    for i in range(zeros):
        x.view(-1)[(i * 37 + 5) % x.numel()] = 0
    return x.cuda().requires_grad_()


def show(name, function, *inputs):
    result = function(*inputs)
    weights = torch.randn(result.shape, generator=numbers).cuda()
    digest = hashlib.sha256()
    for x in (result, *torch.autograd.grad(result, inputs, weights)):
        digest.update(x.detach().cpu().contiguous().numpy().tobytes())
    print(name, digest.hexdigest()[:16])


for zeros in (0, 1, 3):
    for shape in ((37, 29), (6, 5, 17)):
        name = f"{'x'.join(map(str, shape))} with {zeros} zeros:"
        show(f"prod {name}", lambda x: x.prod(), tensor(*shape, zeros=zeros))
        show(f"prod of dim 1 {name}", lambda x: x.prod(1), tensor(*shape, zeros=zeros))
        show(f"prod of dim 0, kept {name}", lambda x: x.prod(0, keepdim=True), tensor(*shape, zeros=zeros))
        show(f"cumprod of dim 1 {name}", lambda x: x.cumprod(1), tensor(*shape, zeros=zeros))
        show(f"cumprod of dim 0 {name}", lambda x: x.cumprod(0), tensor(*shape, zeros=zeros))
show("prod of one number:", lambda x: x.prod(), tensor(1).view(()).detach().requires_grad_())
show("cumprod of one column:", lambda x: x.cumprod(1), tensor(4, 1))
show("norm:", lambda x: x.norm(dim=1), tensor(9, 33))
show("norm of order 3:", lambda x: torch.linalg.vector_norm(x, 3, dim=1), tensor(9, 33))
show("norm of order 1:", lambda x: x.norm(1, dim=0), tensor(9, 33))
show("std:", lambda x: x.std(1), tensor(9, 33))
show("var:", lambda x: x.var(0), tensor(9, 33))
show("amax:", lambda x: x.round().amax(1), tensor(9, 33))
show("max:", lambda x: x.round().max(), tensor(9, 33))
show("logsumexp:", lambda x: x.logsumexp(1), tensor(9, 33))
show("cumsum:", lambda x: x.cumsum(1), tensor(9, 33))
show("pow:", lambda x, y: x.abs() ** y, tensor(9, 33), tensor(9, 33))
show("cosine_similarity:", lambda x, y: F.cosine_similarity(x, y, dim=1), tensor(9, 33), tensor(9, 33))
show("kl_div:", lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), tensor(9, 33), tensor(9, 33))
show("logits:", lambda x: F.binary_cross_entropy_with_logits(x, (x.detach() > 1).float(), pos_weight=torch.full((33,), 1.7).cuda()), tensor(9, 33))
show("masked_fill:", lambda x: x.masked_fill(x > 1, 0.5), tensor(9, 33))
show("gather:", lambda x: x.gather(1, torch.arange(33).cuda().expand(9, 33)), tensor(9, 33))
show("where:", lambda x, y: torch.where(x > 1, x, y), tensor(9, 33), tensor(9, 33))
show("lerp:", lambda x, y: torch.lerp(x, y, 0.3), tensor(9, 33), tensor(9, 33))
show("einsum:", lambda x, y: torch.einsum("ij,ij->i", x, y), tensor(9, 33), tensor(9, 33))

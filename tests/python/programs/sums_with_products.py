"""Products that are added to something, dot products and others of vectors, and of matrices that PyTorch copies first."""

import hashlib

import torch

SEED = [64]


def tensor(*shape):
    SEED[0] += 1
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED[0])).cuda()


def with_gradients(function, *operands):
    leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in operands]
    result = function(*leaves)
    gradient = torch.randn(result.shape, generator=torch.Generator().manual_seed(5)).to(result.dtype).cuda()
    return [result, *torch.autograd.grad(result, leaves, gradient)]


def show(name, *tensors):
    digest = hashlib.sha256()
    for x in tensors:
        x = x.detach().contiguous().cpu()
        digest.update((x.view(torch.int16) if x.element_size() == 2 else x).numpy().tobytes())
    print(name, digest.hexdigest()[:16])


a, b, c = tensor(50, 70), tensor(70, 90), tensor(50, 90)
show("mm_tn", torch.mm(tensor(70, 50).t(), b))
show("mm_nt", torch.mm(a, tensor(90, 70).t()))
show("mm_tt", torch.mm(tensor(70, 50).t(), tensor(90, 70).t()))
show("mm_sliced", torch.mm(tensor(100, 140)[::2, ::2], b))
show("addmm", *with_gradients(lambda p, q, r: torch.addmm(p, q, r, beta=0.3, alpha=1.7), c, a, b))
show("addmm_bias", *with_gradients(torch.addmm, tensor(90), a, b))
show("addmm_beta0", torch.addmm(c * float("nan"), a, b, beta=0))
show("addmm_bf16", torch.addmm(c.bfloat16(), a.bfloat16(), b.bfloat16(), beta=0.5, alpha=-2))
show("addmm_f16", torch.addmm(c.half(), a.half(), b.half(), beta=0.25, alpha=0.5))
show("mv", *with_gradients(torch.mv, a, tensor(70)))
show("mv_bf16", torch.mv(a.bfloat16(), tensor(70).bfloat16()))
show("mv_t", torch.mv(a.t(), tensor(50)))
show("addmv", *with_gradients(lambda p, q, r: torch.addmv(p, q, r, beta=0.9, alpha=-0.4), tensor(50), a, tensor(70)))
show("addr", *with_gradients(lambda p, q, r: torch.addr(p, q, r, beta=1.1, alpha=0.2), c, tensor(50), tensor(90)))
SEED[0] = 82
show("dot", *with_gradients(torch.dot, tensor(5000), tensor(5000)))
show("dot_f16", torch.dot(tensor(513).half(), tensor(513).half()))
SEED[0] = 88
show("inner", torch.inner(tensor(6, 40), tensor(9, 40)))
show("baddbmm", *with_gradients(lambda p, q, r: torch.baddbmm(p, q, r, beta=0.5, alpha=0.125), tensor(6, 17, 29), tensor(6, 17, 31), tensor(6, 31, 29)))
show("baddbmm_bcast_bf16", torch.baddbmm(tensor(6, 1, 29).bfloat16(), tensor(6, 17, 32).bfloat16(), tensor(6, 32, 29).bfloat16()))
show("addbmm", torch.addbmm(tensor(17, 29), tensor(6, 17, 31), tensor(6, 31, 29), beta=0.7))
show("matmul_vec_mat", *with_gradients(torch.matmul, tensor(64), tensor(5, 64, 20)))
show("matmul_mat_vec", *with_gradients(torch.matmul, tensor(5, 20, 64), tensor(64)))

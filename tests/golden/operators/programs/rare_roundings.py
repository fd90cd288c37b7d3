"""Calls whose operands show roundings that ordinary ones show in one element of some thousand: rare_roundings.py. For a GPU."""

import torch
from torch.nn.functional import scaled_dot_product_attention

aten = torch.ops.aten
generator = torch.Generator().manual_seed(31)


def randn(*shape):
    return torch.randn(*shape, generator=generator)


def batch_norm(shape, dtype, form, near):
    """The gradient with moments that are not the channel's; `near`: it lies near its regression on the input, so that what is left is small."""
    x, channels = randn(*shape), shape[1]
    gradient = 1.37 + 0.75 * x if near else randn(*shape) * 2.0 ** torch.randint(-8, 9, shape, generator=generator)
    weight, mean, inverse = 256 * (1 + 0.1 * randn(channels)), 0.1 * randn(channels), 1 + 0.1 * randn(channels)
    x, gradient = [t.to(dtype).cuda().contiguous(memory_format=form) for t in (x, gradient)]
    weight, mean, inverse, zeros, ones = [t.cuda() for t in (weight, mean, inverse, torch.zeros(channels), torch.ones(channels))]
    *_, reserve = aten.cudnn_batch_norm(x, weight, zeros, zeros.clone(), ones.clone(), True, 0.1, 1e-5)
    aten.cudnn_batch_norm_backward(x, gradient, weight, zeros, ones, mean, inverse, 1e-5, reserve)


torch.backends.cudnn.deterministic = True
for shape in ((8, 3, 8, 8), (4, 3, 6, 5), (7, 3, 9, 9), (5, 2, 16, 16)):
    for near in (True, False):
        batch_norm(shape, torch.float16, torch.contiguous_format, near)
for dtype in (torch.float16, torch.float32):
    for shape in ((2, 40, 7, 7), (8, 24, 4, 4), (5, 6, 9, 11), (3, 72, 5, 5)):
        batch_norm(shape, dtype, torch.channels_last, True)
for dtype in (torch.float16, torch.bfloat16):
    for step in range(12):
        gates = [randn(16, 256).to(dtype).cuda() for _ in range(2)]
        biases = [(0.1 * randn(256)).to(dtype).cuda() for _ in range(2)]
        state, gradients = randn(16, 64).to(dtype).cuda(), [randn(16, 64).to(dtype).cuda() for _ in range(2)]
        hidden, after, kept = aten._thnn_fused_lstm_cell(*gates, state, *biases)
        if step == 0:
            aten._thnn_fused_lstm_cell_backward_impl(*gradients, state, after, kept, True)
with torch.no_grad():
    for keys in (24, 29, 31, 34, 36, 40, 44, 47, 48, 53):
        q, k, v = [0.6 * randn(3, 8, length, 32).half().cuda() for length in (1, keys, keys)]
        aten._scaled_dot_product_cudnn_attention(q, k, v, None, False)
x = randn(13, 77).cuda()
for alpha in (0.7, 1.0, 1.5):
    aten.celu(x, alpha)

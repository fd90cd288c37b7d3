"""Training for a B200 on GPUs without NVFP4.

ao#3102 wants quantisation-aware training in NVFP4 on an A100 or H100: dequantise to BF16, multiply in BF16. Against the B200's
own product that gave an SQNR of 21 dB instead of infinity. Where do the 21 dB come from, and what would give the same bits?

Not from the arithmetic: with the same codes, the BF16 product on an H100 is 50 dB from the B200's. That comes from the FP32
scale of the tensor: an element (2 bits) times its block's scale (4 bits) is exact in BF16, times the tensor's scale it is
rounded. Leave that scale out of the operands and multiply it into the FP32 sum, as the B200 does, and all 16,384 elements are
the same, on an A100 too: the sums differ in their last bits, which BF16 does not keep. 20 dB is what the product loses when
only one operand is quantised: two paths that are 21 dB apart did not have the same codes.
"""

import numpy as np

import guardbit

rng = np.random.default_rng(0)
x = guardbit.cast(rng.standard_normal((128, 1024)).astype(np.float32), "bf16")
w = guardbit.cast(rng.standard_normal((1024, 128)).astype(np.float32) / 32, "bf16")


def sqnr(d, reference):
    d, reference = d.astype(float), reference.astype(float)
    noise = ((d - reference) ** 2).sum()
    return "inf" if noise == 0 else f"{10 * np.log10((reference**2).sum() / noise):.1f}"


qx, qw = guardbit.quantize(x, "nvfp4"), guardbit.quantize(w, "nvfp4", axis=0)
b200 = guardbit.matmul(qx, qw, arch="sm_100", out_dtype="bf16")

# (2) of the issue: dequantised to BF16, multiplied in BF16 on an H100.
fake = guardbit.matmul(guardbit.dequantize(qx, to="bf16"), guardbit.dequantize(qw, to="bf16"), arch="sm_90")

# The tensors' scales left out of the operands, which are then exact in BF16, and multiplied into the sum.
bx, bw = (guardbit.dequantize(q.codes, q.scales, 1.0, format="nvfp4", to="bf16", axis=q.axis) for q in (qx, qw))
factor = float(np.float32(qx.tensor_scale) * np.float32(qw.tensor_scale))
late = guardbit.matmul(bx, bw, arch="sm_90", alpha=factor)

rows = {
    "dequantised to BF16, BF16 product on an H100": fake,
    "the same, tensor scales applied to the sum": late,
    "the same on an A100": guardbit.matmul(bx, bw, arch="sm_80", alpha=factor),
    "only the weights quantised": guardbit.matmul(x, guardbit.dequantize(qw, to="bf16"), arch="sm_90"),
    "nothing quantised": guardbit.matmul(x, w, arch="sm_90"),
}
print("against the B200's product            SQNR, dB   elements that differ")
for name, d in rows.items():
    print(f"{name:45} {sqnr(d, b200):>5}   {np.mean(d != b200):7.2%}")

"""Random numbers of the CUDA generator: draws.py [STEPS]. States saved and restored, a generator of its own."""

import sys

import torch
import torch.nn.functional as F

from printed import put

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
torch.manual_seed(10)
own = torch.Generator(device="cuda").manual_seed(33)
x = torch.ones(33, 70, device="cuda")
for step in range(steps):
    put(f"step {step}", torch.rand(37, device="cuda"), torch.randn(5, 301, device="cuda"), F.dropout(x, 0.3), torch.rand_like(x[:, ::2]),
        torch.randint(0, 1000, (77,), device="cuda"), torch.bernoulli(x * 0.25))
    put(f"own {step}", torch.randn(1000, device="cuda", generator=own), torch.empty(40, device="cuda").uniform_(-1, 1, generator=own))
    put(f"filled {step}", torch.empty(41, 3, device="cuda").normal_(1.0, 2.0), torch.empty(1025, dtype=torch.bfloat16, device="cuda").uniform_())
state = torch.cuda.get_rng_state()
first = torch.rand(9, device="cuda")
torch.cuda.set_rng_state(state)
print("restored", bool((torch.rand(9, device="cuda") == first).all()))
torch.cuda.manual_seed(5)
put("seeded", torch.randn(300_000, device="cuda"))
with torch.random.fork_rng():
    put("forked", torch.rand(8, device="cuda"))
put("after", torch.rand(8, device="cuda"), torch.rand(8))
print(torch.cuda.initial_seed(), own.initial_seed(), state.numel())

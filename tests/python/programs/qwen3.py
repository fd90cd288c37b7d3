"""A model of the shape of Qwen3 with made-up weights reads a text: qwen3.py SIZE [TOKENS], SIZE 0.6B or 4B.

Weights are whole numbers of 2^-12, so that no library's way of drawing normal numbers decides their bits.
"""

import sys
import time

import torch
import transformers

from printed import put

shapes = {
    "0.6B": {"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": 3072},
    "4B": {"hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 9728},
}
tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 250
config = transformers.Qwen3Config(vocab_size=151936, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, dtype=torch.bfloat16,
                                  **shapes[sys.argv[1]])
torch.manual_seed(3)
torch.nn.init.normal_ = lambda x, *args, **keys: x  # the weights are made below
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
with torch.no_grad():
    for weight in model.parameters():
        drawn = torch.randint(-128, 128, weight.shape, dtype=torch.int8)
        weight.copy_(drawn).mul_(2.0 ** -12)
        if weight.dim() == 1:
            weight.add_(1)
model = model.to("cuda")
text = torch.randint(3, 151936, (1, tokens)).to("cuda")
begun = time.perf_counter()
with torch.no_grad():
    result = model(text, output_hidden_states=True, use_cache=False)
    last = result.logits[0, -1, :3].tolist()
print(f"forward {time.perf_counter() - begun:.2f} s", file=sys.stderr)
put("hidden", *result.hidden_states)
put("logits", result.logits)
print(last)

"""A model of the transformers library that continues a text: generate.py NAME TYPE [TOKENS], NAME llama, qwen3 or gpt2."""

import sys

import torch
import transformers

from printed import put

name, kind = sys.argv[1:3]
tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 12
dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[kind]
torch.manual_seed(8)
common = {"vocab_size": 160, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 2}
small = {"hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
config = {"llama": lambda: transformers.LlamaConfig(**common, **small), "qwen3": lambda: transformers.Qwen3Config(head_dim=64, **common, **small),
          "gpt2": lambda: transformers.GPT2Config(n_embd=128, n_layer=2, n_head=4, n_positions=128, **common)}[name]()
model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).to("cuda").eval()
text = torch.randint(3, 160, (2, 20)).to(model.device)
with torch.no_grad():
    result = model(text, output_hidden_states=True)
put("hidden", *result.hidden_states)
put("logits", result.logits)
torch.cuda.manual_seed(11)
for options in ({"do_sample": False}, {"do_sample": True, "top_k": 20, "temperature": 0.9}):
    made = model.generate(text, attention_mask=torch.ones_like(text), max_new_tokens=tokens, **options)
    print(made.tolist())

"""Types of numbers, with short names for descriptions."""

import torch

f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
u8, i8, i16, i32, i64, boolean = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool
FLOATS = (f32, f16, bf16, f64)
INTEGERS = (i64, i32, i16, i8, u8)
NAMES = {f32: "f32", f16: "f16", bf16: "bf16", f64: "f64", i64: "i64", i32: "i32", i16: "i16", i8: "i8", u8: "u8", boolean: "b1"}

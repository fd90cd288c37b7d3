#pragma once

#include <string>

// What the CPU at hand has of the units that the catalogue's page x86 describes, and of vectors.
namespace guardbit::emulator::cpu {

/// Units that the CPU has and that the operating system and GUARDBIT_CPU
/// (formats/support/instruction_sets.hpp) let this process use. Everything is false on other
/// processors.
struct Features {
  bool fma = false;
  /// AVX2, FMA, F16C
  bool avx2_kernels = false;
  /// AVX512 F, BW, DQ, VL, VBMI, VBMI2, BITALG, VPOPCNTDQ, VNNI
  bool avx512_kernels = false;
  bool avx_vnni = false;
  bool avx512_bf16 = false, avx512_vnni = false, avx512_fp16 = false;
  bool amx_bf16 = false, amx_fp16 = false, amx_int8 = false;
  /// of ARM: NEON, and its dot products of bytes
  bool neon_kernels = false, dot_products = false;
};

/// Asked once; the first call requests the tile state of AMX from Linux, for the whole process.
const Features& features();

/// "AMD EPYC 9555 64-Core Processor, family 26, model 2, stepping 1", or
/// "ARM CPU", or "another CPU".
std::string description();

}  // namespace guardbit::emulator::cpu

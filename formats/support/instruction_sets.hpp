#pragma once

namespace guardbit::formats {

/// What programs may use beyond plain C++, which any CPU runs; of one kind of CPU each includes
/// those above it.
enum class InstructionSets {
  baseline,
  /// of ARM: NEON, which every AArch64 CPU has, with dot products of bytes
  neon,
  /// of x86: AVX2, FMA, F16C, AVX-VNNI
  avx2,
  /// with AVX-512 of any kind
  avx512,
  /// with AMX
  all,
};

/// What this process may use of what its CPU has: the value of the environment variable
/// GUARDBIT_CPU (baseline, avx2 or avx512; of ARM baseline or neon), which is read once; all of it
/// where that is unset or empty. formats::Error for another value.
InstructionSets allowed_instruction_sets();

}  // namespace guardbit::formats

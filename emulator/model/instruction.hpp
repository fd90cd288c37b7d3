#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "emulator/model/accumulator.hpp"
#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"

// An instruction as data: its name, shape and formats, the steps of its arithmetic, and how we know
// them.
namespace guardbit::emulator {

using formats::Format;

/// The instruction's name, held in the instruction itself, so that one can be copied anywhere.
struct Name {
  std::array<char, 120> text{};
  std::uint8_t size = 0;

  constexpr Name() = default;
  constexpr Name(std::string_view s) {
    append(s);
  }  // NOLINT(google-explicit-constructor): a name is its text
  constexpr Name(const char* s)
      : Name(std::string_view(s)) {}  // NOLINT(google-explicit-constructor)

  constexpr Name& append(std::string_view s) {
    for (const char c : s) text.at(size++) = c;
    return *this;
  }
  constexpr operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return {text.data(), size};
  }
};

/// The family that an instruction belongs to: what a `dot` capture calls its unit.
enum class Family : std::uint8_t {
  mma,
  mma_sp,
  wmma,
  wgmma,
  wgmma_sp,
  tcgen05,
  tcgen05_sp,
  mfma,
  vector_dot,
  tpu,
  avx,
  amx
};
constexpr auto words(Family) {
  return std::array{"mma.sync",   "mma.sp", "wmma",  "wgmma", "wgmma.sp", "tcgen05",
                    "tcgen05.sp", "mfma",   "v_dot", "tpu",   "avx",      "amx"};
}

/// D[M x N] = A[M x K] * B[K x N] + C[M x N].
struct Shape {
  int m = 0, n = 0, k = 0;
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// Scale factors along K: `count` of them for each row of A and column of B, each serving K / count
/// elements. 0: none.
struct BlockScale {
  Format format{};
  int count = 0;
  friend constexpr bool operator==(const BlockScale&, const BlockScale&) = default;
};

/// 2:4 sparsity of A (NUMERICS 3.3). Stored values come in chunks of `chunk` neighbours; each chunk
/// carries a position e in its group, and stands for the k's  group * group_elements + e * chunk +
/// (0 .. chunk-1). 0: dense.
struct Sparsity {
  /// elements of K covered by one group
  int group_elements = 0;
  int stored_per_group = 0;
  int chunk = 1;
  friend constexpr bool operator==(const Sparsity&, const Sparsity&) = default;
};

/// The k's of a dot product that a step takes: those whose k % modulus is set in `residues`, in
/// ascending order.
struct Selection {
  int modulus = 1;
  std::uint32_t residues = 1;

  constexpr bool contains(int k) const { return ((residues >> (k % modulus)) & 1U) != 0; }
  friend constexpr bool operator==(const Selection&, const Selection&) = default;
};

/// Where a step reads its addend: constants, the instruction's C, or the result of an earlier step.
enum class Source : std::int8_t {
  positive_zero = -3,
  negative_zero = -2,
  c = -1,
  step_0 = 0,
  step_1,
  step_2,
  step_3
};

enum class Operation : std::uint8_t {
  /// spec over the selected products, plus `addend`
  dot,
  /// addend + other, rounded once by spec.result
  add,
  /// addend, rounded once by spec.result
  convert,
};
constexpr auto words(Operation) { return std::array{"dot", "add", "convert"}; }

/// One step of an instruction. A native instruction is a single `dot`; what the compiler emulates
/// is a short list (NUMERICS 1.5), the last of which gives D.
struct Step {
  Operation operation = Operation::dot;
  Selection selection{};
  Source addend = Source::c;
  Source other = Source::positive_zero;
  AccumulatorSpec spec{};
  /// format of what the step produces
  Format result{};
  /// A and B are converted to this first, which changes the
  /// exponents of subnormals
  std::optional<Format> widened{};

  friend constexpr bool operator==(const Step&, const Step&) = default;
};

struct Steps {
  std::array<Step, 5> list{};
  int count = 0;

  constexpr Steps() = default;
  constexpr Steps(std::initializer_list<Step> steps) {
    for (const Step& step : steps) list.at(static_cast<std::size_t>(count++)) = step;
  }
  constexpr const Step* begin() const { return list.data(); }
  constexpr const Step* end() const { return list.data() + count; }
};

/// How we know that an instruction is right.
enum class Basis : std::uint8_t {
  /// a recording of that device is reproduced bit for bit
  measured,
  /// the vendor's document or a validated published model says so
  documented,
  /// inferred from relatives of the device or from disassembly
  inferred,
};
constexpr auto words(Basis) { return std::array{"measured", "documented", "inferred"}; }

struct Evidence {
  Basis basis = Basis::inferred;
  /// where the fact comes from, and any doubt about it
  std::string_view source;
};

/// Versions of ptxas that compile the instruction this way, as major * 100 + minor; `until` is
/// exclusive, 0 is open.
struct Toolkit {
  int from = 0;
  int until = 0;

  constexpr bool includes(int version) const {
    return version >= from && (until == 0 || version < until);
  }
};

/// The largest K of any instruction (mma.m16n8k256 on single bits).
inline constexpr int max_k = 256;

/// One instruction of the catalogue: everything that decides the bits of D.
struct MatrixInstruction {
  /// the PTX qualifier, or the vendor's mnemonic
  Name name;
  /// sm_90, cdna3, tpu, ...
  std::string_view arch;
  Family family = Family::mma;
  Shape shape{};
  Format a{}, b{}, c{}, d{};
  BlockScale scale{};
  Sparsity sparsity{};
  Steps steps{};
  Evidence evidence{};
  Toolkit toolkit{};
};

/// The format of what a step with that result format reads from a source of the instruction.
constexpr Format source_format(const MatrixInstruction& instruction, Source source,
                               const Format& result) {
  if (source == Source::c) return instruction.c;
  if (source == Source::positive_zero || source == Source::negative_zero) return result;
  return instruction.steps.list[static_cast<std::size_t>(source)].result;
}

/// Elements of K that A stores: all of them, or the nonzeros of a sparse instruction.
constexpr int stored_k(const MatrixInstruction& instruction, int k) {
  return instruction.sparsity.group_elements == 0
             ? k
             : k / instruction.sparsity.group_elements * instruction.sparsity.stored_per_group;
}

/// The k that stored element `s` with metadata `e` stands for.
constexpr int dense_k(const Sparsity& sparsity, int s, int e) {
  if (sparsity.group_elements == 0) return s;
  return s / sparsity.stored_per_group * sparsity.group_elements + e * sparsity.chunk +
         s % sparsity.chunk;
}

/// Metadata values run from 0 to this, exclusive.
constexpr int positions(const Sparsity& sparsity) {
  return sparsity.group_elements / sparsity.chunk;
}

}  // namespace guardbit::emulator

#pragma once

// The grammar of instruction names: each family of instructions, written once, turns lists of
// shapes and types into instructions. What differs between machines (the arithmetic) is passed in
// by the pages in arch/.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

using Instructions = std::vector<MatrixInstruction>;

/// PTX's name of an operand type: f16, bf16, s8, ...
std::string_view ptx_type(const Format& format);

/// Types of one multiplication. Integer kinds list every pairing of signed and unsigned.
struct OperandPair {
  Format a{}, b{};
};
using Pairs = std::vector<OperandPair>;

/// The pairs (x, y) for every x and y of the list.
Pairs every_pair(std::initializer_list<Format> types);

/// Types of C and D.
struct AccumulatorPair {
  Format c{}, d{};
};

inline constexpr AccumulatorPair to_fp32 = {formats::fp32, formats::fp32};
inline constexpr AccumulatorPair to_fp16 = {formats::fp16, formats::fp16};
inline constexpr AccumulatorPair to_fp64 = {formats::fp64, formats::fp64};
inline constexpr AccumulatorPair to_int32 = {formats::int32, formats::int32};

/// Everything but names and types: what a machine does and how we know.
struct Arithmetic {
  Steps steps{};
  Evidence evidence{};
  Toolkit toolkit{};
};

/// A native instruction: one accumulation.
Arithmetic native(const AccumulatorSpec& spec, const AccumulatorPair& cd, const Evidence& evidence);

/// Collects the instructions of one machine.
class Machine {
 public:
  explicit Machine(std::string_view arch) : arch_(arch) {}

  using Shapes = std::initializer_list<Shape>;

  /// mma.sync.aligned.SHAPE.row.col[.rounding].D.A.B.C
  void mma(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd, const Arithmetic& arithmetic,
           std::string_view rounding = "");
  /// The integer forms, wrapping and .satfinite.
  void mma_integer(Shapes shapes, const Pairs& ab, const Evidence& evidence);
  /// Single bits: .xor.popc or .and.popc.
  void mma_bits(Shapes shapes, Product product, const Evidence& evidence);
  /// mma.sp (unless `ordered_only`) and mma.sp::ordered_metadata; shapes give the dense K.
  void mma_sparse(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd,
                  const Arithmetic& arithmetic, bool ordered_only = false);
  void mma_sparse_integer(Shapes shapes, const Pairs& ab, const Evidence& evidence);
  /// mma with .kind::KIND; sparse forms have twice the K and ordered metadata.
  void mma_kind(std::string_view kind, Shapes shapes, const Pairs& ab, const AccumulatorPair& cd,
                const Arithmetic& arithmetic, bool sparse);
  /// mma with .kind::KIND.block_scale.scale_vec::<COUNT>X
  void mma_block_scaled(std::string_view kind, const Shape& shape, const Pairs& ab,
                        const BlockScale& scale, const Arithmetic& arithmetic, bool sparse);

  /// wmma.mma.sync.aligned.row.col.SHAPE: floating kinds name D and C only when A and B are f16.
  void wmma(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd, const Arithmetic& arithmetic,
            std::string_view rounding = "");
  void wmma_integer(Shapes shapes, std::initializer_list<Format> types, const Evidence& evidence);
  void wmma_bits(Shapes shapes, Product product, const Evidence& evidence);

  /// wgmma.mma_async[.sp].sync.aligned.m64nNkK.D.A.B
  void wgmma(int k, const Pairs& ab, const AccumulatorPair& cd, const Arithmetic& arithmetic,
             bool sparse = false);
  void wgmma_integer(int k, const Pairs& ab, const Evidence& evidence, bool sparse = false);
  void wgmma_bits(int k, const Evidence& evidence);

  /// tcgen05.mma[.sp].kind::KIND.mMnNkK.D.A.B[.block_scale...]: PTX keeps shape and types in the
  /// instruction descriptor; here they follow the kind.
  void tcgen05(std::string_view kind, int k, const Pairs& ab, const AccumulatorPair& cd,
               const Arithmetic& arithmetic, bool sparse, const BlockScale& scale = {},
               std::string_view suffix = "");

  /// Any other vendor's mnemonic.
  void named(std::string_view name, Family family, const Shape& shape, const OperandPair& ab,
             const AccumulatorPair& cd, const Arithmetic& arithmetic);
  void named_sparse(std::string_view name, Family family, const Shape& shape, const OperandPair& ab,
                    const AccumulatorPair& cd, const Arithmetic& arithmetic);

  Instructions take() { return std::move(instructions_); }

 private:
  MatrixInstruction& add(const std::string& name, Family family, const Shape& shape,
                         const OperandPair& ab, const AccumulatorPair& cd,
                         const Arithmetic& arithmetic);

  std::string_view arch_;
  Instructions instructions_;
};

}  // namespace guardbit::emulator

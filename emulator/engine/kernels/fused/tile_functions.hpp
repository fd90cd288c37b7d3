#pragma once

// The tile of an instruction, instantiated for every arithmetic that the lanes serve.

#include "emulator/engine/kernels/fused/fp64_integers.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused {

/// The functions of an instruction. `normal` takes the tiles whose products are all in the normal
/// range, `general` the others. It is null if there are none: no product can leave the range, and
/// no addend is too large for the lanes.
struct TileFunctions {
  TileFunction normal = nullptr, general = nullptr;
  /// of large addends, where the lanes have such
  SumFunctions sums{}, large_sums{};
};

/// A normal tile of a chain with FP32 results by fp64_integers.hpp, or where that cannot by Lanes.
template <class Lanes, int BlockK>
void sum_plain_tile(const TileRule& rule, const TileOperands& x) {
  using Integers = Fp64Integers<typename Lanes::Set>;
  TileOperands again = x;
  if (x.plain && Integers::template takes<BlockK>(rule) && Integers::takes_sums(x.sums)) {
    std::array<std::byte, std::size_t{4} * Lanes::rows * Lanes::columns> before;
    std::memcpy(before.data(), x.sums, sizeof before);
    Tile<Integers, BlockK, Result::fp32, Composition::chain, false> tile(rule, x);
    tile.run();
    if (tile.fits()) return;
    std::memcpy(x.sums, before.data(), sizeof before);
    again.largest_is_known = false;
  }
  sum_tile<Lanes, BlockK, Result::fp32, Composition::chain, false>(rule, again);
}

template <class Lanes, int BlockK, Composition Blocks, Result Kind, bool HasGeneral>
TileFunctions functions_of() {
  constexpr bool has_large = HasGeneral && !Lanes::any_exponents;
  TileFunctions found;
  // Blocks of 4 to 16 products with FP32 results. Of shorter vectors its instructions are more.
  constexpr bool by_integers = Kind == Result::fp32 && Blocks == Composition::chain &&
                               BlockK <= 16 && Lanes::Set::bytes == 64;
  if constexpr (by_integers) {
    found.normal = sum_plain_tile<Lanes, BlockK>;
  } else {
    found.normal = sum_tile<Lanes, BlockK, Kind, Blocks, false>;
  }
  if constexpr (HasGeneral) found.general = sum_tile<Lanes, BlockK, Kind, Blocks, true>;
  found.sums = {begin_sums<Lanes, Kind, false>, end_sums<Lanes, Kind, false>};
  if constexpr (has_large)
    found.large_sums = {begin_sums<Lanes, Kind, true>, end_sums<Lanes, Kind, true>};
  return found;
}

template <class Lanes, int BlockK>
TileFunctions chain_functions(const FusedInstruction& instruction) {
  constexpr auto chain = Composition::chain;
  if (instruction.result == Result::fp16)
    return functions_of<Lanes, BlockK, chain, Result::fp16, false>();
  if constexpr (sizeof(typename Lanes::Value) == 4) {
    return functions_of<Lanes, BlockK, chain, Result::e8m13, true>();
  } else {
    TileFunctions found = functions_of<Lanes, BlockK, chain, Result::fp32, true>();
    if constexpr (Lanes::cuts_addends && BlockK == 4)  // Volta's
      if (instruction.kept_fraction_bits == 23)
        found.normal = sum_tile<Lanes, BlockK, Result::fp32_as_kept, chain, false>;
    return found;
  }
}

template <class Lanes, int BlockK, Composition Blocks>
TileFunctions halves_functions(const FusedInstruction& instruction) {
  if (instruction.result == Result::fp16)
    return functions_of<Lanes, BlockK, Blocks, Result::fp16, false>();
  return functions_of<Lanes, BlockK, Blocks, Result::fp32, false>();
}

template <class Lanes, Composition Blocks>
TileFunctions halves_functions(const FusedInstruction& instruction) {
  switch (instruction.block_k) {
    case 8: return halves_functions<Lanes, 8, Blocks>(instruction);
    case 16: return halves_functions<Lanes, 16, Blocks>(instruction);
    default: return {};
  }
}

/// No function where the lanes have no kernel for the instruction.
template <class Lanes>
TileFunctions tile_functions(const FusedInstruction& instruction) {
  if (instruction.composition != Composition::chain) {
    if constexpr (Lanes::composes) {
      if (instruction.any_exponents) return {};
      return instruction.composition == Composition::chained_halves
                 ? halves_functions<Lanes, Composition::chained_halves>(instruction)
                 : halves_functions<Lanes, Composition::separate_halves>(instruction);
    }
    return {};
  }
  switch (instruction.block_k) {
    case 4: return chain_functions<Lanes, 4>(instruction);
    case 8: return chain_functions<Lanes, 8>(instruction);
    case 16: return chain_functions<Lanes, 16>(instruction);
    case 32: return chain_functions<Lanes, 32>(instruction);
    case 64: return chain_functions<Lanes, 64>(instruction);
    default: return {};
  }
}

}  // namespace guardbit::emulator::fused

#pragma once

// The tile of a row, instantiated for every arithmetic that the lanes serve.

#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused {

/// The functions of a row; `wide` null where no tile is wide: no product can leave the calm range,
/// no addend is too large for the lanes.
struct TileFunctions {
  TileFunction calm = nullptr, wide = nullptr;
  SumFunctions sums{}, large_sums{};  ///< of large addends, where the lanes have such
};

template <class Lanes, int BlockK, Composition Blocks, Result Kind, bool HasWide>
TileFunctions functions_of() {
  constexpr bool has_large = HasWide && !Lanes::wide_exponents;
  TileFunctions found;
  found.calm = sum_tile<Lanes, BlockK, Kind, Blocks, false>;
  if constexpr (HasWide) found.wide = sum_tile<Lanes, BlockK, Kind, Blocks, true>;
  found.sums = {begin_sums<Lanes, Kind, false>, end_sums<Lanes, Kind, false>};
  if constexpr (has_large)
    found.large_sums = {begin_sums<Lanes, Kind, true>, end_sums<Lanes, Kind, true>};
  return found;
}

template <class Lanes, int BlockK>
TileFunctions chain_functions(const FusedRow& row) {
  constexpr auto chain = Composition::chain;
  if (row.result == Result::fp16) return functions_of<Lanes, BlockK, chain, Result::fp16, false>();
  if constexpr (sizeof(typename Lanes::Value) == 4) {
    return functions_of<Lanes, BlockK, chain, Result::e8m13, true>();
  } else {
    return functions_of<Lanes, BlockK, chain, Result::fp32, true>();
  }
}

template <class Lanes, int BlockK, Composition Blocks>
TileFunctions halves_functions(const FusedRow& row) {
  if (row.result == Result::fp16) return functions_of<Lanes, BlockK, Blocks, Result::fp16, false>();
  return functions_of<Lanes, BlockK, Blocks, Result::fp32, false>();
}

template <class Lanes, Composition Blocks>
TileFunctions halves_functions(const FusedRow& row) {
  switch (row.block_k) {
    case 8: return halves_functions<Lanes, 8, Blocks>(row);
    case 16: return halves_functions<Lanes, 16, Blocks>(row);
    default: return {};
  }
}

/// No function where the lanes have no kernel for the row.
template <class Lanes>
TileFunctions tile_functions(const FusedRow& row) {
  if (row.composition != Composition::chain) {
    if constexpr (sizeof(typename Lanes::Value) == 8) {
      if (row.wide_exponents) return {};
      return row.composition == Composition::chained_halves
                 ? halves_functions<Lanes, Composition::chained_halves>(row)
                 : halves_functions<Lanes, Composition::separate_halves>(row);
    }
    return {};
  }
  switch (row.block_k) {
    case 4: return chain_functions<Lanes, 4>(row);
    case 8: return chain_functions<Lanes, 8>(row);
    case 16: return chain_functions<Lanes, 16>(row);
    case 32: return chain_functions<Lanes, 32>(row);
    case 64: return chain_functions<Lanes, 64>(row);
    default: return {};
  }
}

}  // namespace guardbit::emulator::fused

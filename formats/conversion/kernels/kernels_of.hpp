#pragma once

#include <string_view>

#include "formats/conversion/kernels/block_loops.hpp"
#include "formats/conversion/kernels/byte_loops.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/conversion_loops.hpp"
#include "formats/conversion/kernels/counting_loops.hpp"

namespace guardbit::formats::kernels {

/// The row of a CPU, given what it has beyond its Lanes.
template <class Lanes>
constexpr Kernels kernels_of(std::string_view name) {
  return {.name = name,
          .narrow = narrow<Lanes>,
          .count = count<Lanes>,
          .widen = widen<Lanes>,
          .multiply = multiply<Lanes>,
          .look_up = look_up<Lanes>,
          .looks_up_quickly = false,
          .finish_streams = Lanes::finish_streams,
          .random_words = random_words<Lanes>,
          .block_maxima = block_maxima<Lanes>,
          .narrow_blocks = narrow_blocks<Lanes>,
          .compare_blocks = compare_blocks<Lanes>,
          .carry_blocks = carry_blocks<Lanes>,
          .block_errors = block_errors<Lanes>,
          .pack = pack<Lanes>,
          .unpack = unpack<Lanes>};
}

}  // namespace guardbit::formats::kernels

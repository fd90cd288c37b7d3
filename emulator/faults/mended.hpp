#pragma once

// The problem that a wrong kernel solved right. Input: a capture and its judgement. Output: a
// capture whose plans a search can find: with another alpha, without elements of K, with a wrong
// element of A put in, or without the rows that are wrong.

#include <optional>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/find_faults.hpp"

namespace guardbit::emulator {

struct Mended {
  GemmCapture capture;
  /// rows or columns were left out: wrong ones, or most of a large product
  bool is_part = false;
};

/// Empty if a fault cannot be put into a problem.
std::optional<Mended> mended(const GemmCapture& capture, const Judgement& judgement);

}  // namespace guardbit::emulator

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "formats/block_format.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/conversion/block_summary.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

/// Tells of quantised blocks what became of their numbers.
class BlockJudgement {
 public:
  /// `kernels` is one of kernels::available(), the widest if null.
  BlockJudgement(const BlockFormat& format, const BlockQuantisationOptions& options,
                 const kernels::Kernels* kernels = nullptr);

  /// Adds a block of FP32 words and a code in each byte; its first element has that index in the
  /// array. From any thread.
  void add(const std::byte* words, const std::byte* codes, std::size_t count, std::uint64_t scale,
           std::uint64_t first, BlockSummary& summary) const;

 private:
  struct Scale {
    std::once_flag made;
    Value unit;
    kernels::BlockLimits limits;
  };

  const Scale& scale_of(std::uint64_t code) const;
  void describe(std::uint32_t word, double element, const Scale& scale, std::uint64_t index,
                BlockSummary& summary) const;
  bool is_out_of_range(std::uint32_t word, const Value& unit, RandomBits random) const;
  RandomBits random(std::uint64_t index) const;

  BlockFormat format_;
  BlockQuantisationOptions options_;
  const kernels::Kernels* kernels_;
  std::array<double, 256> numbers_{};
  double largest_ = 0;
  mutable std::array<Scale, 256> scales_;
};

}  // namespace guardbit::formats

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/rounding.hpp"

namespace guardbit::experiments {

/// How a number would be stored: times 2^scale_exponent, the product rounded to FP32 as PyTorch
/// rounds it (or not at all), then rounded to nearest even into `to`.
struct Storing {
  formats::Format to;
  int scale_exponent = 0;
  formats::Overflow overflow = formats::overflow_ieee;
  bool exact_product = false;

  friend bool operator==(const Storing&, const Storing&) = default;
};

/// The magnitudes of an array's format, cut into cells in which all numbers fare alike: each cell
/// lies in one binade, and every Storing loses, keeps or overflows all of it. Rounding is monotone,
/// so the cuts are found by bisection with the reference conversion; counting the elements of each
/// cell then answers every question at once, and counts add.
class MagnitudeCells {
 public:
  /// What becomes of the cells, by their indices: those from `nonzero` on are stored as numbers
  /// other than zero, from `normal` on as normal numbers, from `out` on as what the overflow policy
  /// says of finite numbers past the largest.
  struct Fate {
    std::size_t nonzero = 0, normal = 0, out = 0;
  };

  /// Throws Error for integers, and for destinations that are not floating formats with a sign.
  MagnitudeCells(const formats::Format& from, std::span<const Storing> storings);

  const formats::Format& from() const { return from_; }
  /// Magnitudes are codes of this format: FP32 where it holds every number of `from`, else FP64.
  const formats::Format& word() const { return word_; }
  std::size_t size() const { return starts_.size(); }
  /// The least magnitude of each cell; the first one is zero's.
  std::span<const std::uint64_t> starts() const { return starts_; }
  std::size_t cell_of(std::uint64_t magnitude) const;
  const Fate& fate(std::size_t storing) const { return fates_[storing]; }

  std::size_t first_nonzero() const { return 1; }
  /// The first cell of normal numbers of `from`.
  std::size_t first_normal() const { return first_normal_; }
  std::size_t infinity() const { return infinity_; }
  std::size_t nan() const { return infinity_ + 1; }

  /// Exponent of the unit of a cell's significands, which are integers.
  int unit_exponent(std::size_t cell) const;
  /// floor(log2(magnitude)) of everything in a cell of numbers other than zero.
  int binade(std::size_t cell) const;

 private:
  formats::Format from_, word_;
  std::vector<std::uint64_t> starts_;
  std::vector<std::size_t> first_of_exponent_;
  std::vector<Fate> fates_;
  std::size_t first_normal_ = 0, infinity_ = 0;
};

}  // namespace guardbit::experiments

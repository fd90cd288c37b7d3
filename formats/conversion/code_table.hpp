#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/conversion/conversion_outcome.hpp"
#include "formats/format.hpp"

namespace guardbit::formats {

/// A conversion of codes of at most 16 bits that looks each one's outcome up, and counts how often
/// it does, from any number of threads.
class CodeTable {
 public:
  static constexpr int most_bits = 16;

  /// `outcome` says what becomes of each code of `width` bits.
  CodeTable(int width, const Format& to, const std::function<Outcome(std::uint64_t code)>& outcome);

  /// Codes in bytes, or in pairs of bytes where they have more than 8 bits, to containers. Bits
  /// above the codes are ignored.
  void convert(const std::byte* codes, std::byte* results, std::size_t count);

  /// What became of all that was converted.
  Tally tally() const;

 private:
  using Occurrences = std::vector<std::uint64_t>;
  std::unique_ptr<Occurrences> take_occurrences();
  template <class Code, class Result>
  void convert_as(const std::byte* codes, std::byte* results, std::size_t count,
                  Occurrences& occurrences) const;
  template <class Code>
  void convert_from(const std::byte* codes, std::byte* results, std::size_t count,
                    Occurrences& occurrences) const;

  int width_;
  int container_;
  std::vector<Outcome> outcomes_;
  std::vector<std::uint64_t> results_;
  std::mutex mutex_;
  /// of threads that are not converting
  std::vector<std::unique_ptr<Occurrences>> occurrences_;
};

}  // namespace guardbit::formats

#include "formats/conversion/code_table.hpp"

#include <cstring>

namespace guardbit::formats {

CodeTable::CodeTable(int width, const Format& to,
                     const std::function<Outcome(std::uint64_t code)>& outcome)
    : width_(width), container_(container_bits(to)) {
  for (std::uint64_t code = 0; code >> width == 0; ++code) {
    outcomes_.push_back(outcome(code));
    results_.push_back((outcomes_.back().code & code_mask(to)) << container_shift(to));
  }
}

template <class Code, class Result>
void CodeTable::convert_as(const std::byte* codes, std::byte* results, std::size_t count,
                           Occurrences& occurrences) const {
  const std::uint64_t mask = results_.size() - 1;
  const std::uint64_t* const table = results_.data();
  std::uint64_t* const counts = occurrences.data();
  for (std::size_t i = 0; i < count; ++i) {
    Code code = 0;
    std::memcpy(&code, codes + i * sizeof code, sizeof code);
    ++counts[code & mask];
    const auto result = static_cast<Result>(table[code & mask]);
    std::memcpy(results + i * sizeof result, &result, sizeof result);
  }
}

template <class Code>
void CodeTable::convert_from(const std::byte* codes, std::byte* results, std::size_t count,
                             Occurrences& occurrences) const {
  switch (container_) {
    case 8: return convert_as<Code, std::uint8_t>(codes, results, count, occurrences);
    case 16: return convert_as<Code, std::uint16_t>(codes, results, count, occurrences);
    case 32: return convert_as<Code, std::uint32_t>(codes, results, count, occurrences);
    default: return convert_as<Code, std::uint64_t>(codes, results, count, occurrences);
  }
}

std::unique_ptr<CodeTable::Occurrences> CodeTable::take_occurrences() {
  const std::lock_guard lock(mutex_);
  if (occurrences_.empty()) return std::make_unique<Occurrences>(outcomes_.size());
  auto taken = std::move(occurrences_.back());
  occurrences_.pop_back();
  return taken;
}

void CodeTable::convert(const std::byte* codes, std::byte* results, std::size_t count) {
  auto occurrences = take_occurrences();
  if (width_ <= 8) {
    convert_from<std::uint8_t>(codes, results, count, *occurrences);
  } else {
    convert_from<std::uint16_t>(codes, results, count, *occurrences);
  }
  const std::lock_guard lock(mutex_);
  occurrences_.push_back(std::move(occurrences));
}

Tally CodeTable::tally() const {
  Tally sum;
  for (const auto& occurrences : occurrences_) {
    for (std::size_t code = 0; code < outcomes_.size(); ++code) {
      if ((*occurrences)[code] != 0) sum.add(outcomes_[code], (*occurrences)[code]);
    }
  }
  return sum;
}

}  // namespace guardbit::formats

#include "emulator/operators/attention/dropout.hpp"

#include <cmath>

#include "emulator/operators/operator_tensor.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::attention {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// Philox 4x32 with so many rounds.
Words philox(std::uint64_t seed, std::uint64_t counter, std::uint64_t subsequence, int rounds) {
  Words c = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
             static_cast<std::uint32_t>(subsequence),
             static_cast<std::uint32_t>(subsequence >> 32)};
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(second >> 32) ^ c[1] ^ low, static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ c[3] ^ high, static_cast<std::uint32_t>(first)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return c;
}

/// FlashAttention: a lane of a warp draws 16 bytes for its places in 16 rows and 32 columns.
bool is_kept_by_flash(const Problem& x, std::int64_t head, std::int64_t query, std::int64_t key) {
  const std::int64_t lane = query % 8 * 4 + key % 8 / 2;
  const auto place = static_cast<std::uint64_t>(query / 16) | static_cast<std::uint64_t>(key / 32)
                                                                  << 32;
  const Words words = philox(
      x.dropout.seed, x.dropout.offset + static_cast<std::uint64_t>(head * 32 + lane), place, 7);
  const std::int64_t byte = key % 32 / 16 * 8 + key % 16 / 8 * 4 + query % 16 / 8 * 2 + key % 2;
  const std::uint32_t drawn = words[byte / 4] >> (byte % 4 * 8) & 0xff;
  const float kept = 1.0F - static_cast<float>(x.dropout.probability);
  return drawn <= static_cast<std::uint32_t>(std::floor(static_cast<double>(kept) * 255.0));
}

/// CUTLASS: the numbers of one sequence, in row-major order of all scores.
bool is_kept_by_efficient(const Problem& x, std::int64_t head, std::int64_t query,
                          std::int64_t key) {
  const std::uint64_t at =
      x.dropout.offset + static_cast<std::uint64_t>((head * x.queries + query) * x.keys + key);
  const Words words = philox(x.dropout.seed, at / 4, 0, 10);
  const float number = std::fma(static_cast<float>(words[at % 4]), 0x1p-32F, 0x1p-33F);
  return number > static_cast<float>(x.dropout.probability);
}

/// cuDNN: a lane draws 16 numbers of 16 bits for places of 16 queries and 16 keys; queries 2, 4 and
/// 6 apart in a group of eight share theirs.
bool is_kept_by_cudnn(const Problem& x, std::int64_t head, std::int64_t query, std::int64_t key) {
  const auto tiles = static_cast<std::uint64_t>(formats::divided_up(x.queries, 16));
  const std::uint64_t tile =
      static_cast<std::uint64_t>(query / 16) + static_cast<std::uint64_t>(key / 16) * tiles;
  const Words words =
      philox(x.dropout.seed, x.dropout.offset / 4 + static_cast<std::uint64_t>(8 * head + key % 8),
             tile, 7);
  const std::uint32_t word = words[key / 8 % 2 + 2 * (query / 8 % 2)];
  const std::uint32_t drawn = query % 2 == 0 ? word & 0xffff : word >> 16;
  return drawn < (1.0 - x.dropout.probability) * 65536;
}

}  // namespace

bool DroppedKeys::is_kept(std::int64_t query, std::int64_t key) const {
  switch (order_) {
    case DropoutOrder::flash: return is_kept_by_flash(problem_, head_, query, key);
    case DropoutOrder::efficient: return is_kept_by_efficient(problem_, head_, query, key);
    case DropoutOrder::cudnn: return is_kept_by_cudnn(problem_, head_, query, key);
    case DropoutOrder::none: break;
  }
  return true;
}

float DroppedKeys::kept_factor() const {
  if (!is_used()) return 1;
  if (order_ == DropoutOrder::flash)
    return 1.0F / (1.0F - static_cast<float>(problem_.dropout.probability));
  return static_cast<float>(
      1.0 / (1.0 - static_cast<double>(static_cast<float>(problem_.dropout.probability))));
}

void DroppedKeys::drop(std::span<float> row, std::int64_t query, std::int64_t first_key) const {
  if (!is_used()) return;
  const formats::Format& type = problem_.type;
  // CUTLASS scales the rounded probabilities, cuDNN those in FP32, FlashAttention the outputs.
  const bool rounds = order_ == DropoutOrder::efficient;
  const float factor = rounds                          ? operators::rounded_to(type, kept_factor())
                       : order_ == DropoutOrder::cudnn ? kept_factor()
                                                       : 1;
  for (float& p : row) {
    if (rounds) p = operators::rounded_to(type, p);
    p *= is_kept(query, first_key++) ? factor : 0;
  }
}

}  // namespace guardbit::emulator::attention

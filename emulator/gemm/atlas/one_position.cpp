#include "emulator/gemm/atlas/one_position.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace guardbit::emulator::atlas {
namespace {

/// Numbers of keys, in the order of a row's letters.
constexpr auto keys = std::to_array<std::int32_t>({
#include "emulator/gemm/atlas/one_position_keys.inc"
});

/// What was recorded of queries of so many features, with so many heads. A letter for each number
/// of keys: lanes, as a power of two, that share K in equal runs; t: tensor cores, one chain; ?:
/// not told.
struct Row {
  Numbers numbers;
  std::int32_t features, heads;
  std::string_view plans;
};
constexpr auto rows = std::to_array<Row>({
#include "emulator/gemm/atlas/one_position_rows.inc"
});

constexpr char untold = '?', tensor_cores = 't';

/// The letter at a number of keys; if it is not listed that of its neighbours, if they have one,
/// else `untold`. In 16 bits it depends on what divides the number, so that neighbours tell
/// nothing.
char letter_at(const Row& row, std::int64_t count) {
  const auto* const at = std::lower_bound(keys.begin(), keys.end(), count);
  if (at == keys.end() || (at == keys.begin() && *at != count)) return untold;
  const auto place = static_cast<std::size_t>(at - keys.begin());
  const char letter = row.plans[place];
  if (*at == count) return letter;
  return row.numbers == Numbers::f32 && row.plans[place - 1] == letter ? letter : untold;
}

/// The rows of a call's numbers and features with as many heads, or with the next fewer and more.
std::span<const Row> rows_around(const ProductCall& call) {
  const auto is_of_call = [&](const Row& row) {
    return row.numbers == call.numbers && row.features == call.k;
  };
  const auto* const begin = std::find_if(rows.begin(), rows.end(), is_of_call);
  const auto* const end = std::find_if_not(begin, rows.end(), is_of_call);
  const auto* const at = std::lower_bound(
      begin, end, call.batch, [](const Row& row, std::int64_t heads) { return row.heads < heads; });
  if (at == end) return {};
  if (at->heads == call.batch) return {at, 1};
  return at == begin ? std::span<const Row>{} : std::span(at - 1, 2);
}

bool is_listed(const ProductCall& call, std::span<const Row> around) {
  return around.size() == 1 && std::binary_search(keys.begin(), keys.end(), call.n);
}

}  // namespace

std::optional<Leaf> leaf_of_one_position(const ProductCall& call) {
  const bool is_contiguous = call.leading_of_a() == call.k && call.leading_of_b() == call.k;
  if (call.op != Operator::bmm || call.m != 1 || call.a_transposed || !call.b_transposed ||
      !is_contiguous || !call.whole_batches)
    return std::nullopt;
  const std::span<const Row> around = rows_around(call);
  if (around.empty()) return std::nullopt;
  const char letter = letter_at(around.front(), call.n);
  if (letter == untold || letter_at(around.back(), call.n) != letter) return std::nullopt;
  constexpr int recorded = 1000;
  Leaf leaf;
  leaf.agree = is_listed(call, around) ? recorded : rule_agrees;
  if (letter == tensor_cores) {
    leaf.form = Form::chain;
    return leaf;
  }
  leaf.form = Form::lanes_halves;
  leaf.unit = Unit::simt;
  leaf.lanes = 1 << (letter - '0');
  return leaf;
}

}  // namespace guardbit::emulator::atlas

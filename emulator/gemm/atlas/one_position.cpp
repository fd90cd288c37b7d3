#include "emulator/gemm/atlas/one_position.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/gemm/atlas/between.hpp"

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
char letter_at(const Row& row, const Between& place) {
  const char letter = row.plans[place.low];
  if (place.is_listed()) return letter;
  return row.numbers == Numbers::f32 && row.plans[place.high] == letter ? letter : untold;
}

/// The rows of a call's numbers and features.
std::span<const Row> rows_of(const ProductCall& call) {
  const auto is_of_call = [&](const Row& row) {
    return row.numbers == call.numbers && row.features == call.k;
  };
  const auto* const begin = std::ranges::find_if(rows, is_of_call);
  return {begin, std::find_if_not(begin, rows.end(), is_of_call)};
}

}  // namespace

std::optional<Leaf> leaf_of_one_position(const ProductCall& call) {
  const bool is_contiguous = call.leading_of_a() == call.k && call.leading_of_b() == call.k;
  if (call.op != Operator::bmm || call.m != 1 || call.a_transposed || !call.b_transposed ||
      !is_contiguous || !call.whole_batches)
    return std::nullopt;
  const std::span<const Row> of_call = rows_of(call);
  const auto heads = between(of_call, call.batch, &Row::heads), place = between(keys, call.n);
  if (!heads || !place) return std::nullopt;
  const char letter = letter_at(of_call[heads->low], *place);
  if (letter == untold || letter_at(of_call[heads->high], *place) != letter) return std::nullopt;
  constexpr int recorded = 1000;
  Leaf leaf;
  leaf.agree = heads->is_listed() && place->is_listed() ? recorded : rule_agrees;
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

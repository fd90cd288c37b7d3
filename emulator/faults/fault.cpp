#include "emulator/faults/fault.hpp"

#include <array>
#include <cstdio>

namespace guardbit::emulator {

namespace {

struct KindWords {
  std::string_view name, meaning;
};

/// In the order of FaultKind.
constexpr std::array kinds = {
    KindWords{"missing_k", "the products of these k are not in the sum"},
    KindWords{"repeated_k", "the products of these k are in the sum twice"},
    KindWords{"negated_k", "the products of these k are subtracted"},
    KindWords{"weighted_k", "the products of this k have another factor"},
    KindWords{"stale_k", "for these k an operand holds what belongs to other k"},
    KindWords{"permuted_k", "one operand's k are in another order than the other's"},
    KindWords{"permuted_rows", "rows of D hold what belongs to other rows"},
    KindWords{"permuted_columns", "columns of D hold what belongs to other columns"},
    KindWords{"transposed", "an operand, C, D or a tile of D is transposed"},
    KindWords{"moved_tile", "a tile of D holds what belongs to another place"},
    KindWords{"stale_accumulator", "a tile of D holds another tile's sum besides its own"},
    KindWords{"wrong_stride",
              "a matrix was read or written with another leading dimension or start"},
    KindWords{"misplaced_c", "C or the bias was read from other rows or columns"},
    KindWords{"not_written", "elements of D are zero that should not be"},
    KindWords{"not_a_number", "elements of D are NaN or infinite where the operands give numbers"},
    KindWords{"wrong_element", "one element of A, B or D has another value"},
    KindWords{"alpha", "the product has another factor"},
    KindWords{"beta", "C has another factor"},
    KindWords{"missing_c", "C is not added"},
    KindWords{"constant", "a constant is added to every element"},
    KindWords{"bias", "a number for each row or for each column is added"},
    KindWords{"line_factor", "rows or columns of D have factors of their own"},
    KindWords{"activation", "D went through a function"},
    KindWords{"clamped", "D is limited to a range"},
    KindWords{"wrapped", "integers are right only modulo a power of two"},
    KindWords{"converted_input", "operands were converted to a narrower format"},
    KindWords{"converted_output", "D went through a narrower format"},
    KindWords{"narrow_accumulator", "sums were kept in a narrower format"},
    KindWords{"unknown", "D is wrong in a way that has no name here"},
};
static_assert(kinds.size() == fault_kind_count);

}  // namespace

std::string_view name_of(FaultKind kind) { return kinds[static_cast<std::size_t>(kind)].name; }
std::string_view meaning_of(FaultKind kind) {
  return kinds[static_cast<std::size_t>(kind)].meaning;
}

bool is_conversion(FaultKind kind) {
  return kind == FaultKind::converted_input || kind == FaultKind::converted_output ||
         kind == FaultKind::narrow_accumulator;
}

std::vector<Places> places_of(const std::vector<std::int64_t>& numbers) {
  std::vector<Places> result;
  for (const std::int64_t i : numbers) {
    if (!result.empty() && result.back().end == i)
      ++result.back().end;
    else
      result.push_back({i, i + 1});
  }
  return result;
}

std::vector<std::int64_t> numbers_in(const std::vector<Places>& places) {
  std::vector<std::int64_t> numbers;
  for (const Places& range : places)
    for (std::int64_t i = range.begin; i < range.end; ++i) numbers.push_back(i);
  return numbers;
}

std::string text_of(const std::vector<Places>& places) {
  const auto range = [](const Places& x) {
    return std::to_string(x.begin) +
           (x.end == x.begin + 1 ? "" : " to " + std::to_string(x.end - 1));
  };
  constexpr std::size_t most = 4;
  if (places.size() > 2) {
    const std::int64_t step = places[1].begin - places[0].begin;
    bool is_regular = true;
    for (std::size_t i = 1; i < places.size(); ++i)
      is_regular = is_regular && places[i].begin == places[i - 1].begin + step &&
                   (places[i].end - places[i].begin == places[0].end - places[0].begin ||
                    i + 1 == places.size());
    if (is_regular)
      return range(places[0]) + " and the same every " + std::to_string(step) + " further, up to " +
             std::to_string(places.back().end - 1);
  }
  std::string text;
  for (std::size_t i = 0; i < places.size() && i < most; ++i)
    text += (text.empty() ? "" : ", ") + range(places[i]);
  if (places.size() > most)
    text += " and " + std::to_string(places.size() - most) + " further ranges";
  return text;
}

std::string text_of(double number, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return text.data();
}

}  // namespace guardbit::emulator

#include "emulator/faults/fault.hpp"

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
    KindWords{"not_written", "elements of D are zero that should not be"},
    KindWords{"not_a_number", "elements of D are NaN or infinite where the operands give numbers"},
    KindWords{"wrong_element", "one element of A, B or D has another value"},
    KindWords{"alpha", "the product has another factor"},
    KindWords{"beta", "C has another factor"},
    KindWords{"missing_c", "C is not added"},
    KindWords{"constant", "a constant is added to every element"},
    KindWords{"bias", "a number for each row or for each column is added"},
    KindWords{"activation", "D went through a function"},
    KindWords{"clamped", "D is limited to a range"},
    KindWords{"converted_input", "operands were converted to a narrower format"},
    KindWords{"converted_output", "D went through a narrower format"},
    KindWords{"narrow_accumulator", "sums were kept in a narrower format"},
    KindWords{"unknown", "D is wrong in a way that has no name here"},
};
static_assert(kinds.size() == static_cast<std::size_t>(FaultKind::unknown) + 1);

}  // namespace

std::string_view name_of(FaultKind kind) { return kinds[static_cast<std::size_t>(kind)].name; }
std::string_view meaning_of(FaultKind kind) {
  return kinds[static_cast<std::size_t>(kind)].meaning;
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

}  // namespace guardbit::emulator

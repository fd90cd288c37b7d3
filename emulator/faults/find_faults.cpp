#include "emulator/faults/find_faults.hpp"

#include <algorithm>
#include <cmath>

#include "emulator/faults/hypotheses.hpp"

namespace guardbit::emulator {

namespace {

using Hypothesis = Faults (*)(const ProductNumbers&);

/// Those that speak of all of D, simple ones first.
constexpr Hypothesis of_all[] = {find_factors,          find_output_conversion, find_activation,
                                 find_input_conversion, find_transposition,     find_wrong_elements,
                                 find_k_weights,        find_permuted_lines,    find_k_sources};

Faults first_that_fits(const ProductNumbers& x, const std::function<bool()>& interrupted) {
  for (const Hypothesis hypothesis : of_all) {
    if (interrupted && interrupted()) return {};
    if (Faults faults = hypothesis(x); !faults.empty()) return faults;
  }
  return {};
}

Faults not_a_number(const ProductNumbers& x, const Expected& asked) {
  std::vector<std::int64_t> rows, columns;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t j = 0; j < x.n(); ++j)
      if (!std::isfinite(x.d(i, j)) && std::isfinite(asked.result(i, j))) {
        ++count;
        if (rows.empty() || rows.back() != i) rows.push_back(i);
        columns.push_back(j);
      }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (count == 0) return {};
  return {{.kind = FaultKind::not_a_number,
           .rows = places_of(rows),
           .columns = places_of(columns),
           .operand = "d",
           .text = std::to_string(count) +
                   " elements of D are NaN or infinite where the operands give numbers"}};
}

/// The outputs that are wrong, as a product of their own, if they are a part of D.
Faults in_part(const ProductNumbers& x, const Disagreement& wrong,
               const std::function<bool()>& interrupted) {
  std::int64_t top = -1, bottom = 0, left = x.n(), right = 0;
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t j = 0; j < x.n(); ++j)
      if (wrong.at[static_cast<std::size_t>(i * x.n() + j)]) {
        if (top < 0) top = i;
        bottom = i + 1, left = std::min(left, j), right = std::max(right, j + 1);
      }
  if (10 * (bottom - top) * (right - left) > 7 * x.m() * x.n()) return {};
  Faults faults = first_that_fits(x.part(top, bottom - top, left, right - left), interrupted);
  for (Fault& fault : faults) {
    if (!fault.rows.empty() || !fault.columns.empty()) continue;
    fault.rows = {{top, bottom}};
    fault.columns = {{left, right}};
    fault.text = "in rows " + std::to_string(top) + " to " + std::to_string(bottom - 1) +
                 ", columns " + std::to_string(left) + " to " + std::to_string(right - 1) + ": " +
                 fault.text;
  }
  return faults;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::rounded_once: return "rounded_once";
    case Verdict::valid_rounding: return "valid_rounding";
    case Verdict::wrong: return "wrong";
  }
  return "";
}

Judgement judge(const ProductNumbers& x, const std::function<bool()>& interrupted) {
  Judgement result;
  result.outputs = x.m() * x.n();
  if (is_rounded_once(x)) {
    result.verdict = Verdict::rounded_once;
    return result;
  }
  const Expected asked = x.asked();
  for (std::size_t i = 0; i < x.d.values.size(); ++i)
    if (std::isfinite(x.d.values[i]) && std::isfinite(asked.result.values[i]) &&
        asked.magnitude.values[i] > 0)
      result.largest_error =
          std::max(result.largest_error,
                   std::abs(x.d.values[i] - asked.result.values[i]) / asked.magnitude.values[i]);
  const Disagreement wrong = disagreement(x, asked);
  result.wrong = wrong.count;
  if (wrong.count == 0) {
    result.verdict = Verdict::valid_rounding;
    result.faults = find_output_conversion(x);
    return result;
  }
  result.faults = not_a_number(x, asked);
  if (result.faults.empty()) result.faults = first_that_fits(x, interrupted);
  if (result.faults.empty()) result.faults = find_moved_tile(x);
  if (result.faults.empty()) result.faults = in_part(x, wrong, interrupted);
  if (result.faults.empty()) {
    result.faults = find_narrow_accumulator(x);
    if (!result.faults.empty()) result.verdict = Verdict::valid_rounding;
  }
  if (result.faults.empty())
    result.faults = {
        {.kind = FaultKind::unknown,
         .text =
             std::to_string(wrong.count) + " of " + std::to_string(result.outputs) +
             " elements are further from the exact result than rounding explains, for no reason that has a name here"}};
  return result;
}

}  // namespace guardbit::emulator

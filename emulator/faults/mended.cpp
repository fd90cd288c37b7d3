#include "emulator/faults/mended.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// Sets an element to a number; false if its format does not have it.
bool put(CodeMatrix& x, std::int64_t at, double value) {
  const std::uint64_t code = scalar::encoded(x.format, value);
  if (scalar::decoded(x.format, code) != value) return false;
  x.set(at, code);
  return true;
}

/// Each k of A times the weight that the kernel gave it.
bool weigh(CodeMatrix& a, const Fault& fault) {
  if (!fault.value) return false;
  for (const std::int64_t k : numbers_in(fault.k))
    for (std::int64_t line = 0; line < a.batch * a.rows; ++line) {
      const std::int64_t at = line * a.columns + k;
      if (!put(a, at, *fault.value * scalar::decoded(a.format, a[at]))) return false;
    }
  return true;
}

/// D in the narrower format that it went through.
bool narrow(CodeMatrix& d, const std::string& name) {
  for (const formats::Format& format :
       {formats::fp16, formats::bf16, formats::e4m3, formats::e5m2}) {
    if (formats::name_of(format) != name) continue;
    CodeMatrix result = make_matrix(format, d.batch, d.rows, d.columns);
    for (std::int64_t at = 0; at < d.size(); ++at)
      if (!put(result, at, scalar::decoded(d.format, d[at]))) return false;
    d = std::move(result);
    return true;
  }
  return false;
}

bool is_of_a_part(const Fault& fault) {
  const bool is_operand = fault.operand == "a" || fault.operand == "b";
  return !(fault.rows.empty() && fault.columns.empty()) &&
         !(fault.kind == FaultKind::wrong_element && is_operand);
}

/// Puts one fault into the problem.
bool put_in(GemmCapture& capture, const Fault& fault) {
  GemmProblem& x = capture.problem;
  switch (fault.kind) {
    case FaultKind::missing_k:
    case FaultKind::repeated_k:
    case FaultKind::negated_k:
    case FaultKind::weighted_k: return weigh(x.a, fault);
    case FaultKind::alpha: capture.alpha = fault.value.value_or(1); return true;
    case FaultKind::beta: capture.beta = fault.value.value_or(1); return true;
    case FaultKind::missing_c: capture.beta = 0; return true;
    case FaultKind::bias:
      if (fault.value != 0 || !fault.columns.empty()) return false;
      x.bias = {};
      return true;
    case FaultKind::activation:
      capture.activation = formats::find_word<Activation>(fault.name).value_or(Activation::none);
      return capture.activation != Activation::none;
    case FaultKind::converted_output:
      return fault.operand == "d" && !fault.value && narrow(capture.d, fault.name);
    case FaultKind::transposed:
      if (fault.operand == "d") capture.d = capture.d.transposed().contiguous();
      if (fault.operand == "c") x.c = x.c.transposed().contiguous();
      if (fault.operand == "a") x.a = x.a.transposed().contiguous();
      if (fault.operand == "b") x.b = x.b.transposed().contiguous();
      return x.a.rows == capture.d.rows && x.b.columns == capture.d.columns &&
             x.a.columns == x.b.rows;
    case FaultKind::wrong_element: {
      CodeMatrix& operand = fault.operand == "a" ? x.a : x.b;
      if (operand.batch != 1 || !fault.value) return false;
      return put(operand, operand.index(0, fault.rows[0].begin, fault.columns[0].begin),
                 *fault.value);
    }
    default: return false;
  }
}

/// Leaves out most of a large product: some rows and columns tell its plan.
void shorten(Mended& x) {
  constexpr std::int64_t side = 96;
  GemmCapture& capture = x.capture;
  const auto work =
      static_cast<double>(capture.d.size()) * static_cast<double>(capture.problem.k());
  if (work < 1e8 || (capture.d.rows <= side && capture.d.columns <= side)) return;
  const Selection2d few = {spread(capture.d.rows, side), spread(capture.d.columns, side)};
  capture.problem = select(capture.problem, few);
  capture.d = select(capture.d, few);
  x.is_part = true;
}

/// The numbers below `count` that are in none of the places.
std::vector<std::int64_t> others(std::int64_t count, const std::set<std::int64_t>& places) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i)
    if (!places.contains(i)) result.push_back(i);
  return result;
}

/// The capture without the rows, or without the columns, in which these faults are: what leaves
/// more.
std::optional<Mended> without_wrong_lines(const GemmCapture& capture,
                                          const std::vector<Fault>& faults) {
  std::set<std::int64_t> rows, columns;
  for (const Fault& fault : faults) {
    const auto take = [](const std::vector<Places>& places, std::int64_t all,
                         std::set<std::int64_t>& into) {
      const std::vector<std::int64_t> numbers =
          numbers_in(places.empty() ? std::vector<Places>{{0, all}} : places);
      into.insert(numbers.begin(), numbers.end());
    };
    take(fault.rows, capture.d.rows, rows);
    take(fault.columns, capture.d.columns, columns);
  }
  Selection2d right = {others(capture.d.rows, rows), others(capture.d.columns, columns)};
  if (right.rows.empty() && right.columns.empty()) return {};
  const bool by_rows =
      std::ssize(right.rows) * capture.d.columns >= std::ssize(right.columns) * capture.d.rows;
  if (by_rows)
    right.columns = all_numbers(capture.d.columns);
  else
    right.rows = all_numbers(capture.d.rows);
  Mended result{capture, true};
  result.capture.problem = select(capture.problem, right);
  result.capture.d = select(capture.d, right);
  shorten(result);
  return result;
}

}  // namespace

std::optional<Mended> mended(const GemmCapture& capture, const Judgement& judgement) {
  if (capture.kind != "gemm" || judgement.faults.empty()) return {};
  const bool has_scales = capture.problem.scale_k != 0;
  // Faults of all of D are put in; then the lines are left out in which others are.
  std::vector<Fault> of_parts;
  Mended result{capture};
  for (const Fault& fault : judgement.faults) {
    if (is_of_a_part(fault))
      of_parts.push_back(fault);
    else if (has_scales || !put_in(result.capture, fault))
      return {};
  }
  if (!of_parts.empty()) return without_wrong_lines(result.capture, of_parts);
  shorten(result);
  return result;
}

}  // namespace guardbit::emulator

#include "emulator/faults/judge_capture.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "emulator/faults/code_numbers.hpp"
#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/faults/misread_codes.hpp"
#include "emulator/faults/misread_scales.hpp"
#include "emulator/faults/nonfinite_outputs.hpp"
#include "emulator/faults/signed_sums.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/stop.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// Work that one look at a product may take, in multiply-adds.
constexpr double most_work = 4e7;

/// Lines of D to look at.
struct Chosen {
  std::vector<std::int64_t> lines;
  /// lines that are off where a quarter or more are not
  std::vector<std::int64_t> off;
};

double lower_quartile(std::vector<double> list) {
  if (list.empty()) return 0;
  const auto place = list.begin() + std::ssize(list) / 4;
  std::nth_element(list.begin(), place, list.end());
  return *place;
}

/// At most `count` lines: some that are far off with their neighbours, then the first ones and
/// others spread over all.
Chosen choose(const std::vector<double>& off, std::int64_t count) {
  Chosen result;
  const auto n = std::ssize(off);
  const double limit = 16 * std::max(lower_quartile(off), 1.0);
  for (std::int64_t i = 0; i < n; ++i)
    if (off[static_cast<std::size_t>(i)] > limit) result.off.push_back(i);
  std::set<std::int64_t> lines;
  const auto take = [&](std::int64_t begin, std::int64_t end, std::int64_t most) {
    for (std::int64_t i = std::max<std::int64_t>(0, begin);
         i < std::min(n, end) && std::ssize(lines) < most; ++i)
      lines.insert(i);
  };
  for (const std::int64_t i : spread(n, count / 4)) lines.insert(i);
  if (!result.off.empty()) {
    // What is wrong lies in one place, or in places of one pattern: the first, whole.
    const std::int64_t first = result.off.front() / 16 * 16;
    take(first, first + count / 2, 3 * count / 4);
    for (const std::int64_t o : spread(std::ssize(result.off), count / 8))
      lines.insert(result.off[static_cast<std::size_t>(o)]);
  }
  take(0, n, count);
  result.lines.assign(lines.begin(), lines.end());
  return result;
}

void drop_nonfinite(const CodeNumbers& operand, std::vector<std::int64_t>& rows) {
  std::erase_if(rows, [&](std::int64_t i) { return !operand.is_finite_row(i); });
}

WholeProduct whole_of(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g) {
  const auto reader = [g](const CodeMatrix& matrix) -> WholeProduct::Matrix {
    if (matrix.empty()) return {};
    return [numbers = CodeNumbers(matrix, g)](std::int64_t i, std::int64_t j) {
      return numbers(i, j);
    };
  };
  WholeProduct x;
  x.m = problem.m(), x.n = problem.n(), x.k = problem.k();
  x.a = reader(problem.a), x.b = reader(problem.b), x.c = reader(problem.c);
  x.bias = reader(problem.bias), x.d = reader(capture.d);
  x.alpha = capture.alpha, x.beta = capture.beta;
  x.input = capture.tf32 ? formats::tf32 : problem.a.format;
  x.output = capture.d.format;
  x.activation = capture.activation;
  return x;
}

/// What was left out of the look at a batch entry.
struct LeftOut {
  /// outputs, as they are many
  bool some = false;
  /// rows of A or columns of B that hold infinities or NaNs
  bool infinite = false;
};

/// The lines of a batch entry that are looked at.
struct Look {
  Chosen rows, columns;
  /// of a large product whose operands are numbers and whose D went through no function
  std::optional<SignedSums> row_sums = {}, column_sums = {};
  bool is_all = true;
};

Look look_at(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g, double work) {
  const std::int64_t m = problem.m(), n = problem.n(), k = std::max<std::int64_t>(problem.k(), 1);
  Look look{{all_numbers(m), {}}, {all_numbers(n), {}}};
  look.is_all = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= work;
  if (look.is_all) return look;
  // A square, or all of the shorter side.
  const double outputs = std::max(work / static_cast<double>(k), 64.0);
  const auto side = static_cast<std::int64_t>(std::sqrt(outputs));
  const auto count = [&](std::int64_t here, std::int64_t across) {
    const std::int64_t longest =
        across < side ? static_cast<std::int64_t>(outputs) / std::max<std::int64_t>(across, 1)
                      : side;
    return std::min(here, longest);
  };
  const bool is_scaled = !problem.scale_a.empty() || !problem.scale_b.empty();
  if (!is_scaled && capture.activation == Activation::none) {
    look.row_sums = signed_sums(capture, problem, g, true);
    look.column_sums = signed_sums(capture, problem, g, false);
  }
  const auto off = [](const std::optional<SignedSums>& sums, std::int64_t lines) {
    return sums ? sums->lines_off() : std::vector<double>(static_cast<std::size_t>(lines));
  };
  look.rows = choose(off(look.row_sums, m), count(m, n));
  look.columns = choose(off(look.column_sums, n), count(n, m));
  return look;
}

/// Of a wrong product: scales, batch entries or codes that were taken for others.
Faults misread_faults(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                      const ProductNumbers& x, const Judgement& judged) {
  const bool is_named =
      std::any_of(judged.faults.begin(), judged.faults.end(),
                  [](const Fault& fault) { return fault.kind != FaultKind::unknown; });
  Faults faults = find_misread_scales(capture, problem, g, x);
  if (faults.empty()) faults = find_other_entry(capture, problem, g);
  if (faults.empty() && !is_named) faults = find_misread_codes(capture, problem, g);
  return faults;
}

/// One batch entry.
Judgement judge_entry(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                      double work, LeftOut& left_out, const std::function<bool()>& interrupted) {
  Look look = look_at(capture, problem, g, work);
  Chosen &rows = look.rows, &columns = look.columns;
  left_out.some = left_out.some || !look.is_all;
  const std::size_t lines = rows.lines.size() + columns.lines.size();
  drop_nonfinite(CodeNumbers(problem.a, g), rows.lines);
  drop_nonfinite(CodeNumbers(problem.b.transposed(), g), columns.lines);
  left_out.infinite = left_out.infinite || rows.lines.size() + columns.lines.size() != lines;
  if (rows.lines.empty() || columns.lines.empty()) return {Verdict::valid_rounding};
  ProductNumbers x = numbers_of(capture, problem, g, rows.lines, columns.lines);
  x.rows.wrong = rows.off;
  x.rows.count = problem.m(), x.rows.looked_at = std::ssize(rows.lines);
  x.columns.wrong = columns.off;
  x.columns.count = problem.n(), x.columns.looked_at = std::ssize(columns.lines);
  WholeProduct whole = whole_of(capture, problem, g);
  // Where operands have scales, their codes alone are no numbers.
  if (!problem.scale_a.empty() || !problem.scale_b.empty()) whole.m = 0;
  Faults moved;
  bool is_cut_short = !formats::ends_before(interrupted, [&] {
    if (look.row_sums) moved = find_moved_lines(capture, problem, g, *look.row_sums, x, false);
    if (look.column_sums && moved.empty())
      moved = find_moved_lines(capture, problem, g, *look.column_sums, x, true);
  });
  Judgement result = moved.empty() ? judge(x, whole, interrupted) : wrong_judgement(x, moved);
  if (result.verdict != Verdict::wrong) return result;
  Faults misread;
  is_cut_short |= !formats::ends_before(
      interrupted, [&] { misread = misread_faults(capture, problem, g, x, result); });
  if (!misread.empty()) result.faults = std::move(misread);
  result.is_cut_short |= is_cut_short;
  return result;
}

/// One batch entry, what is NaN or infinite in it besides.
Judgement judge_entry_and_classes(const GemmCapture& capture, const GemmProblem& problem,
                                  std::int64_t g, double work, LeftOut& left_out,
                                  const std::function<bool()>& interrupted) {
  Judgement result = judge_entry(capture, problem, g, work, left_out, interrupted);
  const auto lost = find_lost_nonfinite(capture, problem, g);
  if (!lost) return result;
  if (result.verdict != Verdict::wrong) result.faults.clear();
  result.verdict = Verdict::wrong;
  result.wrong += std::ssize(lost->outputs);
  result.outputs = std::max(result.outputs, result.wrong);
  result.faults.insert(result.faults.begin(), lost->fault);
  const std::vector<std::int64_t> some = spread(std::ssize(lost->outputs), 8);
  for (const std::int64_t i : some)
    result.examples.push_back(lost->outputs[static_cast<std::size_t>(i)]);
  return result;
}

Judgement without_activation(const GemmCapture& capture, std::int64_t wrong,
                             const std::string& why) {
  Judgement result{Verdict::wrong};
  result.outputs = capture.d.size();
  result.wrong = wrong;
  result.faults = {
      {.kind = FaultKind::activation,
       .name = "none",
       .text = "D did not go through " + std::string(formats::word_of(capture.activation)) + why}};
  return result;
}

/// "C" or "the bias", if D is that and ReLU of the product; else nothing.
std::string added_after_relu(const GemmCapture& capture) {
  if (capture.activation != Activation::relu || capture.convolution) return "";
  const GemmProblem& problem = capture.problem;
  const bool has_c = !problem.c.empty() && capture.beta != 0;
  if (!has_c && problem.bias.empty()) return "";
  GemmCapture plain = capture;
  plain.activation = Activation::none;
  const ProductNumbers x =
      numbers_of(plain, problem, 0, spread(problem.m(), 48), spread(problem.n(), 48));
  const Expected product = x.product_alone();
  Expected expected = x.asked();
  for (std::size_t i = 0; i < expected.result.values.size(); ++i)
    expected.result.values[i] -= std::min(product.result.values[i], 0.0);
  if (!agrees(x, expected)) return "";
  return has_c ? "C" : "the bias";
}

struct NotActivated {
  Judgement judgement;
  /// nothing of D went through it
  bool is_whole = false;
};

/// What a result that went through the activation cannot hold: elements below its least value.
std::optional<NotActivated> not_activated(const GemmCapture& capture) {
  if (capture.activation == Activation::none) return {};
  // Rounding takes the least value of a smooth function a little further.
  const bool smooth = is_smooth(capture.activation);
  const double least =
      smooth ? 1.02 * activated_in_doubles(capture.activation, place_of_minimum(capture.activation))
             : 0;
  std::int64_t below = 0;
  double lowest = 0;
  std::set<std::int64_t> rows, columns;
  for (std::int64_t at = 0; at < capture.d.size(); ++at) {
    const double x = scalar::decoded(capture.d.format, capture.d[at]);
    if (!(x < least)) continue;
    ++below;
    lowest = std::min(lowest, x);
    rows.insert(at / capture.d.columns % capture.d.rows);
    columns.insert(at % capture.d.columns);
  }
  if (below == 0) return {};
  const std::string why = ": " + std::to_string(below) +
                          (below == 1 ? " element is " : " elements are ") +
                          (smooth ? "below " + text_of(least, 2) : "negative");
  Judgement result = without_activation(capture, below, why);
  result.largest_error = -lowest;
  Fault& fault = result.faults.front();
  if (const std::string addend = added_after_relu(capture); !addend.empty()) {
    fault.text = "relu was applied before " + addend + " was added" + why;
    return NotActivated{result};
  }
  // Where there are zeros outside of their rows and columns, the function was left out in a part.
  constexpr std::int64_t fewest_zeros = 8;
  std::int64_t zeros = 0;
  for (std::int64_t at = 0; at < capture.d.size(); ++at) {
    const bool is_inside = rows.contains(at / capture.d.columns % capture.d.rows) &&
                           columns.contains(at % capture.d.columns);
    if (!is_inside && scalar::decoded(capture.d.format, capture.d[at]) == 0) ++zeros;
  }
  if (zeros >= fewest_zeros) {
    fault.rows = places_of({rows.begin(), rows.end()});
    fault.columns = places_of({columns.begin(), columns.end()});
    fault.text = "in " + lines_of("row", fault.rows) + ", " + lines_of("column", fault.columns) +
                 ": " + fault.text;
  }
  return NotActivated{result, zeros < fewest_zeros};
}

bool same_faults(const Judgement& x, const Judgement& y) {
  return std::equal(x.faults.begin(), x.faults.end(), y.faults.begin(), y.faults.end(),
                    [](const Fault& p, const Fault& q) { return p.text == q.text; });
}

CaptureJudgement judge_as_asked(const GemmCapture& capture,
                                const std::function<bool()>& interrupted);

/// What else is wrong where all of D did not go through its activation.
void add_other_faults(const GemmCapture& capture, const std::function<bool()>& interrupted,
                      CaptureJudgement& result) {
  GemmCapture plain = capture;
  plain.activation = Activation::none;
  CaptureJudgement other = judge_as_asked(plain, interrupted);
  const std::vector<Fault>& faults = other.judgement.faults;
  const bool are_named = std::none_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::unknown || fault.kind == FaultKind::activation;
  });
  if (other.judgement.verdict != Verdict::wrong || !are_named) return;
  result.judgement.faults.insert(result.judgement.faults.end(), faults.begin(), faults.end());
  result.limits = std::move(other.limits);
}

CaptureJudgement judge_as_asked(const GemmCapture& capture,
                                const std::function<bool()>& interrupted) {
  constexpr std::int64_t most_entries = 64;
  const GemmProblem problem = capture.lowered({});
  CaptureJudgement result;
  result.outputs = capture.d.size();
  if (auto missing = not_activated(capture)) {
    result.judgement = std::move(missing->judgement);
    if (missing->is_whole) add_other_faults(capture, interrupted, result);
    return result;
  }
  const std::vector<std::int64_t> entries = spread(capture.d.batch, most_entries);
  const double work = std::max(most_work / static_cast<double>(entries.size()), 2e6);
  std::int64_t looked_at = 0;
  LeftOut left_out = {std::ssize(entries) != capture.d.batch};
  std::vector<std::pair<std::int64_t, Judgement>> judged;
  for (const std::int64_t g : entries) {
    if (!judged.empty() && interrupted && interrupted()) break;
    judged.emplace_back(g,
                        judge_entry_and_classes(capture, problem, g, work, left_out, interrupted));
    looked_at += judged.back().second.outputs;
  }
  if (judged.empty()) {
    result.judgement.verdict = Verdict::valid_rounding;
    return result;
  }
  // The worst verdict holds for all; faults that all entries have are said once.
  const bool all_alike = std::all_of(judged.begin(), judged.end(), [&](const auto& x) {
    return same_faults(x.second, judged.front().second);
  });
  Judgement& total = result.judgement = judged.front().second;
  const bool is_cut_short = std::any_of(judged.begin(), judged.end(),
                                        [](const auto& x) { return x.second.is_cut_short; });
  if (!all_alike) total.faults.clear();
  total.wrong = 0;
  total.outputs = looked_at;
  constexpr std::size_t most_faults = 12;
  for (auto& [g, x] : judged) {
    total.verdict = std::max(total.verdict, x.verdict);
    total.largest_error = std::max(total.largest_error, x.largest_error);
    total.wrong += x.wrong;
    constexpr std::size_t most_examples = 64;
    for (const auto& [row, column] : x.examples)
      if (result.examples.size() < most_examples) result.examples.push_back({g, row, column});
    if (all_alike || x.faults.empty() || total.faults.size() >= most_faults) continue;
    for (Fault& fault : x.faults) {
      fault.text = "batch entry " + std::to_string(g) + ": " + fault.text;
      total.faults.push_back(fault);
    }
  }
  if (is_cut_short)
    result.limits.emplace_back("there was no time to try every fault that has a name");
  if (left_out.infinite)
    result.limits.emplace_back(
        is_looked_for_nonfinite(capture, problem)
            ? "rows of A and columns of B that hold infinities or NaNs were looked at for these alone"
            : "rows of A and columns of B that hold infinities or NaNs were not looked at");
  if (left_out.some)
    result.limits.push_back(std::to_string(looked_at) + " of " + std::to_string(result.outputs) +
                            " outputs were looked at one by one" +
                            (problem.scale_a.empty() && problem.scale_b.empty() &&
                                     capture.activation == Activation::none
                                 ? "; the sums of all rows and columns with random signs chose them"
                                 : ""));
  return result;
}

/// The one fault of a judgement, where that is a function that D or a part of it went through.
const Fault* function_fault(const Judgement& judgement) {
  const bool is_named =
      judgement.faults.size() == 1 && judgement.faults.front().kind == FaultKind::activation;
  return is_named ? &judgement.faults.front() : nullptr;
}

bool names_function(const Judgement& judgement, std::string_view name) {
  const Fault* const fault = function_fault(judgement);
  return fault != nullptr && fault->name == name;
}

}  // namespace

CaptureJudgement judge(const GemmCapture& capture, const std::function<bool()>& interrupted) {
  CaptureJudgement result = judge_as_asked(capture, interrupted);
  const bool is_wrong = result.judgement.verdict == Verdict::wrong;
  if (!is_smooth(capture.activation) || (!is_wrong && result.judgement.faults.empty()))
    return result;
  // Did it go through nothing, or through another function?
  GemmCapture plain = capture;
  plain.activation = Activation::none;
  CaptureJudgement other = judge_as_asked(plain, interrupted);
  if (other.judgement.verdict != Verdict::wrong) {
    if (!is_wrong || names_function(result.judgement, "none")) return result;
    other.judgement = without_activation(capture, result.judgement.wrong, "");
    return other;
  }
  const Fault* const fault = function_fault(other.judgement);
  if (fault == nullptr || fault->name == "unknown") return result;
  const std::string_view asked = formats::word_of(function_of(capture.activation));
  // The function that was asked for may have been applied too early: before C or the bias was
  // added.
  if (fault->name != asked || fault->text != activation_fault(asked).text) return other;
  if (!is_wrong) return result;
  result.judgement.verdict = Verdict::valid_rounding;
  result.judgement.wrong = 0;
  result.judgement.faults.clear();
  return result;
}

}  // namespace guardbit::emulator

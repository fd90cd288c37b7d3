#include "emulator/faults/judge_capture.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "emulator/faults/code_numbers.hpp"
#include "emulator/faults/misread_codes.hpp"
#include "emulator/faults/nonfinite_outputs.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// Work that one look at a product may take, in multiply-adds.
constexpr double most_work = 4e7;

/// Sums of the rows or columns of D with random signs, next to what A and B give: how far each line
/// is off, in units of what honest rounding would do. It costs M K + K N + M N instead of M N K.
class SignedSums {
 public:
  SignedSums(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g)
      : capture_(capture), problem_(problem), g_(g) {}

  /// [line]: how far each row (or column) of D is off.
  std::vector<double> lines_off(bool rows) const;

 private:
  /// Deterministic, so that the same capture gets the same words.
  static double sign(std::int64_t i) {
    auto x = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9U;
    return ((x >> 40) & 1) != 0 ? 1 : -1;
  }

  const GemmCapture& capture_;
  const GemmProblem& problem_;
  std::int64_t g_;
};

std::vector<double> SignedSums::lines_off(bool rows) const {
  const GemmProblem& p = problem_;
  const CodeNumbers a(rows ? p.a : p.b.transposed(), g_), b(rows ? p.b : p.a.transposed(), g_),
      c(rows || p.c.empty() ? p.c : p.c.transposed(), g_),
      d(rows ? capture_.d : capture_.d.transposed(), g_);
  const std::int64_t m = d.rows(), n = d.columns(), k = p.k();
  // B times the signs, and |B| times ones.
  std::vector<double> signed_b(static_cast<std::size_t>(k)), size_b(signed_b);
  std::vector<double> line(static_cast<std::size_t>(std::max({m, n, k})));
  for (std::int64_t l = 0; l < k; ++l) {
    b.read_row(l, line);
    for (std::int64_t j = 0; j < n; ++j) {
      const double value = line[static_cast<std::size_t>(j)];
      signed_b[static_cast<std::size_t>(l)] += sign(j) * value;
      size_b[static_cast<std::size_t>(l)] += value * value;
    }
  }
  double signed_bias = 0;
  const CodeNumbers bias(p.bias, g_);
  if (!bias.empty() && rows) {
    bias.read_row(0, line);
    for (std::int64_t j = 0; j < n; ++j) signed_bias += sign(j) * line[static_cast<std::size_t>(j)];
  }
  double all_signs = 0;
  for (std::int64_t j = 0; j < n; ++j) all_signs += sign(j);
  std::vector<double> off;
  const double spacing = std::ldexp(1.0, -capture_.d.format.fraction_bits);
  const double beta = p.c.empty() ? 0 : capture_.beta;
  for (std::int64_t i = 0; i < m; ++i) {
    double wanted = 0, variance = 0;
    a.read_row(i, line);
    for (std::int64_t l = 0; l < k; ++l) {
      const double value = line[static_cast<std::size_t>(l)];
      wanted += value * signed_b[static_cast<std::size_t>(l)];
      variance += value * value * size_b[static_cast<std::size_t>(l)];
    }
    wanted *= capture_.alpha;
    if (!bias.empty()) wanted += rows ? signed_bias : all_signs * bias(0, i);
    double noise = capture_.alpha * capture_.alpha * variance * 0x1p-40, seen = 0;
    d.read_row(i, line);
    for (std::int64_t j = 0; j < n; ++j) {
      const double value = line[static_cast<std::size_t>(j)];
      seen += sign(j) * value;
      noise += value * value * spacing * spacing;
    }
    if (!c.empty() && beta != 0) {
      c.read_row(i, line);
      for (std::int64_t j = 0; j < n; ++j)
        wanted += beta * sign(j) * line[static_cast<std::size_t>(j)];
    }
    const double difference = std::abs(seen - wanted) / std::sqrt(noise + 1e-300);
    off.push_back(std::isfinite(wanted) ? (std::isfinite(seen) ? difference : 1e300) : 0);
  }
  return off;
}

/// Lines of D to look at.
struct Chosen {
  std::vector<std::int64_t> lines;
  /// lines that are off where most are not
  std::vector<std::int64_t> off;
};

/// At most `count` lines: some that are far off with their neighbours, then the first ones and
/// others spread over all.
Chosen choose(const std::vector<double>& off, std::int64_t count) {
  Chosen result;
  const auto n = std::ssize(off);
  const double limit = 16 * std::max(median(off), 1.0);
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
  // A few lines that are off may hold what belongs to lines near them.
  if (std::ssize(result.off) * 4 < n) {
    const std::set<std::int64_t> chosen = lines;
    for (const std::int64_t o : result.off) {
      if (!chosen.contains(o) || std::ssize(lines) >= 2 * count) continue;
      for (const std::int64_t by : {1, 2, 4, 8, 16, 32, 64})
        for (const std::int64_t i : {o - by, o + by})
          if (i >= 0 && i < n) lines.insert(i);
    }
  }
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
  return x;
}

/// What was left out of the look at a batch entry.
struct LeftOut {
  /// outputs, as they are many
  bool some = false;
  /// rows of A or columns of B that hold infinities or NaNs
  bool infinite = false;
};

/// One batch entry.
Judgement judge_entry(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                      double work, LeftOut& left_out, const std::function<bool()>& interrupted) {
  const std::int64_t m = problem.m(), n = problem.n(), k = std::max<std::int64_t>(problem.k(), 1);
  Chosen rows{all_numbers(m), {}}, columns{all_numbers(n), {}};
  const bool is_scaled = !problem.scale_a.empty() || !problem.scale_b.empty();
  const bool has_sums = !is_scaled && capture.activation == Activation::none;
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > work) {
    left_out.some = true;
    // A square, or all of the shorter side.
    const double outputs = std::max(work / static_cast<double>(k), 64.0);
    const auto side = static_cast<std::int64_t>(std::sqrt(outputs));
    const std::int64_t of_rows =
        n < side ? static_cast<std::int64_t>(outputs) / std::max<std::int64_t>(n, 1) : side;
    const std::int64_t of_columns =
        m < side ? static_cast<std::int64_t>(outputs) / std::max<std::int64_t>(m, 1) : side;
    const SignedSums sums(capture, problem, g);
    const auto lines_off = [&](bool of_rows_) {
      return has_sums ? sums.lines_off(of_rows_)
                      : std::vector<double>(static_cast<std::size_t>(of_rows_ ? m : n));
    };
    rows = choose(lines_off(true), std::min(m, of_rows));
    columns = choose(lines_off(false), std::min(n, of_columns));
  }
  const std::size_t lines = rows.lines.size() + columns.lines.size();
  drop_nonfinite(CodeNumbers(problem.a, g), rows.lines);
  drop_nonfinite(CodeNumbers(problem.b.transposed(), g), columns.lines);
  left_out.infinite = left_out.infinite || rows.lines.size() + columns.lines.size() != lines;
  if (rows.lines.empty() || columns.lines.empty()) return {Verdict::valid_rounding};
  ProductNumbers x = numbers_of(capture, problem, g, rows.lines, columns.lines);
  x.rows.wrong = rows.off;
  x.rows.count = m, x.rows.looked_at = std::ssize(rows.lines);
  x.columns.wrong = columns.off;
  x.columns.count = n, x.columns.looked_at = std::ssize(columns.lines);
  WholeProduct whole = whole_of(capture, problem, g);
  // Where operands have scales, their codes alone are no numbers.
  if (is_scaled) whole.m = 0;
  Judgement result = judge(x, whole, interrupted);
  const bool is_named =
      std::any_of(result.faults.begin(), result.faults.end(),
                  [](const Fault& fault) { return fault.kind != FaultKind::unknown; });
  if (result.verdict != Verdict::wrong) return result;
  if (Faults faults = find_other_entry(capture, problem, g); !faults.empty()) {
    result.faults = std::move(faults);
  } else if (!is_named) {
    faults = find_misread_codes(capture, problem, g);
    if (!faults.empty()) result.faults = std::move(faults);
  }
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

/// What a result that went through the activation cannot hold: elements below its least value.
std::optional<Judgement> not_activated(const GemmCapture& capture) {
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
    return result;
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
  return result;
}

bool same_faults(const Judgement& x, const Judgement& y) {
  return std::equal(x.faults.begin(), x.faults.end(), y.faults.begin(), y.faults.end(),
                    [](const Fault& p, const Fault& q) { return p.text == q.text; });
}

CaptureJudgement judge_as_asked(const GemmCapture& capture,
                                const std::function<bool()>& interrupted) {
  constexpr std::int64_t most_entries = 64;
  const GemmProblem problem = capture.lowered({});
  CaptureJudgement result;
  result.outputs = capture.d.size();
  if (auto judgement = not_activated(capture)) {
    result.judgement = std::move(*judgement);
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
  if (left_out.infinite)
    result.limits.emplace_back(
        "rows of A and columns of B that hold infinities or NaNs were looked at for these alone");
  if (left_out.some)
    result.limits.push_back(std::to_string(looked_at) + " of " + std::to_string(result.outputs) +
                            " outputs were looked at one by one" +
                            (problem.scale_a.empty() && problem.scale_b.empty() &&
                                     capture.activation == Activation::none
                                 ? "; the sums of all rows and columns with random signs chose them"
                                 : ""));
  return result;
}

/// The function that a judgement names as what D went through.
std::string named_function(const Judgement& judgement) {
  const bool is_named =
      judgement.faults.size() == 1 && judgement.faults.front().kind == FaultKind::activation;
  return is_named ? judgement.faults.front().name : "";
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
    if (!is_wrong || named_function(result.judgement) == "none") return result;
    other.judgement = without_activation(capture, result.judgement.wrong, "");
    return other;
  }
  const std::string name = named_function(other.judgement);
  if (name.empty() || name == "unknown") return result;
  if (name != formats::word_of(function_of(capture.activation))) return other;
  if (!is_wrong) return result;
  result.judgement.verdict = Verdict::valid_rounding;
  result.judgement.wrong = 0;
  result.judgement.faults.clear();
  return result;
}

}  // namespace guardbit::emulator

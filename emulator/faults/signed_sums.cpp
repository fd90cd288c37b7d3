#include "emulator/faults/signed_sums.hpp"

#include <algorithm>
#include <cmath>

#include "emulator/faults/code_numbers.hpp"
#include "emulator/faults/find_faults.hpp"
#include "emulator/faults/first_faults.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

using Sums = SignedSums::Sums;

/// Deterministic, so that the same capture gets the same words.
Sums signs_of(std::int64_t i) {
  auto x = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9U;
  Sums signs;
  for (std::size_t t = 0; t < signs.size(); ++t) signs[t] = ((x >> (40 + t)) & 1) != 0 ? 1 : -1;
  return signs;
}

void add(Sums& sums, double factor, const Sums& more) {
  for (std::size_t t = 0; t < sums.size(); ++t) sums[t] += factor * more[t];
}

double dot(const Sums& x, const Sums& y) {
  double sum = 0;
  for (std::size_t t = 0; t < x.size(); ++t) sum += x[t] * y[t];
  return sum;
}

/// The square of the cosine of the angle between them.
double likeness(const Sums& x, const Sums& y) {
  const double product = dot(x, y), squares = dot(x, x) * dot(y, y);
  return squares > 0 && std::isfinite(product) ? product * product / squares : 0;
}

struct LineSums {
  Sums sums{};
  double squares = 0;
};

/// Sums of lines of this length, each element with signs of its own.
class SignedLines {
 public:
  explicit SignedLines(std::int64_t length) : line_(static_cast<std::size_t>(length)) {
    for (std::int64_t j = 0; j < length; ++j) signs_.push_back(signs_of(j));
  }

  LineSums of(const CodeNumbers& matrix, std::int64_t row) const {
    LineSums result;
    matrix.read_row(row, line_);
    for (std::size_t j = 0; j < signs_.size(); ++j) {
      add(result.sums, line_[j], signs_[j]);
      result.squares += line_[j] * line_[j];
    }
    return result;
  }
  Sums of_ones() const {
    Sums sums{};
    for (const Sums& signs : signs_) add(sums, 1, signs);
    return sums;
  }

 private:
  std::vector<Sums> signs_;
  mutable std::vector<double> line_;
};

}  // namespace

SignedSums signed_sums(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                       bool of_rows) {
  const GemmProblem& p = problem;
  const CodeNumbers a(of_rows ? p.a : p.b.transposed(), g), b(of_rows ? p.b : p.a.transposed(), g),
      c(of_rows || p.c.empty() ? p.c : p.c.transposed(), g), bias(p.bias, g),
      d(of_rows ? capture.d : capture.d.transposed(), g);
  const std::int64_t m = d.rows(), n = d.columns(), k = p.k();
  const SignedLines lines(n);
  std::vector<LineSums> of_b;
  for (std::int64_t l = 0; l < k; ++l) of_b.push_back(lines.of(b, l));
  const Sums of_bias = bias.empty() || !of_rows ? Sums{} : lines.of(bias, 0).sums,
             of_ones = lines.of_ones();
  SignedSums result;
  const double spacing = std::ldexp(1.0, -capture.d.format.fraction_bits);
  const double beta = p.c.empty() ? 0 : capture.beta;
  std::vector<double> line(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < m; ++i) {
    formats::check_stop();
    Sums &product = result.product.emplace_back(), &addend = result.addend.emplace_back();
    double variance = 0;
    a.read_row(i, line);
    for (std::size_t l = 0; l < line.size(); ++l) {
      add(product, capture.alpha * line[l], of_b[l].sums);
      variance += line[l] * line[l] * of_b[l].squares;
    }
    if (!bias.empty()) add(addend, 1, of_bias);
    if (!bias.empty() && !of_rows) add(addend, bias(0, i), of_ones);
    if (!c.empty() && beta != 0) add(addend, beta, lines.of(c, i).sums);
    const LineSums seen = lines.of(d, i);
    result.seen.push_back(seen.sums);
    result.noise.push_back(std::sqrt(capture.alpha * capture.alpha * variance * 0x1p-40 +
                                     seen.squares * spacing * spacing + 1e-300));
  }
  return result;
}

std::vector<double> SignedSums::lines_off() const {
  std::vector<double> off;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    // All of the sums together: a single one is near what it should be by chance, now and then.
    double squares = 0;
    bool is_told = true;
    for (std::size_t t = 0; t < seen[i].size(); ++t) {
      const double wanted = product[i][t] + addend[i][t];
      squares += std::pow((seen[i][t] - wanted) / noise[i], 2);
      is_told = is_told && std::isfinite(wanted);
    }
    const double root_mean_square = std::sqrt(squares / static_cast<double>(seen[i].size()));
    off.push_back(!is_told ? 0 : std::isfinite(squares) ? root_mean_square : 1e300);
  }
  return off;
}

std::vector<std::int64_t> SignedSums::sources(const std::vector<std::int64_t>& off,
                                              Moved part) const {
  // They are as like as another fault leaves them; of many lines some are nearly so by chance.
  constexpr double least = 0.8, much = 1.1;
  std::vector<Sums> moving = product;
  if (part == Moved::all)
    for (std::size_t i = 0; i < moving.size(); ++i) add(moving[i], 1, addend[i]);
  std::vector<std::int64_t> result = all_numbers(std::ssize(seen));
  std::int64_t moved = 0;
  for (const std::int64_t line : off) {
    formats::check_stop();
    const auto i = static_cast<std::size_t>(line);
    Sums here = seen[i];
    if (part == Moved::product) add(here, -1, addend[i]);
    const double own = likeness(here, moving[i]);
    double most = std::max(least, much * own);
    for (std::size_t r = 0; r < moving.size(); ++r) {
      const double like = likeness(here, moving[r]);
      if (like > most) most = like, result[i] = static_cast<std::int64_t>(r);
    }
    moved += result[i] != line ? 1 : 0;
  }
  if (2 * moved < std::ssize(off)) result.clear();
  return result;
}

Faults find_moved_lines(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                        const SignedSums& sums, const ProductNumbers& x, bool are_columns) {
  constexpr double far = 16, most_pairs = 4e6;
  const LineNumbers& lines = are_columns ? x.columns : x.rows;
  const bool has_addend = !x.c.empty() || !x.bias.empty();
  const std::vector<double> distance = sums.lines_off();
  std::vector<std::int64_t> off = all_numbers(std::ssize(distance));
  const auto is_right = [&](std::int64_t i) { return distance[static_cast<std::size_t>(i)] < far; };
  std::erase_if(off, is_right);
  // Of very many lines, those that are looked at.
  if (static_cast<double>(off.size()) * static_cast<double>(distance.size()) > most_pairs) {
    off = lines.numbers;
    std::erase_if(off, is_right);
  }
  FirstFaults guesses;
  for (const Moved part : {Moved::all, Moved::product}) {
    if (off.empty() || (part == Moved::product && !has_addend)) break;
    const std::vector<std::int64_t> sources = sums.sources(off, part);
    if (sources.empty()) continue;
    // D's own lines next to the operands of their sources.
    std::vector<std::int64_t> from;
    for (const std::int64_t line : lines.numbers)
      from.push_back(sources[static_cast<std::size_t>(line)]);
    const ProductNumbers other =
        numbers_of(capture, problem, g, are_columns ? x.rows.numbers : from,
                   are_columns ? from : x.columns.numbers);
    ProductNumbers y = x;
    y.a = other.a, y.b = other.b, y.product = other.product;
    y.product_magnitude = other.product_magnitude;
    if (part == Moved::all) y.c = other.c, y.bias = other.bias;
    ProductNumbers all = y;
    all.rows = all.columns = {};
    Faults faults = {moved_fault(all, sources, are_columns, part)};
    if (agrees(y, y.asked())) return faults;
    const double left = typical_error(y);
    guesses.push_back({std::move(faults), std::move(y), {}, left});
  }
  if (guesses.empty()) return {};
  const FirstFault& nearest =
      guesses.size() == 2 && guesses[1].left < guesses[0].left ? guesses[1] : guesses[0];
  const Judgement second = judge(nearest.mended, WholeProduct{});
  if (second.faults.empty() || !may_follow(second.faults, nearest.faults)) return {};
  Faults both = nearest.faults;
  both.insert(both.end(), second.faults.begin(), second.faults.end());
  return both;
}

}  // namespace guardbit::emulator

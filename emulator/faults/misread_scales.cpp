#include "emulator/faults/misread_scales.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

/// Row and column of a matrix of scales.
using Place = std::pair<std::int64_t, std::int64_t>;
/// What a kernel takes as the scale of a place.
using Scale = std::function<double(std::int64_t, std::int64_t)>;

struct ScaleReading {
  /// what follows "the scales of A"
  std::string text;
  Scale scale;
};

/// The scales of A, or of B, in one batch entry.
class Scales {
 public:
  Scales(const GemmProblem& problem, std::int64_t g, bool is_b)
      : is_b_(is_b), matrix_(is_b ? problem.scale_b : problem.scale_a), g_(g) {
    if (matrix_.empty()) return;
    rows_ = is_b ? problem.k() : problem.m(), columns_ = is_b ? problem.n() : problem.k();
    block_ = problem.scale_k;
    numbers_ = make_matrix(formats::fp64, 1, matrix_.rows, matrix_.columns);
    for (std::int64_t at = 0; at < numbers_.size(); ++at)
      numbers_.set(at, scalar::encoded(formats::fp64, static_cast<double>(at)));
  }

  bool is_b() const { return is_b_; }
  bool are_many() const { return matrix_.size() > 1 && matrix_.rows * matrix_.columns > 1; }
  std::int64_t rows() const { return matrix_.rows; }
  std::int64_t columns() const { return matrix_.columns; }
  const Format& format() const { return matrix_.format; }
  /// The name of the operand.
  std::string name() const { return is_b_ ? "B" : "A"; }
  double operator()(std::int64_t p, std::int64_t q) const {
    return scalar::decoded(matrix_.format, matrix_(matrix_.batch == 1 ? 0 : g_, p, q));
  }
  Scale own() const {
    return [this](std::int64_t p, std::int64_t q) { return (*this)(p, q); };
  }
  /// The scale that serves element (i, j) of the operand.
  Place place(std::int64_t i, std::int64_t j) const {
    const auto number =
        static_cast<std::int64_t>(scale_at(numbers_, 0, i, j, rows_, columns_, block_));
    return {number / matrix_.columns, number % matrix_.columns};
  }
  /// Multiplies the elements of the operand by what a kernel takes as their scales.
  void apply(const Scale& scale, ProductNumbers& x) const {
    if (matrix_.empty()) return;
    RealMatrix& operand = is_b_ ? x.b : x.a;
    for (std::int64_t i = 0; i < operand.rows; ++i)
      for (std::int64_t j = 0; j < operand.columns; ++j) {
        const auto [p, q] = place(is_b_ ? i : x.rows(i), is_b_ ? x.columns(j) : j);
        operand(i, j) *= scale(p, q);
      }
  }

 private:
  bool is_b_;
  CodeMatrix matrix_;
  std::int64_t g_, rows_ = 0, columns_ = 0, block_ = 0;
  /// of the same shape: the number of each place
  CodeMatrix numbers_;
};

/// Scales of lines or blocks some places from theirs; at the end they are their own, or the first.
void add_shifts(const Scales& scales, bool along_rows, const std::string& noun,
                std::vector<ScaleReading>& list) {
  const std::int64_t count = along_rows ? scales.rows() : scales.columns();
  for (const std::int64_t by : {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128}) {
    if (2 * std::abs(by) > count) continue;
    for (const bool wraps : {false, true}) {
      const auto moved = [=](std::int64_t i) {
        if (wraps) return (i + by + count) % count;
        return i + by < 0 || i + by >= count ? i : i + by;
      };
      list.push_back({": each " + noun + " has that of the one " + std::to_string(std::abs(by)) +
                          (by > 0 ? " further on" : " before"),
                      [=, &scales](std::int64_t p, std::int64_t q) {
                        return along_rows ? scales(moved(p), q) : scales(p, moved(q));
                      }});
    }
  }
}

std::vector<ScaleReading> readings(const Scales& scales) {
  const Scale own = scales.own();
  std::vector<ScaleReading> list = {
      {" are taken as 1", [](std::int64_t, std::int64_t) { return 1.0; }},
      {" divide, they do not multiply",
       [=](std::int64_t p, std::int64_t q) { return 1 / own(p, q); }},
      {" are applied twice",
       [=](std::int64_t p, std::int64_t q) { return own(p, q) * own(p, q); }}};
  const std::string line = scales.is_b() ? "column" : "row", block = "block of K";
  const std::string of_rows = scales.is_b() ? block : line,
                    of_columns = scales.is_b() ? line : block;
  add_shifts(scales, true, of_rows, list);
  add_shifts(scales, false, of_columns, list);
  if (scales.rows() > 1)
    list.push_back({" are all those of the first " + of_rows,
                    [=](std::int64_t, std::int64_t q) { return own(0, q); }});
  if (scales.columns() > 1)
    list.push_back({" are all those of the first " + of_columns,
                    [=](std::int64_t p, std::int64_t) { return own(p, 0); }});
  if (scales.rows() > 1 && scales.columns() > 1) {
    const std::int64_t rows = scales.rows(), columns = scales.columns();
    const std::string text = " are read as if they were stored the other way round";
    list.push_back({text, [=](std::int64_t p, std::int64_t q) {
                      const std::int64_t index = q * rows + p;
                      return own(index / columns, index % columns);
                    }});
    list.push_back({text, [=](std::int64_t p, std::int64_t q) {
                      const std::int64_t index = p * columns + q;
                      return own(index % rows, index / rows);
                    }});
  }
  const auto to_powers = [&](const char* way, double (*round)(double)) {
    list.push_back(
        {std::string(" are rounded ") + way + " to powers of two",
         [=](std::int64_t p, std::int64_t q) { return std::exp2(round(std::log2(own(p, q)))); }});
  };
  to_powers("down", std::floor), to_powers("up", std::ceil);
  return list;
}

/// What is asked and seen with other scales.
class Question {
 public:
  Question(const GemmCapture& capture, GemmProblem problem, std::int64_t g, const ProductNumbers& x)
      : of_a_(problem, g, false), of_b_(problem, g, true), x_(x), activation_(capture.activation) {
    GemmCapture plain = capture;
    plain.activation = Activation::none;
    problem.scale_a = problem.scale_b = {};
    all_ = numbers_of(plain, problem, g, x.rows.numbers, x.columns.numbers);
    few_ = all_.selected(spread(all_.m(), 4), spread(all_.n(), 4));
  }

  const Scales& of_a() const { return of_a_; }
  const Scales& of_b() const { return of_b_; }
  const ProductNumbers& asked() const { return x_; }
  /// D agrees with these scales, at a few outputs and then at all.
  bool agrees_with(const Scale& of_a, const Scale& of_b) const {
    return agrees_at(few_, of_a, of_b) && agrees_at(all_, of_a, of_b);
  }
  /// The same at these rows and columns alone.
  bool agrees_at(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                 const Scale& of_a, const Scale& of_b) const {
    return agrees_at(all_.selected(rows, columns), of_a, of_b);
  }

 private:
  bool agrees_at(ProductNumbers y, const Scale& of_a, const Scale& of_b) const {
    of_a_.apply(of_a, y);
    of_b_.apply(of_b, y);
    y.multiply_operands();
    y.activation = activation_;
    y.undo_activation();
    return agrees(y, y.asked());
  }

  Scales of_a_, of_b_;
  const ProductNumbers& x_;
  Activation activation_;
  ProductNumbers all_, few_;
};

Fault fault_of(const std::string& operand, const std::string& text) {
  return {.kind = FaultKind::wrong_scale, .operand = operand, .text = text};
}

/// All scales of an operand, or of both, by one rule.
Faults read_by_a_rule(const Question& x) {
  const Scale own_a = x.of_a().own(), own_b = x.of_b().own();
  std::vector<ScaleReading> of_a, of_b;
  if (x.of_a().are_many()) of_a = readings(x.of_a());
  if (x.of_b().are_many()) of_b = readings(x.of_b());
  for (const ScaleReading& a : of_a)
    if (x.agrees_with(a.scale, own_b)) return {fault_of("a", "the scales of A" + a.text)};
  for (const ScaleReading& b : of_b)
    if (x.agrees_with(own_a, b.scale)) return {fault_of("b", "the scales of B" + b.text)};
  for (const ScaleReading& a : of_a)
    for (const ScaleReading& b : of_b)
      if (a.text == b.text && x.agrees_with(a.scale, b.scale))
        return {fault_of("both", "the scales of A and of B" + a.text)};
  const bool are_alike =
      x.of_a().rows() == x.of_b().columns() && x.of_a().columns() == x.of_b().rows();
  if (of_a.empty() || of_b.empty() || !are_alike) return {};
  const auto of_other = [](const Scale& other) {
    return [=](std::int64_t p, std::int64_t q) { return other(q, p); };
  };
  if (!x.agrees_with(of_other(own_b), of_other(own_a))) return {};
  return {fault_of("both", "A has the scales of B, and B those of A")};
}

/// The factors of the blocks of K, as one line of scales has them, with which the product is
/// nearest to these rows of D. For B the problem comes transposed.
std::vector<double> fitted_factors(const ProductNumbers& x, const Expected& asked,
                                   const std::vector<std::int64_t>& rows,
                                   const std::vector<std::int64_t>& block_of_k) {
  const std::int64_t blocks = block_of_k.back() + 1;
  RealMatrix squares(blocks, blocks), right(blocks, 1);
  for (const std::int64_t i : rows) {
    RealMatrix parts(blocks, x.n());
    for (std::int64_t k = 0; k < x.k(); ++k)
      for (std::int64_t j = 0; j < x.n(); ++j)
        parts(block_of_k[static_cast<std::size_t>(k)], j) += x.alpha * x.a(i, k) * x.b(k, j);
    RealMatrix error(x.n(), 1);
    for (std::int64_t j = 0; j < x.n(); ++j) {
      error(j, 0) = x.d(i, j) - asked.result(i, j);
      if (!std::isfinite(error(j, 0))) return {};
    }
    const RealMatrix more = multiply_by_transposed(parts, parts), product = multiply(parts, error);
    for (std::size_t at = 0; at < squares.values.size(); ++at)
      squares.values[at] += more.values[at];
    for (std::size_t at = 0; at < right.values.size(); ++at) right.values[at] += product.values[at];
  }
  std::vector<double> factors = solve_positive(squares, right).values;
  for (double& factor : factors) factor += 1;
  return factors;
}

/// Factors that differ from 1 by more are other scales than those that were asked for.
constexpr double clear_factor = 0.05;

/// The lines of D that are wrong, by their lines of scales of one operand, and which block of K
/// each k belongs to. For B the problem comes transposed. Empty if nothing can be told of them.
struct WrongLines {
  std::map<std::int64_t, std::vector<std::int64_t>> lines;
  std::vector<std::int64_t> block_of_k;
};
WrongLines wrong_lines(const ProductNumbers& x, const Scales& scales, const Expected& asked) {
  if (!scales.are_many() || x.activation != Activation::none) return {};
  const auto place = [&](std::int64_t line, std::int64_t k) {
    const Place at = scales.is_b() ? scales.place(k, line) : scales.place(line, k);
    // The line of scales, then the block of K.
    return scales.is_b() ? Place(at.second, at.first) : at;
  };
  WrongLines result;
  for (std::int64_t k = 0; k < x.k(); ++k) result.block_of_k.push_back(place(0, k).second);
  if (4 * (result.block_of_k.back() + 1) > x.n()) return {};
  const Disagreement wrong = disagreement(x, asked);
  for (std::int64_t i = 0; i < x.m(); ++i) {
    const auto row = wrong.at.begin() + i * x.n();
    if (std::find(row, row + x.n(), true) != row + x.n())
      result.lines[place(x.rows(i), 0).first].push_back(i);
  }
  return result;
}

/// Some lines of scales of one operand, or some blocks of K, by a rule. For B `x` is transposed.
Faults read_in_part(const Question& question, const ProductNumbers& x, const Scales& scales) {
  constexpr std::int64_t few = 6;
  const Expected asked = x.asked();
  const WrongLines wrong = wrong_lines(x, scales, asked);
  if (wrong.lines.empty()) return {};
  std::vector<std::int64_t> lines, some;
  for (const auto& [line, rows] : wrong.lines) lines.push_back(line);
  const std::int64_t blocks = wrong.block_of_k.back() + 1;
  std::vector<bool> is_wrong_block(static_cast<std::size_t>(blocks));
  for (const std::int64_t at : spread(std::ssize(lines), few)) {
    const auto& rows = wrong.lines.at(lines[static_cast<std::size_t>(at)]);
    some.push_back(rows.front());
    const std::vector<double> factors = fitted_factors(x, asked, rows, wrong.block_of_k);
    for (std::size_t block = 0; block < factors.size(); ++block)
      if (std::abs(factors[block] - 1) >= clear_factor) is_wrong_block[block] = true;
  }
  std::vector<std::int64_t> wrong_blocks;
  for (std::int64_t block = 0; block < blocks; ++block)
    if (is_wrong_block[static_cast<std::size_t>(block)]) wrong_blocks.push_back(block);
  if (wrong_blocks.empty()) return {};
  const std::int64_t all_lines = scales.is_b() ? scales.columns() : scales.rows();
  const std::vector<std::int64_t> across = spread(x.n(), few);
  const Scale own_a = question.of_a().own(), own_b = question.of_b().own();
  // Of neighbours that have equal scales a mistake shows nothing: it may reach from the first
  // wrong line to the last.
  for (const ScaleReading& reading : readings(scales)) {
    for (const bool is_range : {true, false}) {
      const Scale partly = [&](std::int64_t p, std::int64_t q) {
        const std::int64_t line = scales.is_b() ? q : p, block = scales.is_b() ? p : q;
        const bool is_meant =
            is_range ? line >= lines.front() && line <= lines.back() : wrong.lines.contains(line);
        return is_meant && is_wrong_block[static_cast<std::size_t>(block)] ? reading.scale(p, q)
                                                                           : scales(p, q);
      };
      const Scale &of_a = scales.is_b() ? own_a : partly, &of_b = scales.is_b() ? partly : own_b;
      const bool is_first_look_right = scales.is_b() ? question.agrees_at(across, some, of_a, of_b)
                                                     : question.agrees_at(some, across, of_a, of_b);
      if (!is_first_look_right || !question.agrees_with(of_a, of_b)) continue;
      std::string text = "the scales of " + scales.name() + reading.text;
      const std::vector<Places> range = {{lines.front(), lines.back() + 1}};
      const std::vector<Places> places = is_range ? range : places_of(lines);
      if (places != std::vector<Places>{{0, all_lines}})
        text += ", in " + lines_of(scales.is_b() ? "column" : "row", places);
      if (std::ssize(wrong_blocks) != blocks)
        text += ", in " + lines_of("block", places_of(wrong_blocks)) + " of K";
      return {fault_of(scales.is_b() ? "b" : "a", text)};
    }
  }
  return {};
}

/// Single scales of one operand that were taken as other numbers, by the lines of D that they make
/// wrong. For B `x` is transposed.
Faults other_numbers(const Question& question, const ProductNumbers& x, const Scales& scales) {
  constexpr std::size_t most_lines = 8, most_named = 6;
  const Expected asked = x.asked();
  const WrongLines wrong = wrong_lines(x, scales, asked);
  if (wrong.lines.empty() || wrong.lines.size() > most_lines) return {};
  std::map<Place, double> taken;
  for (const auto& [line, rows] : wrong.lines) {
    const std::vector<double> factors = fitted_factors(x, asked, rows, wrong.block_of_k);
    for (std::size_t block = 0; block < factors.size(); ++block) {
      if (std::abs(factors[block] - 1) < clear_factor) continue;
      const auto q = static_cast<std::int64_t>(block);
      const Place at = scales.is_b() ? Place(q, line) : Place(line, q);
      const double number = factors[block] * scales(at.first, at.second);
      taken[at] = formats::bits(scales.format()) <= 8 ? scalar::rounded(scales.format(), number)
                  : std::abs(number - 1) < 0.02       ? 1
                                                      : simple_near(number);
    }
  }
  if (taken.empty() || taken.size() > most_named) return {};
  const Scale other = [&](std::int64_t p, std::int64_t q) {
    const auto found = taken.find({p, q});
    return found == taken.end() ? scales(p, q) : found->second;
  };
  if (!(scales.is_b() ? question.agrees_with(question.of_a().own(), other)
                      : question.agrees_with(other, question.of_b().own())))
    return {};
  Faults faults;
  for (const auto& [at, number] : taken) {
    const auto [p, q] = at;
    faults.push_back(fault_of(scales.is_b() ? "b" : "a",
                              "scale [" + std::to_string(p) + ", " + std::to_string(q) + "] of " +
                                  scales.name() + " was taken as " + text_of(number) + ", not " +
                                  text_of(scales(p, q))));
    faults.back().value = number;
  }
  return faults;
}

}  // namespace

Faults find_misread_scales(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                           const ProductNumbers& x) {
  if (capture.tf32 || (problem.scale_a.empty() && problem.scale_b.empty())) return {};
  const Question question(capture, problem, g, x);
  if (Faults faults = read_by_a_rule(question); !faults.empty()) return faults;
  if (Faults faults = other_numbers(question, x, question.of_a()); !faults.empty()) return faults;
  const ProductNumbers turned = x.turned();
  if (Faults faults = other_numbers(question, turned, question.of_b()); !faults.empty())
    return faults;
  if (Faults faults = read_in_part(question, x, question.of_a()); !faults.empty()) return faults;
  return read_in_part(question, turned, question.of_b());
}

}  // namespace guardbit::emulator

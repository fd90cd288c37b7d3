#include "emulator/operators/margin_losses.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Threads of a row's block.
constexpr std::size_t margin_threads = 128;

/// Rows of scores of classes.
struct Scores {
  std::size_t rows = 1, classes = 1;

  explicit Scores(const Tensor& input) {
    if (input.rank() > 2 || input.count() == 0) throw UnknownShape{"scores of other dimensions"};
    if (input.rank() > 0) classes = static_cast<std::size_t>(input.shape.back());
    if (input.rank() > 1) rows = static_cast<std::size_t>(input.shape[0]);
  }
  std::size_t count() const { return rows * classes; }
};

/// The arithmetic of a type.
template <class Number>
struct Arithmetic : InType {
  /// margin - of_target + x
  Number lacking(Number margin, Number of_target, Number x) const {
    return (*this)((*this)(margin - of_target) + x);
  }
  /// 1 / count, formed in FP64
  Number share(std::size_t count) const {
    return (*this)(static_cast<Number>(1.0 / static_cast<double>(count)));
  }
};

/// The rows' losses as they are, or their sum; means are formed in the rows.
LossResult of_rows(const Tensor& losses, const Tensor& input, LossReduction reduction,
                   const Machine& machine, int threads) {
  if (input.rank() < 2 || reduction == LossReduction::none) return {losses, "a block a row"};
  ReductionRequest request;
  request.machine = machine;
  request.threads = threads;
  Reduced all = sum(losses, request);
  return {std::move(all.result), "a block of 128 a row, then " + all.shape};
}

Dimensions shape_of_losses(const Tensor& input, const Tensor& target, LossReduction reduction) {
  if (input.rank() >= 2) return {input.shape[0]};
  return reduction == LossReduction::none && target.rank() == 1 ? Dimensions{1} : Dimensions{};
}

template <class Number>
struct MarginOperands {
  Scores sizes;
  ViewOf<Number> scores;
  std::vector<std::int64_t> classes;
  std::vector<double> weights;
  Arithmetic<Number> in_type;
  Number margin;

  MarginOperands(const Margin& of, const Tensor& input, const Tensor& target)
      : sizes(input),
        scores(input),
        classes(places_of(target, static_cast<std::int64_t>(sizes.classes))),
        in_type{input.type},
        margin(in_type(static_cast<Number>(of.margin))) {
    if (of.weight != nullptr) weights = doubles_of(*of.weight);
    if (classes.size() != sizes.rows || (of.power != 1 && of.power != 2) ||
        (of.weight != nullptr && weights.size() != sizes.classes))
      throw UnknownShape{"targets or weights for another number of rows or classes"};
  }
  std::size_t class_of(std::size_t row) const { return static_cast<std::size_t>(classes[row]); }
  Number weight_of(std::size_t row) const { return static_cast<Number>(weights[class_of(row)]); }
};

template <class Number>
LossResult margin_loss_in(const Margin& of, const Tensor& input, const Tensor& target,
                          LossReduction reduction, const Machine& machine, int threads) {
  const MarginOperands<Number> x(of, input, target);
  const std::size_t classes = x.sizes.classes;
  const bool is_wide = input.element_bytes() > 2;
  const auto divisor =
      static_cast<Number>(reduction == LossReduction::mean ? x.sizes.count() : classes);
  std::vector<Number> losses(x.sizes.rows);
  for (std::size_t row = 0; row < losses.size(); ++row) {
    const auto scores = x.scores.part(row * classes, classes);
    std::vector<Number> sums(margin_threads);
    for (std::size_t i = 0; i < classes; ++i) {
      if (i == x.class_of(row)) continue;
      const Number lack = x.in_type.lacking(x.margin, scores[x.class_of(row)], scores[i]);
      if (!(lack > 0)) continue;
      Number& own = sums[i % margin_threads];
      if (of.power == 2 && is_wide && x.weights.empty()) {
        own = std::fma(lack, lack, own);
        continue;
      }
      const Number term = of.power == 2 ? x.in_type(lack * lack) : lack;
      if (x.weights.empty()) {
        own += term;
      } else if (is_wide) {
        own = std::fma(term, x.weight_of(row), own);
      } else {
        own += x.in_type(term * x.weight_of(row));
      }
    }
    Number all = 0;
    for (const Number own : sums) all += own;
    losses[row] = all / divisor;
  }
  return of_rows(
      tensor_of_numbers(x.in_type.type, shape_of_losses(input, target, reduction), losses), input,
      reduction, machine, threads);
}

template <class Number>
Tensor margin_loss_gradient_in(const Margin& of, const Tensor& gradient, const Tensor& input,
                               const Tensor& target, LossReduction reduction) {
  const MarginOperands<Number> x(of, input, target);
  const ViewOf<Number> gradients(gradient);
  const std::size_t classes = x.sizes.classes;
  if (gradients.size() != (reduction == LossReduction::none ? x.sizes.rows : 1))
    throw UnknownShape{"gradients for another number of rows"};
  const Number share =
      1 / static_cast<Number>(reduction == LossReduction::mean ? x.sizes.count() : classes);
  std::vector<Number> results(x.sizes.count());
  for (std::size_t row = 0; row < x.sizes.rows; ++row) {
    const auto scores = x.scores.part(row * classes, classes);
    std::vector<Number> sums(margin_threads);
    Number* to = results.data() + row * classes;
    for (std::size_t i = 0; i < classes; ++i) {
      if (i == x.class_of(row)) continue;
      const Number lack = x.in_type.lacking(x.margin, scores[x.class_of(row)], scores[i]);
      if (!(lack > 0)) continue;
      Number own = of.power == 2 ? (2 * share) * lack : share;
      if (!x.weights.empty()) own *= x.weight_of(row);
      to[i] = x.in_type(own);
      sums[i % margin_threads] -= to[i];
    }
    Number all = 0;
    for (const Number own : sums) all += own;
    to[x.class_of(row)] = x.in_type(all);
    const Number outer = gradients[gradients.size() == 1 ? 0 : row];
    for (std::size_t i = 0; i < classes; ++i) to[i] *= outer;
  }
  return tensor_of_numbers(x.in_type.type, input.shape, results);
}

/// A row's classes, in order, and which of all are among them.
struct Labels {
  std::vector<std::size_t> classes;
  std::vector<bool> is_target;
};
std::vector<Labels> labels_of(const Tensor& target, const Scores& sizes) {
  const std::vector<std::int64_t> all = integers_of(target);
  if (all.size() != sizes.count()) throw UnknownShape{"targets for other scores"};
  std::vector<Labels> rows(sizes.rows);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].is_target.resize(sizes.classes);
    for (std::size_t i = 0; i < sizes.classes && all[row * sizes.classes + i] >= 0; ++i) {
      const auto choice = static_cast<std::size_t>(all[row * sizes.classes + i]);
      if (choice >= sizes.classes) throw UnknownShape{"a class past the last one"};
      rows[row].classes.push_back(choice);
      rows[row].is_target[choice] = true;
    }
  }
  return rows;
}

template <class Number>
MultilabelMargin multilabel_in(const Tensor& input, const Tensor& target, LossReduction reduction,
                               const Machine& machine, int threads) {
  const Scores sizes(input);
  const std::vector<Labels> rows = labels_of(target, sizes);
  const ViewOf<Number> all(input);
  const Arithmetic<Number> in_type{input.type};
  std::vector<Number> losses(sizes.rows), marks;
  for (std::size_t row = 0; row < sizes.rows; ++row) {
    const auto scores = all.part(row * sizes.classes, sizes.classes);
    std::vector<Number> sums(margin_threads);
    for (const std::size_t choice : rows[row].classes) {
      for (std::size_t i = 0; i < sizes.classes; ++i) {
        if (rows[row].is_target[i]) continue;
        const Number lack = in_type.lacking(1, scores[choice], scores[i]);
        if (lack > 0) sums[i % margin_threads] += lack;
      }
    }
    const Number mean = sum_of_two_stages(std::span(sums)) / static_cast<Number>(sizes.classes);
    losses[row] = reduction == LossReduction::mean ? mean / static_cast<Number>(sizes.rows) : mean;
    for (const bool is_target : rows[row].is_target) marks.push_back(is_target ? 1 : 0);
  }
  const Dimensions shape = input.rank() < 2 ? Dimensions{} : Dimensions{input.shape[0]};
  LossResult loss =
      of_rows(tensor_of_numbers(in_type.type, shape, losses), input, reduction, machine, threads);
  return {std::move(loss.loss), tensor_of_numbers(in_type.type, target.shape, marks),
          std::move(loss.plan)};
}

template <class Number>
std::optional<Tensor> multilabel_gradient_in(const Tensor& gradient, const Tensor& input,
                                             const Tensor& target, LossReduction reduction) {
  const Scores sizes(input);
  const std::vector<Labels> rows = labels_of(target, sizes);
  const ViewOf<Number> all(input), gradients(gradient);
  const Arithmetic<Number> in_type{input.type};
  if (gradients.size() != (reduction == LossReduction::none ? sizes.rows : 1))
    throw UnknownShape{"gradients for another number of rows"};
  const Number share =
      in_type.share(reduction == LossReduction::mean ? sizes.count() : sizes.classes);
  std::vector<Number> results(sizes.count());
  for (std::size_t row = 0; row < sizes.rows; ++row) {
    const auto scores = all.part(row * sizes.classes, sizes.classes);
    Number* to = results.data() + row * sizes.classes;
    const Number outer = gradients[gradients.size() == 1 ? 0 : row];
    for (const std::size_t& choice : rows[row].classes) {
      std::vector<Number> sums(margin_threads);
      for (std::size_t i = 0; i < sizes.classes; ++i) {
        if (rows[row].is_target[i]) continue;
        if (!(in_type.lacking(1, scores[choice], scores[i]) > 0)) continue;
        sums[i % margin_threads] -= share;
        to[i] = in_type(to[i] + share);
      }
      const Number total = in_type(sum_of_two_stages(std::span(sums)));
      const Number before = to[choice];
      to[choice] = in_type(before + total);
      // Thread 0 stores it; the thread of that place multiplies it without waiting.
      const bool is_last = &choice == &rows[row].classes.back();
      if (is_last && choice % margin_threads >= warp_lanes &&
          in_type(before * outer) != in_type(to[choice] * outer))
        return std::nullopt;
    }
    for (std::size_t i = 0; i < sizes.classes; ++i) to[i] = in_type(to[i] * outer);
  }
  return tensor_of_numbers(in_type.type, input.shape, results);
}

}  // namespace

LossResult margin_loss(const Margin& margin, const Tensor& input, const Tensor& target,
                       LossReduction reduction, const Machine& machine, int threads) {
  return input.type == formats::fp64
             ? margin_loss_in<double>(margin, input, target, reduction, machine, threads)
             : margin_loss_in<float>(margin, input, target, reduction, machine, threads);
}

Tensor margin_loss_gradient(const Margin& margin, const Tensor& gradient, const Tensor& input,
                            const Tensor& target, LossReduction reduction) {
  return input.type == formats::fp64
             ? margin_loss_gradient_in<double>(margin, gradient, input, target, reduction)
             : margin_loss_gradient_in<float>(margin, gradient, input, target, reduction);
}

MultilabelMargin multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        LossReduction reduction, const Machine& machine,
                                        int threads) {
  return input.type == formats::fp64
             ? multilabel_in<double>(input, target, reduction, machine, threads)
             : multilabel_in<float>(input, target, reduction, machine, threads);
}

std::optional<Tensor> multilabel_margin_loss_gradient(const Tensor& gradient, const Tensor& input,
                                                      const Tensor& target,
                                                      LossReduction reduction) {
  return input.type == formats::fp64
             ? multilabel_gradient_in<double>(gradient, input, target, reduction)
             : multilabel_gradient_in<float>(gradient, input, target, reduction);
}

}  // namespace guardbit::emulator::operators

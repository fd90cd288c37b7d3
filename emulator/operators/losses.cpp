#include "emulator/operators/losses.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

#include "emulator/operators/broadcast.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

using Kind = ElementLoss::Kind;

template <class Number>
Number loss_of(Kind kind, Number width, Number difference, const InType& in_type) {
  if (kind == Kind::squared) return difference * difference;
  const Number distance = std::fabs(difference);
  if (kind == Kind::smooth)
    return distance < width ? 0.5F * distance * distance / width : distance - in_type(0.5F * width);
  return distance < width ? 0.5F * distance * distance : width * (distance - in_type(0.5F * width));
}

/// The squared, smooth and Huber losses.
template <class Number>
std::vector<Number> squared_losses(const ElementLoss& loss, const ViewOf<Number>& inputs,
                                   const ViewOf<Number>& targets, const InType& in_type) {
  std::vector<Number> all(inputs.size());
  const Number width = in_type(static_cast<Number>(loss.width));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = loss_of(loss.kind, width, in_type(inputs[i] - targets[i]), in_type);
  return all;
}

float log1p_of(float x) { return cuda_math::log1pf(HostNumber(x)).number(); }
double log1p_of(double x) { return cuda_math::log1p(x); }

/// -t log(x) - (1 - t) log(1 - x), with logarithms not below -100.
template <class Number>
std::vector<Number> cross_entropies(const ViewOf<Number>& inputs, const ViewOf<Number>& targets,
                                    const InType& in_type) {
  std::vector<Number> all(inputs.size());
  constexpr Number least = -100;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Number of_rest = std::max(log1p_of(-inputs[i]), least);
    const Number of_input = std::max(log_of(inputs[i]), least);
    if (!in_type.rounds_steps()) {
      all[i] = std::fma(targets[i] - 1, of_rest, -(targets[i] * of_input));
    } else {
      const Number rest = in_type(in_type(targets[i] - 1) * in_type(of_rest));
      all[i] = rest - in_type(targets[i] * in_type(of_input));
    }
  }
  return all;
}

/// A factor for each element, broadcast to a shape; none where there is no tensor.
template <class Number>
class Factors {
 public:
  Factors(const Tensor* tensor, const Dimensions& shape) {
    if (tensor == nullptr) return;
    const ViewOf<Number> numbers(*tensor);
    BroadcastPlaces places(tensor->shape, shape);
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    for (std::int64_t i = 0; i < count; ++i)
      all_.push_back(numbers[static_cast<std::size_t>(places.next())]);
  }
  bool are_there() const { return !all_.empty(); }
  Number operator[](std::size_t i) const { return all_[i]; }

 private:
  std::vector<Number> all_;
};

/// (1 - t) x - log_sigmoid(x), each operator a tensor of its own.
template <class Number>
std::vector<Number> logit_losses(const ElementLoss& loss, const Dimensions& shape,
                                 const ViewOf<Number>& inputs, const ViewOf<Number>& targets,
                                 const InType& in_type) {
  std::vector<Number> all(inputs.size());
  const Factors<Number> positives(loss.positive_weight, shape);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Number x = inputs[i], t = targets[i];
    const Number rest = log1p_of(exp_of(-std::fabs(x)));
    Number logarithm = in_type(std::min<Number>(0, x) - rest);
    if (positives.are_there()) {
      const Number more = in_type(positives[i] - 1);
      logarithm = in_type(logarithm * in_type(in_type(more * t) + 1));
    }
    all[i] = in_type(in_type(in_type(1 - t) * x) - logarithm);
  }
  return all;
}

LossResult reduced_loss(const Tensor& losses, LossReduction reduction, const Machine& machine,
                        int threads) {
  if (reduction == LossReduction::none) return {losses, "each element"};
  ReductionRequest request;
  request.machine = machine;
  request.threads = threads;
  Reduced all = reduction == LossReduction::mean ? mean(losses, request) : sum(losses, request);
  return {std::move(all.result), "each element, then " + all.shape};
}

/// Threads that add the losses of so many rows.
std::size_t likelihood_threads(std::int64_t rows) {
  const std::int64_t sixteenth = rows / 16;
  const double log = sixteenth < 1 ? 0 : std::log2(static_cast<double>(sixteenth));
  return std::clamp<std::size_t>(std::size_t{1} << static_cast<int>(std::round(log)), 32, 1024);
}

}  // namespace

namespace {

/// How the tensor of the elements' losses lies, which decides the order of their sum.
Dimensions stride_of_losses(Kind kind, const Tensor& input, const Tensor& target) {
  if (kind == Kind::cross_entropy) return dense_stride_like(input);
  if (kind == Kind::logits) return dense_stride_like(target);
  return stride_of_operands(input.shape, std::array{input.stride, target.stride});
}

template <class Number>
std::vector<Number> losses_in(const ElementLoss& loss, const Tensor& input, const Tensor& target) {
  const InType in_type{input.type};
  const ViewOf<Number> inputs(input), targets(target);
  std::vector<Number> all = loss.kind == Kind::cross_entropy
                                ? cross_entropies<Number>(inputs, targets, in_type)
                            : loss.kind == Kind::logits
                                ? logit_losses<Number>(loss, input.shape, inputs, targets, in_type)
                                : squared_losses<Number>(loss, inputs, targets, in_type);
  const Factors<Number> weights(loss.weight, input.shape);
  for (std::size_t i = 0; weights.are_there() && i < all.size(); ++i)
    all[i] = in_type(all[i]) * weights[i];
  return all;
}

}  // namespace

LossResult element_loss(const ElementLoss& loss, const Tensor& input, const Tensor& target,
                        LossReduction reduction, const Machine& machine, int threads) {
  for (const Tensor* factor : {loss.weight, loss.positive_weight}) {
    if (factor == nullptr) continue;
    const std::array<const Tensor*, 2> both = {&input, factor};
    if (broadcast_shape(both) != input.shape)
      throw UnknownShape{"weights that are not broadcast to the input"};
  }
  Tensor losses =
      input.type == formats::fp64
          ? tensor_of_doubles(input.shape, losses_in<double>(loss, input, target))
          : tensor_of_numbers(input.type, input.shape, losses_in<float>(loss, input, target));
  losses.stride = stride_of_losses(loss.kind, input, target);
  return reduced_loss(losses, reduction, machine, threads);
}

namespace {

template <class Number>
std::vector<Number> gradient_in(const ElementLoss& loss, const Tensor& gradient,
                                const Tensor& input, const Tensor& target,
                                LossReduction reduction) {
  const ViewOf<Number> gradients(gradient), inputs(input), targets(target);
  const InType in_type{input.type};
  std::vector<Number> all(inputs.size());
  const double share =
      reduction == LossReduction::mean ? 1.0 / static_cast<double>(all.size()) : 1.0;
  const auto factor =
      in_type(static_cast<Number>(loss.kind == Kind::squared ? 2.0 * share : share));
  const Number width = in_type(static_cast<Number>(loss.width));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Number own = gradients[gradients.size() == 1 ? 0 : i];
    const Number difference = in_type(inputs[i] - targets[i]);
    if (loss.kind == Kind::squared) {
      all[i] = in_type(factor * difference) * own;
    } else if (loss.kind == Kind::smooth) {
      all[i] = difference < -width  ? in_type(-factor) * own
               : difference > width ? factor * own
                                    : in_type(in_type(factor * difference) * own) / width;
    } else {
      all[i] = difference < -width  ? in_type(in_type(-factor) * own) * width
               : difference > width ? in_type(factor * own) * width
                                    : in_type(factor * difference) * own;
    }
  }
  return all;
}

}  // namespace

LossResult element_loss_gradient(const ElementLoss& loss, const Tensor& gradient,
                                 const Tensor& input, const Tensor& target,
                                 LossReduction reduction) {
  if (input.type == formats::fp64) {
    Tensor all = tensor_of_doubles(input.shape,
                                   gradient_in<double>(loss, gradient, input, target, reduction));
    return {std::move(all), "each element"};
  }
  const auto all = gradient_in<float>(loss, gradient, input, target, reduction);
  return {tensor_of_numbers(input.type, input.shape, all), "each element"};
}

namespace {

/// The class of each row, or `ignored`.
std::vector<std::int64_t> classes_of(const Tensor& input, const Tensor& target,
                                     const Tensor* weight, std::int64_t ignored) {
  const std::int64_t choices = input.shape.empty() ? 0 : input.shape.back();
  std::vector<std::int64_t> classes = places_of(target, choices, ignored);
  if (static_cast<std::int64_t>(classes.size()) * choices != input.count() ||
      (weight != nullptr && weight->count() != choices))
    throw UnknownShape{"targets or weights for another number of rows or classes"};
  return classes;
}

template <class Number>
std::vector<Number> all_numbers(const Tensor* tensor) {
  if (tensor == nullptr) return {};
  const ViewOf<Number> numbers(*tensor);
  return {numbers.all().begin(), numbers.all().end()};
}

template <class Number>
NegativeLogLikelihood likelihood_in(const Tensor& input, const Tensor& target, const Tensor* weight,
                                    LossReduction reduction, std::int64_t ignored) {
  const std::vector<std::int64_t> classes = classes_of(input, target, weight, ignored);
  const ViewOf<Number> numbers(input);
  const std::vector<Number> weights = all_numbers<Number>(weight);
  const InType in_type{input.type};
  const auto choices = static_cast<std::size_t>(input.shape.back());
  const auto weight_of = [&](std::size_t i) {
    return weights.empty() ? Number{1} : weights[static_cast<std::size_t>(classes[i])];
  };
  const auto number_of = [&](std::size_t i) {
    return numbers[i * choices + static_cast<std::size_t>(classes[i])];
  };
  const auto single = [&](Number x) {
    return tensor_of_numbers(input.type, {}, std::span<const Number>(&x, 1));
  };
  if (reduction == LossReduction::none) {
    std::vector<Number> all(classes.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = classes[i] == ignored ? 0 : -(weight_of(i) * number_of(i));
    return {tensor_of_numbers(input.type, target.shape, all), single(0), "each row"};
  }
  const bool is_alone = input.rank() == 1;
  if (is_alone && reduction == LossReduction::mean &&
      (!weights.empty() || classes.at(0) == ignored))
    throw UnknownShape{"the mean loss of a row alone with weights or an ignored class"};
  const std::size_t threads =
      is_alone ? 1 : likelihood_threads(static_cast<std::int64_t>(classes.size()));
  std::vector<Number> losses(threads), totals(threads);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == ignored) continue;
    Number& loss = losses[i % threads];
    loss = in_type.rounds_steps() ? loss - in_type(weight_of(i) * number_of(i))
                                  : std::fma(weight_of(i), -number_of(i), loss);
    totals[i % threads] += weight_of(i);
  }
  const Number total = halved_sum(std::span(totals)), sum = halved_sum(std::span(losses));
  return {single(reduction == LossReduction::mean ? sum / total : sum), single(total),
          "one block of " + std::to_string(threads) + " threads"};
}

template <class Number>
Tensor likelihood_gradient_in(const Tensor& gradient, const Tensor& input, const Tensor& target,
                              const Tensor* weight, LossReduction reduction, std::int64_t ignored,
                              const Tensor& total_weight) {
  const std::vector<std::int64_t> classes = classes_of(input, target, weight, ignored);
  const std::vector<Number> gradients = all_numbers<Number>(&gradient);
  const std::vector<Number> weights = all_numbers<Number>(weight);
  const InType in_type{input.type};
  const auto choices = static_cast<std::size_t>(input.shape.back());
  std::vector<Number> all(static_cast<std::size_t>(input.count()));
  const Number total = all_numbers<Number>(&total_weight).at(0);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == ignored) continue;
    Number own = gradients[gradients.size() == 1 ? 0 : i];
    if (reduction == LossReduction::mean) own = in_type(own / total);
    const auto c = static_cast<std::size_t>(classes[i]);
    all[i * choices + c] = weights.empty() ? -own : -weights[c] * own;
  }
  return tensor_of_numbers(input.type, input.shape, all);
}

}  // namespace

NegativeLogLikelihood negative_log_likelihood(const Tensor& input, const Tensor& target,
                                              const Tensor* weight, LossReduction reduction,
                                              std::int64_t ignored) {
  return input.type == formats::fp64
             ? likelihood_in<double>(input, target, weight, reduction, ignored)
             : likelihood_in<float>(input, target, weight, reduction, ignored);
}

Tensor negative_log_likelihood_gradient(const Tensor& gradient, const Tensor& input,
                                        const Tensor& target, const Tensor* weight,
                                        LossReduction reduction, std::int64_t ignored,
                                        const Tensor& total_weight) {
  return input.type == formats::fp64
             ? likelihood_gradient_in<double>(gradient, input, target, weight, reduction, ignored,
                                              total_weight)
             : likelihood_gradient_in<float>(gradient, input, target, weight, reduction, ignored,
                                             total_weight);
}

namespace {

/// Images of classes, and for each pixel its class or `ignored`.
struct ClassifiedImages {
  std::size_t images = 0, choices = 0, pixels = 0;
  std::vector<std::int64_t> classes;
  std::vector<float> weights;

  ClassifiedImages(const Tensor& input, const Tensor& target, const Tensor* weight,
                   std::int64_t ignored) {
    if (input.rank() != 4 || target.rank() != 3 || input.shape[0] != target.shape[0] ||
        input.shape[2] != target.shape[1] || input.shape[3] != target.shape[2] ||
        (weight != nullptr && weight->count() != input.shape[1]))
      throw UnknownShape{"targets or weights for other images or classes"};
    images = static_cast<std::size_t>(input.shape[0]);
    choices = static_cast<std::size_t>(input.shape[1]);
    pixels = static_cast<std::size_t>(input.shape[2] * input.shape[3]);
    classes = places_of(target, input.shape[1], ignored);
    if (weight != nullptr) weights = numbers_of(*weight);
  }
  float weight_of(std::int64_t choice) const {
    return weights.empty() ? 1.0F : weights[static_cast<std::size_t>(choice)];
  }
  /// Where an image's pixel has the number of its class.
  std::size_t place(std::size_t image, std::size_t pixel) const {
    const auto choice = static_cast<std::size_t>(classes[image * pixels + pixel]);
    return (image * choices + choice) * pixels + pixel;
  }
};

}  // namespace

ImageLikelihood image_likelihood(const Tensor& input, const Tensor& target, const Tensor* weight,
                                 LossReduction reduction, std::int64_t ignored) {
  const ClassifiedImages all(input, target, weight, ignored);
  const NumberView numbers(input);
  const InType in_type{input.type};
  const float zero = 0;
  if (reduction == LossReduction::none) {
    std::vector<float> losses(all.classes.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (all.classes[i] == ignored) continue;
      losses[i] =
          -numbers[all.place(i / all.pixels, i % all.pixels)] * all.weight_of(all.classes[i]);
    }
    return {tensor_of_numbers(input.type, target.shape, losses),
            tensor_of_numbers(input.type, {}, {&zero, 1})};
  }
  constexpr std::size_t threads = 1024, blocks_at_once = 128;
  const std::size_t blocks =
      std::max<std::size_t>((all.pixels + threads - 1) / threads / blocks_at_once, 1);
  float loss = 0, total = 0;
  for (std::size_t block = 0; block < all.images * blocks; ++block) {
    const std::size_t image = block / blocks;
    std::vector<float> losses(threads), totals(threads);
    for (std::size_t i = block % blocks * threads; i < all.pixels; i += threads * blocks) {
      for (std::size_t t = 0; t < threads && i + t < all.pixels; ++t) {
        const std::int64_t choice = all.classes[image * all.pixels + i + t];
        if (choice == ignored) continue;
        const float number = numbers[all.place(image, i + t)], own = all.weight_of(choice);
        losses[t] = input.type == formats::fp32 ? std::fma(-number, own, losses[t])
                                                : losses[t] - in_type(number * own);
        totals[t] += own;
      }
    }
    total = in_type(total + in_type(sum_of_two_stages(totals)));
    loss = in_type(loss + in_type(sum_of_two_stages(losses)));
  }
  if (reduction == LossReduction::mean) loss = loss / total;
  ImageLikelihood result{std::nullopt, tensor_of_numbers(input.type, {}, {&total, 1})};
  if (all.images * blocks <= 2) result.loss = tensor_of_numbers(input.type, {}, {&loss, 1});
  return result;
}

Tensor image_likelihood_gradient(const Tensor& gradient, const Tensor& input, const Tensor& target,
                                 const Tensor* weight, LossReduction reduction,
                                 std::int64_t ignored, const Tensor& total_weight) {
  const ClassifiedImages all(input, target, weight, ignored);
  const std::vector<float> gradients = numbers_of(gradient);
  if (gradients.size() != (reduction == LossReduction::none ? all.classes.size() : 1))
    throw UnknownShape{"gradients for another number of losses"};
  const InType in_type{input.type};
  float own = 0;
  if (reduction == LossReduction::mean) own = -in_type(gradients[0] / numbers_of(total_weight)[0]);
  if (reduction == LossReduction::sum) own = -gradients[0];
  std::vector<float> results(static_cast<std::size_t>(input.count()));
  for (std::size_t i = 0; i < all.classes.size(); ++i) {
    if (all.classes[i] == ignored) continue;
    if (reduction == LossReduction::none) own = -gradients[i];
    results[all.place(i / all.pixels, i % all.pixels)] = all.weight_of(all.classes[i]) * own;
  }
  return tensor_of_numbers(input.type, input.shape, results);
}

}  // namespace guardbit::emulator::operators

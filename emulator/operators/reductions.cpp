#include "emulator/operators/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/kernels/powers.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/reduction.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Sums of powers of magnitudes, for norms of other orders.
template <class N>
struct PowersOf {
  using Number = N;
  using State = N;
  N order = 2;
  static State identity() { return 0; }
  State reduced(State a, N x, std::int64_t) const { return a + power_of(std::fabs(x), order); }
  static State combined(State a, State b) { return a + b; }
};

template <class N>
struct CountOfNonzeros {
  using Number = N;
  using State = N;
  static State identity() { return 0; }
  static State reduced(State a, N x, std::int64_t) { return a + (x == 0 ? N{0} : N{1}); }
  static State combined(State a, State b) { return a + b; }
};

struct Plan {
  ReductionWalk walk;
  ReductionShape shape;
};

Plan planned(const Tensor& input, const ReductionKernel& kernel, const ReductionRequest& request) {
  Plan plan;
  plan.walk = walk_of_reduction(input, request.dimensions, request.keep_dimensions);
  plan.shape = shape_of_reduction(plan.walk, input.offset, kernel, request.machine);
  return plan;
}

template <class Op, class Finish>
Reduced reduced_by(const Op& op, const Tensor& input, const ReductionKernel& kernel,
                   const ReductionRequest& request, const Finish& finish) {
  const Plan plan = planned(input, kernel, request);
  auto numbers = reduced(op, input, plan.walk, plan.shape, request.threads);
  for (auto& number : numbers) number = finish(number, plan.walk);
  return {tensor_of_numbers(request.type.value_or(input.type), plan.walk.result_shape, numbers),
          plan.shape.text()};
}

constexpr auto unchanged = [](auto number, const ReductionWalk&) { return number; };

/// Is the reduction one of FP64?
bool is_of_doubles(const Tensor& input) { return input.type == formats::fp64; }

/// The same operation over FP32 or FP64, as the input has it.
template <template <class> class Op, class Finish>
Reduced reduced_in_type(const Tensor& input, const ReductionKernel& kernel,
                        const ReductionRequest& request, const Finish& finish) {
  return is_of_doubles(input) ? reduced_by(Op<double>{}, input, kernel, request, finish)
                              : reduced_by(Op<float>{}, input, kernel, request, finish);
}

/// Sums and means read 16 bytes of 16-bit types at once.
ReductionKernel kernel_of_sum(const Tensor& input) {
  return {.accumulators = 4, .vector = input.element_bytes() == 2 ? 8 : 4};
}

Tensor integer_sum(const Tensor& input, const ReductionRequest& request) {
  const ReductionWalk walk = walk_of_reduction(input, request.dimensions, request.keep_dimensions);
  const std::vector<std::int64_t> numbers = integers_of(input);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(walk.outputs));
  for (std::int64_t output = 0; output < walk.outputs; ++output) {
    std::uint64_t sum = 0;
    const std::int64_t start = place_of(walk.kept, output);
    for (std::int64_t i = 0; i < walk.inputs; ++i)
      sum += static_cast<std::uint64_t>(
          numbers[static_cast<std::size_t>(start + place_of(walk.reduced, i))]);
    sums[static_cast<std::size_t>(result_of(walk.kept, output))] = static_cast<std::int64_t>(sum);
  }
  return tensor_of_integers(request.type.value_or(formats::int64), walk.result_shape, sums);
}

/// An input whose elements were cast before the reduction, as those of other types are.
Tensor cast(const Tensor& input, const formats::Format& type) {
  if (type == formats::fp64) {
    Tensor wide = tensor_of_doubles(input.shape, doubles_of(input));
    wide.stride = dense_stride_like(input);
    return wide;
  }
  return tensor_of_numbers(type, input.shape, dense_stride_like(input), numbers_of(input));
}

/// Kernels read 16-bit numbers and give FP32 at once; every other change of type is a cast before.
bool casts_in_kernel(const Tensor& input, const formats::Format& type) {
  return input.type == type ||
         (input.element_bytes() == 2 && is_working_type(input.type) && type == formats::fp32);
}

}  // namespace

Reduced sum(const Tensor& input, const ReductionRequest& request) {
  if (formats::is_integer(input.type) && (!request.type || formats::is_integer(*request.type)))
    return {integer_sum(input, request), "integers"};
  if (request.type && !casts_in_kernel(input, *request.type))
    return sum(cast(input, *request.type), request);
  return reduced_in_type<SumOf>(input, kernel_of_sum(input), request, unchanged);
}

Reduced sum_without_nan(const Tensor& input, const ReductionRequest& request) {
  if (request.type && !casts_in_kernel(input, *request.type))
    return sum_without_nan(cast(input, *request.type), request);
  // Its kernel reads four elements at once, of 16-bit types, too.
  return reduced_in_type<SumWithoutNanOf>(input, {.accumulators = 4, .vector = 4}, request,
                                          unchanged);
}

Reduced mean(const Tensor& input, const ReductionRequest& request) {
  if (request.type && !casts_in_kernel(input, *request.type))
    return mean(cast(input, *request.type), request);
  return reduced_in_type<SumOf>(input, kernel_of_sum(input), request,
                                [](auto number, const ReductionWalk& walk) {
                                  using Number = decltype(number);
                                  return number * (static_cast<Number>(walk.outputs) /
                                                   static_cast<Number>(walk.inputs * walk.outputs));
                                });
}

Reduced product(const Tensor& input, const ReductionRequest& request) {
  if (request.type && !casts_in_kernel(input, *request.type))
    return product(cast(input, *request.type), request);
  return reduced_in_type<ProductOf>(input, {}, request, unchanged);
}

namespace {

/// |x| of each element in that type, where they lie.
Tensor magnitudes(const Tensor& input, const formats::Format& type) {
  const auto of = [&](auto numbers) {
    for (auto& x : numbers) x = std::fabs(x);
    Tensor result = tensor_of_numbers(type, input.shape, numbers);
    result.stride = input.stride;
    return result;
  };
  return is_of_doubles(input) ? of(doubles_of(input)) : of(numbers_of(input));
}

}  // namespace

Reduced norm(const Tensor& input, double order, const ReductionRequest& request) {
  if (request.type && !casts_in_kernel(input, *request.type))
    return norm(cast(input, *request.type), order, request);
  // A norm of single elements is their magnitude, whatever its order.
  if (order != 0 && walk_of_reduction(input, request.dimensions, false).inputs == 1)
    return reduced_in_type<SumOfMagnitudesOf>(input, {}, request, unchanged);
  const auto root = [](auto number, const ReductionWalk&) { return std::sqrt(number); };
  if (order == 2) return reduced_in_type<SumOfSquaresOf>(input, {}, request, root);
  if (order == 1) return reduced_in_type<SumOfMagnitudesOf>(input, {}, request, unchanged);
  if (order == 0) return reduced_in_type<CountOfNonzeros>(input, {}, request, unchanged);
  if (std::isinf(order))
    return {
        extremes(magnitudes(input, request.type.value_or(input.type)), order > 0, request).numbers,
        "exact"};
  const auto powers = [&](auto exponent) {
    using Number = decltype(exponent);
    return reduced_by(
        PowersOf<Number>{exponent}, input, {}, request,
        [&](Number number, const ReductionWalk&) { return power_of(number, 1 / exponent); });
  };
  return is_of_doubles(input) ? powers(order) : powers(static_cast<float>(order));
}

namespace {

template <class Number>
Reduced log_sum_exp_of(const Tensor& input, std::vector<Number> numbers,
                       const std::vector<Number>& maxima, const ReductionRequest& request) {
  const InType stored{input.type};
  const ReductionWalk walk = walk_of_reduction(input, request.dimensions, false);
  for (std::int64_t output = 0; output < walk.outputs; ++output) {
    const Number maximum = maxima[static_cast<std::size_t>(result_of(walk.kept, output))];
    const Number subtracted = std::isinf(maximum) ? 0 : maximum;
    const std::int64_t start = place_of(walk.kept, output);
    for (std::int64_t i = 0; i < walk.inputs; ++i) {
      Number& x = numbers[static_cast<std::size_t>(start + place_of(walk.reduced, i))];
      x = stored(exp_of(stored(x - subtracted)));
    }
  }
  Tensor powers = tensor_of_numbers(input.type, input.shape, numbers);
  powers.stride = dense_stride_like(input);
  return sum(powers, request);
}
template <class Number>
Tensor logs_of_sums(const Tensor& input, const Tensor& result, std::vector<Number> sums,
                    const std::vector<Number>& maxima) {
  const InType stored{input.type};
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = stored(log_of(sums[i])) + (std::isinf(maxima[i]) ? 0 : maxima[i]);
  return tensor_of_numbers(input.type, result.shape, sums);
}

}  // namespace

Reduced log_sum_exp(const Tensor& input, const ReductionRequest& request) {
  ReductionRequest kept = request;
  kept.keep_dimensions = true;
  const Tensor greatest = extremes(input, true, kept).numbers;
  if (is_of_doubles(input)) {
    const std::vector<double> maxima = doubles_of(greatest);
    Reduced all = log_sum_exp_of(input, doubles_of(input), maxima, request);
    all.result = logs_of_sums(input, all.result, doubles_of(all.result), maxima);
    return all;
  }
  const std::vector<float> maxima = numbers_of(greatest);
  Reduced all = log_sum_exp_of(input, numbers_of(input), maxima, request);
  all.result = logs_of_sums(input, all.result, numbers_of(all.result), maxima);
  return all;
}

namespace {

template <class Number>
Spread variance_in(const Tensor& input, double correction, bool is_root,
                   const ReductionRequest& request) {
  const Plan plan = planned(input, {.accumulators = 2, .vector = 2}, request);
  const auto all = reduced(WelfordOf<Number>{}, input, plan.walk, plan.shape, request.threads);
  std::vector<Number> spreads(all.size()), means(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto fewer = static_cast<Number>(correction);
    const Number divisor = all[i].count > fewer ? all[i].count - fewer : 0;
    const Number variance = all[i].squares / divisor;
    spreads[i] = is_root ? std::sqrt(variance) : variance;
    means[i] = all[i].mean;
  }
  const auto result = [&](const std::vector<Number>& numbers) {
    return tensor_of_numbers(input.type, plan.walk.result_shape, numbers);
  };
  return {result(spreads), result(means), plan.shape.text()};
}

}  // namespace

Spread variance(const Tensor& input, double correction, bool is_root,
                const ReductionRequest& request) {
  return is_of_doubles(input) ? variance_in<double>(input, correction, is_root, request)
                              : variance_in<float>(input, correction, is_root, request);
}

namespace {

template <class Number>
Extremes extremes_in(const Tensor& input, bool is_greatest, const ReductionRequest& request) {
  const ReductionWalk walk = walk_of_reduction(input, request.dimensions, request.keep_dimensions);
  ReductionShape shape;
  const std::vector<ExtremeOf<Number>> found =
      is_greatest ? reduced(Extremum<true, Number>{}, input, walk, shape, request.threads)
                  : reduced(Extremum<false, Number>{}, input, walk, shape, request.threads);
  const auto size = static_cast<std::size_t>(input.element_bytes());
  std::vector<std::byte> bytes(found.size() * size);
  std::vector<std::int64_t> indices(found.size());
  const std::int64_t along =
      request.dimensions.size() == 1 && walk.reduced.size() == 1 ? walk.reduced[0].place : 1;
  for (std::int64_t output = 0; output < walk.outputs; ++output) {
    const auto i = static_cast<std::size_t>(result_of(walk.kept, output));
    const std::int64_t place = place_of(walk.reduced, found[i].index);
    indices[i] = place / along;
    const auto from = static_cast<std::size_t>(place_of(walk.kept, output) + place) * size;
    std::memcpy(bytes.data() + i * size, input.bytes.data() + from, size);
  }
  return {tensor_of_bytes(input.type, walk.result_shape, contiguous_stride(walk.result_shape),
                          std::move(bytes)),
          tensor_of_integers(formats::int64, walk.result_shape, indices)};
}

}  // namespace

Extremes extremes(const Tensor& input, bool is_greatest, const ReductionRequest& request) {
  return is_of_doubles(input) ? extremes_in<double>(input, is_greatest, request)
                              : extremes_in<float>(input, is_greatest, request);
}

namespace {

template <class Number>
Tensor any_or_all_in(const Tensor& input, bool is_any, const ReductionRequest& request) {
  const ReductionWalk walk = walk_of_reduction(input, request.dimensions, request.keep_dimensions);
  const ViewOf<Number> numbers(input);
  std::vector<std::int64_t> truths(static_cast<std::size_t>(walk.outputs));
  for (std::int64_t output = 0; output < walk.outputs; ++output) {
    const std::int64_t start = place_of(walk.kept, output);
    bool truth = !is_any;
    for (std::int64_t i = 0; i < walk.inputs; ++i) {
      const bool is_set = numbers[static_cast<std::size_t>(start + place_of(walk.reduced, i))] != 0;
      truth = is_any ? truth || is_set : truth && is_set;
    }
    truths[static_cast<std::size_t>(result_of(walk.kept, output))] = truth ? 1 : 0;
  }
  return tensor_of_integers(formats::b1, walk.result_shape, truths);
}

}  // namespace

Tensor any_or_all(const Tensor& input, bool is_any, const ReductionRequest& request) {
  return is_of_doubles(input) ? any_or_all_in<double>(input, is_any, request)
                              : any_or_all_in<float>(input, is_any, request);
}

}  // namespace guardbit::emulator::operators

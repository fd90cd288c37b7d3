#include "emulator/operators/pointwise/pointwise.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "emulator/operators/broadcast.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

/// The function that an expression calls, where it is nothing else: expf of expf(x).
std::string_view function_of(std::string_view expression) {
  for (const std::string_view operands : {"(x)", "(x, y)"}) {
    if (!expression.ends_with(operands)) continue;
    expression.remove_suffix(operands.size());
    return expression;
  }
  return {};
}

/// Reads an operand at the places of a larger shape.
class OperandReader {
 public:
  /// `keeps_nans`: the kernel reads FP16 as such; else the unit converts it, and so makes NaNs its
  /// own.
  OperandReader(const Tensor& tensor, const Dimensions& shape, bool keeps_nans)
      : tensor_(tensor),
        shape_(shape),
        is_whole_(tensor.shape == shape),
        stored_(is_whole_ ? stored_numbers(tensor) : std::span<const float>()),
        keeps_nans_(keeps_nans || tensor.type != formats::fp16) {
    if (is_whole_) return;
    numbers_ = numbers_of(tensor);
    if (!keeps_nans_) make_unit_nans(numbers_);
    const auto first = std::ranges::find_if(tensor.shape, [](std::int64_t n) { return n != 1; });
    const Dimensions end(first, tensor.shape.end());
    is_suffix_ = end.size() <= shape.size() && std::equal(end.rbegin(), end.rend(), shape.rbegin());
  }

  /// Its numbers from there on, in `numbers` or where they lie.
  std::span<const float> read(std::int64_t begin, std::span<float> numbers) const {
    if (!stored_.empty()) return stored_.subspan(static_cast<std::size_t>(begin), numbers.size());
    read_into(begin, numbers);
    return numbers;
  }

 private:
  void read_into(std::int64_t begin, std::span<float> numbers) const {
    if (is_whole_) {
      read_numbers(tensor_, begin, numbers);
      if (!keeps_nans_) make_unit_nans(numbers);
      return;
    }
    if (numbers_.size() == 1) {
      std::ranges::fill(numbers, numbers_.front());
      return;
    }
    if (is_suffix_) {
      // The same numbers again and again.
      auto at = static_cast<std::size_t>(begin) % numbers_.size();
      for (std::size_t i = 0; i < numbers.size();) {
        const std::size_t count = std::min(numbers_.size() - at, numbers.size() - i);
        std::copy_n(numbers_.begin() + static_cast<std::ptrdiff_t>(at), count,
                    numbers.begin() + static_cast<std::ptrdiff_t>(i));
        i += count;
        at = 0;
      }
      return;
    }
    BroadcastPlaces places(tensor_.shape, shape_, begin);
    for (float& number : numbers) number = numbers_[static_cast<std::size_t>(places.next())];
  }

  const Tensor& tensor_;
  const Dimensions& shape_;
  bool is_whole_;
  /// the numbers themselves, where they are read as they lie
  std::span<const float> stored_;
  bool keeps_nans_;
  /// its shape is how the larger one ends, but for ones in front
  bool is_suffix_ = false;
  /// of a tensor that is broadcast
  std::vector<float> numbers_;
};

}  // namespace

std::vector<PointwiseOperator> pointwise_operators() {
  std::vector<PointwiseOperator> all;
  for (const auto part :
       {unary_operators(), binary_operators(), activation_operators(), gradient_operators()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

const PointwiseOperator* find_pointwise(std::string_view name) {
  static const std::vector<PointwiseOperator> all = pointwise_operators();
  static const auto table = [] {
    std::unordered_map<std::string_view, const PointwiseOperator*> by_name;
    for (const PointwiseOperator& op : all) by_name.emplace(op.name, &op);
    return by_name;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

PointwiseRunner::PointwiseRunner(const PointwiseOperator& op)
    : op_(op),
      kernel_(find_pointwise_kernel(op.name)),
      function_(find_kernel(function_engines().front(), function_of(op.expression))) {}

void PointwiseRunner::run(const PointwiseOperands& operands, const Parameters& parameters,
                          std::span<float> results) const {
  const auto x = operands.numbers[0], y = operands.numbers[1];
  if (kernel_ != nullptr) {
    kernel_->run(x.data(), y.empty() ? nullptr : y.data(), parameters, results.data(),
                 results.size());
  } else if (function_ != nullptr) {
    run_on_numbers(*function_, x, y, results);
  } else {
    op_.run(operands, parameters, results);
  }
}

Tensor run_pointwise(const PointwiseOperator& op, std::span<const Tensor* const> operands,
                     const Parameters& parameters, const formats::Format& type, int threads) {
  const auto shape = broadcast_shape(operands);
  assert(shape && operands.size() == static_cast<std::size_t>(op.operands));
  std::vector<OperandReader> readers;
  const bool reads_as_such = op.chosen_nan == ChosenNan::kept && type == formats::fp16;
  for (const Tensor* operand : operands) readers.emplace_back(*operand, *shape, reads_as_such);
  Tensor result = broadcast_result(operands, *shape, type);
  const auto bytes = writable_bytes(result);
  const bool keeps_nans = op.chosen_nan == ChosenNan::kept ||
                          (op.chosen_nan == ChosenNan::kept_in_fp32 && type == formats::fp32);
  const PointwiseRunner runner(op);
  constexpr std::size_t grain = 4096;
  formats::parallel_for(
      static_cast<std::size_t>(result.count()), grain, threads,
      [&](std::size_t begin, std::size_t end) {
        std::array<std::array<float, grain>, 4> numbers;
        PointwiseOperands views;
        for (std::size_t i = 0; i < readers.size(); ++i) {
          const auto view = std::span(numbers[i]).first(end - begin);
          views.numbers[i] = readers[i].read(static_cast<std::int64_t>(begin), view);
        }
        if (type == formats::fp32) {
          auto* all = reinterpret_cast<float*>(bytes.data());
          const std::span<float> results(all + begin, end - begin);
          runner.run(views, parameters, results);
          if (!keeps_nans) make_unit_nans(results);
          return;
        }
        const auto results = std::span(numbers[3]).first(end - begin);
        runner.run(views, parameters, results);
        write_numbers(type, static_cast<std::int64_t>(begin), results, keeps_nans, bytes);
      });
  return result;
}

}  // namespace guardbit::emulator::operators

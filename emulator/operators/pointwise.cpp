#include "emulator/operators/pointwise.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "emulator/operators/broadcast.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Reads an operand at the places of a larger shape.
class OperandReader {
 public:
  /// `keeps_nans`: the kernel reads FP16 as such; else the unit converts it, and so makes NaNs its
  /// own.
  OperandReader(const Tensor& tensor, const Dimensions& shape, bool keeps_nans)
      : tensor_(tensor),
        shape_(shape),
        is_whole_(tensor.shape == shape),
        keeps_nans_(keeps_nans || tensor.type != formats::fp16) {
    if (is_whole_) return;
    numbers_ = numbers_of(tensor);
    if (!keeps_nans_) make_unit_nans(numbers_);
  }

  void read(std::int64_t begin, std::span<float> numbers) const {
    if (is_whole_) {
      read_numbers(tensor_, begin, numbers);
      if (!keeps_nans_) make_unit_nans(numbers);
      return;
    }
    if (numbers_.size() == 1) {
      std::ranges::fill(numbers, numbers_.front());
      return;
    }
    BroadcastPlaces places(tensor_.shape, shape_, begin);
    for (float& number : numbers) number = numbers_[static_cast<std::size_t>(places.next())];
  }

 private:
  const Tensor& tensor_;
  const Dimensions& shape_;
  bool is_whole_, keeps_nans_;
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

Tensor run_pointwise(const PointwiseOperator& op, std::span<const Tensor* const> operands,
                     const Parameters& parameters, const formats::Format& type, int threads) {
  const auto shape = broadcast_shape(operands);
  assert(shape && operands.size() == static_cast<std::size_t>(op.operands));
  std::vector<OperandReader> readers;
  const bool reads_as_such = op.chosen_nan == ChosenNan::kept && type == formats::fp16;
  for (const Tensor* operand : operands) readers.emplace_back(*operand, *shape, reads_as_such);
  Tensor result = uninitialised_tensor(type, *shape);
  for (const Tensor* operand : operands) {
    if (operand->shape == *shape) {
      result.stride = operand->stride;
      break;
    }
  }
  const auto bytes = writable_bytes(result);
  const bool keeps_nans = op.chosen_nan == ChosenNan::kept ||
                          (op.chosen_nan == ChosenNan::kept_in_fp32 && type == formats::fp32);
  constexpr std::size_t grain = 4096;
  formats::parallel_for(static_cast<std::size_t>(result.count()), grain, threads,
                        [&](std::size_t begin, std::size_t end) {
                          std::array<std::array<float, grain>, 4> numbers;
                          PointwiseOperands views;
                          for (std::size_t i = 0; i < readers.size(); ++i) {
                            const auto view = std::span(numbers[i]).first(end - begin);
                            readers[i].read(static_cast<std::int64_t>(begin), view);
                            views.numbers[i] = view;
                          }
                          const auto results = std::span(numbers[3]).first(end - begin);
                          op.run(views, parameters, results);
                          write_numbers(type, static_cast<std::int64_t>(begin), results, keeps_nans,
                                        bytes);
                        });
  return result;
}

}  // namespace guardbit::emulator::operators

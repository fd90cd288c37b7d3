#include "emulator/operators/broadcast.hpp"

#include <algorithm>

namespace guardbit::emulator::operators {

std::optional<Dimensions> broadcast_shape(std::span<const Tensor* const> tensors) {
  Dimensions shape;
  for (const Tensor* tensor : tensors) {
    if (tensor->shape.size() > shape.size())
      shape.insert(shape.begin(), tensor->shape.size() - shape.size(), 1);
  }
  for (const Tensor* tensor : tensors) {
    const std::size_t missing = shape.size() - tensor->shape.size();
    for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
      std::int64_t& size = shape[missing + i];
      if (tensor->shape[i] == 1) continue;
      if (size != 1 && size != tensor->shape[i]) return std::nullopt;
      size = tensor->shape[i];
    }
  }
  return shape;
}

Tensor broadcast_result(std::span<const Tensor* const> operands, const Dimensions& shape,
                        const formats::Format& type) {
  Tensor result = uninitialised_tensor(type, shape);
  const auto found = std::ranges::find(
      operands, shape, [](const Tensor* operand) -> const Dimensions& { return operand->shape; });
  if (found != operands.end()) result.stride = (*found)->stride;
  return result;
}

BroadcastPlaces::BroadcastPlaces(const Dimensions& smaller, const Dimensions& larger,
                                 std::int64_t begin)
    : shape_(larger), step_(larger.size()), place_(larger.size()) {
  const std::size_t missing = larger.size() - smaller.size();
  std::int64_t next = 1;
  for (std::size_t i = smaller.size(); i-- > 0;) {
    step_[missing + i] = smaller[i] == 1 ? 0 : next;
    next *= smaller[i];
  }
  for (std::size_t i = larger.size(); i-- > 0 && larger[i] > 0;) {
    place_[i] = begin % larger[i];
    begin /= larger[i];
    at_ += place_[i] * step_[i];
  }
}

std::int64_t BroadcastPlaces::next() {
  const std::int64_t at = at_;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    at_ += step_[i];
    if (++place_[i] < shape_[i]) break;
    at_ -= place_[i] * step_[i];
    place_[i] = 0;
  }
  return at;
}

}  // namespace guardbit::emulator::operators

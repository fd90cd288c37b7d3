#include "emulator/operators/casts.hpp"

#include <algorithm>
#include <cstring>

namespace guardbit::emulator::operators {
namespace {

/// BF16 becomes FP32 by a shift, so that a NaN keeps its bits; FP16 goes through the unit.
bool keeps_nans(const formats::Format& from, const formats::Format& to) {
  return from == formats::bf16 && to == formats::fp32;
}

/// From and to FP64, whose numbers FP32 does not hold. Smaller types are reached by way of FP32.
Tensor converted_doubles(const Tensor& source, const formats::Format& type) {
  const std::vector<double> numbers = doubles_of(source);
  if (formats::is_integer(type)) return tensor_of_integers(type, source.shape, integers_of(source));
  Tensor result = uninitialised_tensor(type, source.shape);
  if (type == formats::fp64) {
    std::memcpy(writable_bytes(result).data(), numbers.data(), result.bytes.size());
  } else {
    std::vector<float> singles(numbers.size());
    std::ranges::transform(numbers, singles.begin(),
                           [](double number) { return static_cast<float>(number); });
    write_numbers(type, 0, singles, false, writable_bytes(result));
  }
  return result;
}

Tensor cut_to_integers(const Tensor& source, const formats::Format& type) {
  std::vector<std::int64_t> numbers = integers_of(source);
  const bool is_floating = !formats::is_integer(source.type);
  if (is_floating && type == formats::b1) {
    const std::vector<float> floats = numbers_of(source);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = floats[i] != 0 ? 1 : 0;
  } else if (is_floating && type.has_sign && formats::bits(type) <= 32) {
    for (std::int64_t& number : numbers)
      number = std::clamp<std::int64_t>(number, INT32_MIN, INT32_MAX);
  }
  return tensor_of_integers(type, source.shape, numbers);
}

}  // namespace

Tensor converted(const Tensor& source, const formats::Format& type) {
  if (source.type == type) return source;
  Tensor result;
  if (formats::is_integer(type)) {
    result = cut_to_integers(source, type);
  } else if (source.type == formats::fp64 || type == formats::fp64) {
    result = converted_doubles(source, type);
  } else {
    result = uninitialised_tensor(type, source.shape);
    write_numbers(type, 0, numbers_of(source), keeps_nans(source.type, type),
                  writable_bytes(result));
  }
  result.stride = source.stride;
  return result;
}

}  // namespace guardbit::emulator::operators

#include "emulator/operators/casts.hpp"

#include <algorithm>
#include <span>

namespace guardbit::emulator::operators {
namespace {

/// BF16 and E4M3 become FP32 by their bits, so that a NaN keeps them.
bool keeps_nans(const formats::Format& from, const formats::Format& to) {
  return (from == formats::bf16 || from == formats::e4m3) && to == formats::fp32;
}

/// FP16 goes through the unit, which makes NaNs its own.
std::vector<float> converted_numbers(const Tensor& source) {
  std::vector<float> numbers = numbers_of(source);
  if (source.type == formats::fp16) make_unit_nans(numbers);
  return numbers;
}

/// From and to FP64, whose numbers FP32 does not hold. Smaller types are reached by way of FP32.
Tensor converted_doubles(const Tensor& source, const formats::Format& type) {
  std::vector<double> numbers = doubles_of(source);
  if (source.type == formats::fp16) {
    const std::vector<float> singles = converted_numbers(source);
    numbers.assign(singles.begin(), singles.end());
  }
  if (formats::is_integer(type)) return tensor_of_integers(type, source.shape, integers_of(source));
  Tensor result = uninitialised_tensor(type, source.shape);
  if (type == formats::fp64) {
    std::ranges::copy(std::as_bytes(std::span(numbers)), writable_bytes(result).begin());
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
    write_numbers(type, 0, converted_numbers(source), keeps_nans(source.type, type),
                  writable_bytes(result));
  }
  result.stride = source.stride;
  return result;
}

}  // namespace guardbit::emulator::operators

#include "emulator/operators/operator_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/operators/kernels/vectorised.hpp"
#include "emulator/operators/tensor_memory.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/value.hpp"

namespace guardbit::emulator::operators {
namespace {

using formats::Format;

template <class Word>
Word word_at(std::span<const std::byte> bytes, std::int64_t index) {
  Word word;
  std::memcpy(&word, bytes.data() + static_cast<std::size_t>(index) * sizeof(Word), sizeof(Word));
  return word;
}

/// yes or no, without a branch, so that loops run in vectors.
std::uint32_t chosen(bool is_yes, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0 - static_cast<std::uint32_t>(is_yes);
  return (yes & mask) | (no & ~mask);
}

float number_of_fp16(std::uint16_t code) {
  const std::uint32_t sign = (code & 0x8000U) << 16, magnitude = code & 0x7fffU;
  // The magnitude counts units of 2^-24 where it is subnormal.
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  const std::uint32_t normal = (magnitude << 13) + ((127U - 15U) << 23);
  const std::uint32_t special = 0x7f800000 | (magnitude << 13);
  const std::uint32_t large = chosen(magnitude >= 0x7c00, special, normal);
  return std::bit_cast<float>(sign |
                              (magnitude >= 0x400 ? large : std::bit_cast<std::uint32_t>(small)));
}

float number_of_bf16(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

std::uint16_t fp16_of(float number) {
  const auto code = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t sign = code >> 16 & 0x8000, magnitude = code & 0x7fffffff;
  // Below 2^-14 the sum with 2^-1 has a unit of 2^-24 in its last place and rounds there.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(sum) - 0x3f000000;
  const std::uint32_t biased = magnitude - ((127U - 15U) << 23);
  const std::uint32_t normal = (biased + 0xfff + (biased >> 13 & 1)) >> 13;
  const std::uint32_t finite = chosen(magnitude < 0x38800000, small, normal);
  const std::uint32_t result = sign | chosen(magnitude >= 0x477ff000, 0x7c00, finite);
  return static_cast<std::uint16_t>(chosen(magnitude > 0x7f800000, 0x7fff, result));
}

std::uint16_t bf16_of(float number) {
  const auto code = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t rounded = (code + 0x7fff + (code >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((code & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

/// Any other floating format as PyTorch converts to it.
std::uint64_t code_of(const Format& type, float number) {
  const formats::Converter* converter = formats::find_converter("pytorch", type);
  const formats::Value value = formats::decode(formats::fp32, std::bit_cast<std::uint32_t>(number));
  return formats::encode(type, value, formats::Rounding::nearest_even,
                         converter == nullptr ? formats::Overflow{} : converter->overflow);
}

template <class Word>
std::int64_t integer_at(const Tensor& tensor, std::int64_t index) {
  if (tensor.type.has_sign) return word_at<std::make_signed_t<Word>>(tensor.bytes, index);
  return static_cast<std::int64_t>(word_at<Word>(tensor.bytes, index));
}

std::int64_t integer_at(const Tensor& tensor, std::int64_t index) {
  switch (tensor.element_bytes()) {
    case 1: return integer_at<std::uint8_t>(tensor, index);
    case 2: return integer_at<std::uint16_t>(tensor, index);
    case 4: return integer_at<std::uint32_t>(tensor, index);
    default: return integer_at<std::uint64_t>(tensor, index);
  }
}

float number_at(const Tensor& tensor, std::int64_t index) {
  if (tensor.type == formats::fp32) return word_at<float>(tensor.bytes, index);
  if (tensor.type == formats::fp16)
    return number_of_fp16(word_at<std::uint16_t>(tensor.bytes, index));
  if (tensor.type == formats::bf16)
    return number_of_bf16(word_at<std::uint16_t>(tensor.bytes, index));
  if (tensor.type == formats::fp64) return static_cast<float>(word_at<double>(tensor.bytes, index));
  if (formats::is_integer(tensor.type)) return static_cast<float>(integer_at(tensor, index));
  const formats::Value value =
      formats::decode(tensor.type, word_at<std::uint8_t>(tensor.bytes, index));
  if (value.kind == formats::Kind::nan) {
    // E5M2 goes through the unit as FP16, E4M3 is widened bit by bit.
    constexpr std::uint32_t of_unit = 0x7fffffff, widened = 0x7ff00000, sign = 0x80000000;
    if (tensor.type == formats::e5m2) return std::bit_cast<float>(of_unit);
    return std::bit_cast<float>(value.negative ? sign | widened : widened);
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(formats::encode(formats::fp32, value)));
}

/// Writes the code of each number as a word.
template <class Word, class CodeOf, class Source>
void write_codes(std::int64_t begin, std::span<Source> numbers, std::span<std::byte> bytes,
                 const CodeOf& code_of_number) {
  std::byte* at = bytes.data() + static_cast<std::size_t>(begin) * sizeof(Word);
  for (const auto number : numbers) {
    const auto word = static_cast<Word>(code_of_number(number));
    std::memcpy(at, &word, sizeof(Word));
    at += sizeof(Word);
  }
}

/// The same of FP16, BF16 and FP32, in vectors.
template <class Word, auto code_of_number>
void write_words(std::span<const float> numbers, std::byte* at) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Word word = code_of_number(numbers[i]);
    std::memcpy(at + i * sizeof(Word), &word, sizeof(Word));
  }
}
template <auto number_of_code>
void read_words(const std::byte* at, std::span<float> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t word = 0;
    std::memcpy(&word, at + i * sizeof word, sizeof word);
    numbers[i] = number_of_code(word);
  }
}

std::uint32_t fp32_of(float x) {
  const auto code = std::bit_cast<std::uint32_t>(x);
  return (code & 0x7fffffff) > 0x7f800000 ? 0x7fffffffU : code;
}
std::uint8_t truth_of(float x) { return x != 0 ? 1 : 0; }
std::uint32_t fp32_with_nans(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint16_t fp16_with_nans(float x) {
  const auto code = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nan = (code >> 16 & 0x8000) | (code >> 13 & 0x3ff) | 0x7c00;
  const std::uint16_t number = fp16_of(x);
  return (code & 0x7fffffff) > 0x7f800000 ? static_cast<std::uint16_t>(nan) : number;
}
std::uint16_t bf16_with_nans(float x) {
  const auto code = std::bit_cast<std::uint32_t>(x);
  const std::uint16_t number = bf16_of(x);
  return (code & 0x7fffffff) > 0x7f800000 ? static_cast<std::uint16_t>(code >> 16) : number;
}

/// A floating number as an integer: cut toward zero, kept inside the type's range; NaNs give 0.
std::int64_t integer_of(double number) {
  if (number >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (number >= -0x1p63) return static_cast<std::int64_t>(number);
  return number == number ? std::numeric_limits<std::int64_t>::min() : 0;
}

}  // namespace

std::size_t dimension_of(const Tensor& tensor, std::int64_t dimension) {
  const std::int64_t rank = std::max<std::int64_t>(tensor.rank(), 1);
  if (dimension < -rank || dimension >= rank)
    throw UnknownShape{"dimension " + std::to_string(dimension) + " of " + std::to_string(rank)};
  return static_cast<std::size_t>(dimension < 0 ? dimension + rank : dimension);
}

Dimensions contiguous_stride(const Dimensions& shape) {
  Dimensions stride(shape.size());
  std::int64_t next = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    stride[i] = next;
    next *= std::max<std::int64_t>(shape[i], 1);
  }
  return stride;
}

bool is_contiguous(const Tensor& tensor) {
  std::int64_t next = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 1) continue;
    if (tensor.stride[i] != next) return false;
    next *= tensor.shape[i];
  }
  return true;
}

bool is_aligned(const Tensor& tensor, int bytes) {
  return tensor.offset * tensor.element_bytes() % bytes == 0;
}

std::uint64_t code_at(const Tensor& tensor, std::int64_t index) {
  const auto width = static_cast<std::size_t>(tensor.element_bytes());
  std::uint64_t code = 0;
  std::memcpy(&code, tensor.bytes.data() + static_cast<std::size_t>(index) * width, width);
  return code;
}

bool is_working_type(const Format& type) {
  return type == formats::fp32 || type == formats::fp16 || type == formats::bf16;
}

void read_numbers(const Tensor& tensor, std::int64_t begin, std::span<float> numbers) {
  if (tensor.type == formats::fp32) {
    const auto from =
        tensor.bytes.subspan(static_cast<std::size_t>(begin) * 4, numbers.size_bytes());
    if (!from.empty()) std::memcpy(numbers.data(), from.data(), from.size());
    return;
  }
  const std::byte* at =
      tensor.bytes.data() + static_cast<std::size_t>(begin * tensor.element_bytes());
  if (tensor.type == formats::fp16) return vectorised<read_words<number_of_fp16>>(at, numbers);
  if (tensor.type == formats::bf16) return vectorised<read_words<number_of_bf16>>(at, numbers);
  for (float& number : numbers) number = number_at(tensor, begin++);
}

std::span<const float> stored_numbers(const Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
  if (tensor.type != formats::fp32 || address % alignof(float) != 0) return {};
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

std::vector<float> numbers_of(const Tensor& tensor) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.count()));
  read_numbers(tensor, 0, numbers);
  return numbers;
}

std::vector<float> numbers_or_none(const Tensor* tensor) {
  return tensor == nullptr ? std::vector<float>{} : numbers_of(*tensor);
}

namespace {
void replace_nans(std::span<float> numbers) {
  for (float& number : numbers) number = std::bit_cast<float>(fp32_of(number));
}
}  // namespace

void make_unit_nans(std::span<float> numbers) { vectorised<replace_nans>(numbers); }

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.count()));
  std::int64_t index = 0;
  for (double& number : numbers) {
    number = tensor.type == formats::fp64       ? word_at<double>(tensor.bytes, index)
             : formats::is_integer(tensor.type) ? static_cast<double>(integer_at(tensor, index))
                                                : number_at(tensor, index);
    ++index;
  }
  return numbers;
}

std::vector<std::int64_t> integers_of(const Tensor& tensor) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(tensor.count()));
  std::int64_t index = 0;
  for (std::int64_t& number : numbers) {
    number = formats::is_integer(tensor.type) ? integer_at(tensor, index)
             : tensor.type == formats::fp64   ? integer_of(word_at<double>(tensor.bytes, index))
                                              : integer_of(number_at(tensor, index));
    ++index;
  }
  return numbers;
}

std::vector<std::int64_t> places_of(const Tensor& tensor, std::int64_t count,
                                    std::optional<std::int64_t> ignored) {
  std::vector<std::int64_t> places = integers_of(tensor);
  for (const std::int64_t place : places) {
    if ((place < 0 || place >= count) && place != ignored)
      throw UnknownShape{"the index " + std::to_string(place) + " of " + std::to_string(count)};
  }
  return places;
}

float rounded_to(const Format& type, float number) {
  if (type == formats::fp32 || number != number) return number;
  if (type == formats::fp16) return number_of_fp16(fp16_of(number));
  if (type == formats::bf16) return number_of_bf16(bf16_of(number));
  if (type == formats::fp64) return number;
  return std::bit_cast<float>(static_cast<std::uint32_t>(
      formats::encode(formats::fp32, formats::decode(type, code_of(type, number)))));
}

namespace {
/// NaNs stay what they are.
template <auto code_of_number, auto number_of_code>
void round_words(std::span<float> numbers) {
  for (float& number : numbers) {
    const float rounded = number_of_code(code_of_number(number));
    number = number == number ? rounded : number;
  }
}
}  // namespace

void round_to(const Format& type, std::span<float> numbers) {
  if (type == formats::fp32) return;
  if (type == formats::fp16) return vectorised<round_words<fp16_of, number_of_fp16>>(numbers);
  if (type == formats::bf16) return vectorised<round_words<bf16_of, number_of_bf16>>(numbers);
  for (float& number : numbers) number = rounded_to(type, number);
}

void write_elements(const Tensor& result, std::int64_t begin, std::span<const float> numbers) {
  write_numbers(result.type, begin, numbers, false, writable_bytes(result));
}
void write_elements(const Tensor& result, std::int64_t begin, std::span<const double> numbers) {
  if (numbers.empty()) return;
  std::memcpy(writable_bytes(result).data() + static_cast<std::size_t>(begin) * sizeof(double),
              numbers.data(), numbers.size_bytes());
}

Tensor tensor_of_bytes(const Format& type, Dimensions shape, Dimensions stride,
                       std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {.type = type,
          .shape = std::move(shape),
          .stride = std::move(stride),
          .offset = 0,
          .is_on_gpu = true,
          .bytes = *owner,
          .owner = owner};
}

Tensor tensor_of_doubles(Dimensions shape, std::span<const double> numbers) {
  const auto bytes = std::as_bytes(numbers);
  Dimensions stride = contiguous_stride(shape);
  return tensor_of_bytes(formats::fp64, std::move(shape), std::move(stride),
                         {bytes.begin(), bytes.end()});
}

Tensor uninitialised_tensor(const Format& type, Dimensions shape) {
  Tensor tensor{.type = type,
                .shape = std::move(shape),
                .stride = {},
                .offset = 0,
                .is_on_gpu = true,
                .bytes = {},
                .owner = nullptr};
  tensor.stride = contiguous_stride(tensor.shape);
  const auto size = static_cast<std::size_t>(tensor.count() * tensor.element_bytes());
  auto memory = tensor_memory(size);
  tensor.bytes = {memory.get(), size};
  tensor.owner = std::move(memory);
  return tensor;
}

std::span<std::byte> writable_bytes(const Tensor& tensor) {
  return {const_cast<std::byte*>(tensor.bytes.data()), tensor.bytes.size()};
}

void write_numbers(const Format& type, std::int64_t begin, std::span<const float> numbers,
                   bool keeps_nans, std::span<std::byte> bytes) {
  std::byte* at = bytes.data() + static_cast<std::size_t>(begin) *
                                     static_cast<std::size_t>(formats::container_bits(type) / 8);
  if (type == formats::fp32) {
    keeps_nans ? vectorised<write_words<std::uint32_t, fp32_with_nans>>(numbers, at)
               : vectorised<write_words<std::uint32_t, fp32_of>>(numbers, at);
  } else if (type == formats::fp16) {
    keeps_nans ? vectorised<write_words<std::uint16_t, fp16_with_nans>>(numbers, at)
               : vectorised<write_words<std::uint16_t, fp16_of>>(numbers, at);
  } else if (type == formats::bf16) {
    keeps_nans ? vectorised<write_words<std::uint16_t, bf16_with_nans>>(numbers, at)
               : vectorised<write_words<std::uint16_t, bf16_of>>(numbers, at);
  } else if (type == formats::b1) {
    vectorised<write_words<std::uint8_t, truth_of>>(numbers, at);
  } else if (type == formats::fp64) {
    write_codes<double>(begin, numbers, bytes, [](float x) { return double{x}; });
  } else if (formats::is_integer(type)) {
    const auto number = [](float x) { return integer_of(x); };
    switch (formats::container_bits(type)) {
      case 8: return write_codes<std::uint8_t>(begin, numbers, bytes, number);
      case 16: return write_codes<std::uint16_t>(begin, numbers, bytes, number);
      case 32: return write_codes<std::uint32_t>(begin, numbers, bytes, number);
      default: return write_codes<std::uint64_t>(begin, numbers, bytes, number);
    }
  } else {
    write_codes<std::uint8_t>(begin, numbers, bytes, [&](float x) { return code_of(type, x); });
  }
}

Tensor tensor_of_numbers(const Format& type, Dimensions shape, Dimensions stride,
                         std::span<const float> numbers) {
  Tensor tensor = uninitialised_tensor(type, std::move(shape));
  tensor.stride = std::move(stride);
  write_numbers(type, 0, numbers, false, writable_bytes(tensor));
  return tensor;
}

Tensor tensor_of_numbers(const Format& type, Dimensions shape, std::span<const float> numbers) {
  Dimensions stride = contiguous_stride(shape);
  return tensor_of_numbers(type, std::move(shape), std::move(stride), numbers);
}

Tensor tensor_of_integers(const Format& type, Dimensions shape,
                          std::span<const std::int64_t> numbers) {
  const auto number = [&](std::int64_t x) {
    return type == formats::b1 ? static_cast<std::int64_t>(x != 0) : x;
  };
  Tensor tensor = uninitialised_tensor(type, std::move(shape));
  const auto bytes = writable_bytes(tensor);
  switch (formats::container_bits(type)) {
    case 8: write_codes<std::uint8_t>(0, numbers, bytes, number); break;
    case 16: write_codes<std::uint16_t>(0, numbers, bytes, number); break;
    case 32: write_codes<std::uint32_t>(0, numbers, bytes, number); break;
    default: write_codes<std::uint64_t>(0, numbers, bytes, number); break;
  }
  return tensor;
}

}  // namespace guardbit::emulator::operators

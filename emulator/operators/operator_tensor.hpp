#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"

// Operands and results of operators, with what the library looks at when it chooses a kernel.
namespace guardbit::emulator::operators {

using Dimensions = std::vector<std::int64_t>;

/// A tensor: its elements in row-major order of `shape`, one after another, whatever `stride` says.
/// The strides are those of the tensor in the GPU's memory, by which kernels are chosen.
struct Tensor {
  /// fp64, fp32, fp16, bf16, an FP8, an integer, or b1 for booleans, one in each byte
  formats::Format type = formats::fp32;
  Dimensions shape;
  /// in elements
  Dimensions stride;
  /// in elements from the start of its allocation, which is aligned to 512 bytes
  std::int64_t offset = 0;
  /// A tensor of the CPU keeps its host's arithmetic, which has no model here.
  bool is_on_gpu = true;
  /// what `owner` keeps alive
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
  }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  int element_bytes() const { return formats::container_bits(type) / 8; }
};

/// Thrown where an operator has no rule for what it is given: a size or layout whose order is not
/// known, a dimension that is not there.
struct UnknownShape {
  std::string reason;
};
/// The number of a dimension that may be counted from the last one (-1); a scalar has one.
std::size_t dimension_of(const Tensor& tensor, std::int64_t dimension);

/// The strides of a tensor of that shape without gaps.
Dimensions contiguous_stride(const Dimensions& shape);
/// Does its memory hold the elements in row-major order, without gaps?
bool is_contiguous(const Tensor& tensor);
/// Is its first element at a multiple of so many bytes?
bool is_aligned(const Tensor& tensor, int bytes);
/// The code of an element, in the order of `bytes`.
std::uint64_t code_at(const Tensor& tensor, std::int64_t index);
/// FP32, FP16, BF16.
bool is_working_type(const formats::Format& type);

/// Its elements as FP32 numbers: exact for FP32, FP16, BF16, FP8, booleans, integers up to 24 bits;
/// greater integers and FP64 are rounded to nearest.
std::vector<float> numbers_of(const Tensor& tensor);
/// The same, and none of a tensor that is not there.
std::vector<float> numbers_or_none(const Tensor* tensor);
/// FP32 numbers where they lie; empty for another type, or at an address that no float has.
std::span<const float> stored_numbers(const Tensor& tensor);
/// The elements [begin, begin + size of numbers) of it.
void read_numbers(const Tensor& tensor, std::int64_t begin, std::span<float> numbers);
std::vector<double> doubles_of(const Tensor& tensor);
/// Integers and booleans; floating numbers are truncated.
std::vector<std::int64_t> integers_of(const Tensor& tensor);
/// Integers that number one of `count` places, or are `ignored`; UnknownShape for others.
std::vector<std::int64_t> places_of(const Tensor& tensor, std::int64_t count,
                                    std::optional<std::int64_t> ignored = {});

/// NaNs as the GPU's units make them when they convert.
void make_unit_nans(std::span<float> numbers);

/// A number rounded once to FP16, BF16, ... and back: what a kernel that stores it in that type
/// reads again. NaNs stay NaNs.
float rounded_to(const formats::Format& type, float number);
/// The steps of a kernel that stores them in a type: rounded to it, those of FP64 as they are.
struct InType {
  formats::Format type;
  /// Are steps in FP32 rounded to it?
  bool rounds_steps() const { return type != formats::fp32 && type != formats::fp64; }
  float operator()(float x) const { return rounded_to(type, x); }
  double operator()(double x) const { return x; }
};
/// The same of each, in place.
void round_to(const formats::Format& type, std::span<float> numbers);

/// A result: each number rounded once to nearest even. NaNs become the one that the GPU's units
/// make, 0x7fffffff and 0x7fff.
Tensor tensor_of_numbers(const formats::Format& type, Dimensions shape, Dimensions stride,
                         std::span<const float> numbers);
/// The same without gaps.
Tensor tensor_of_numbers(const formats::Format& type, Dimensions shape,
                         std::span<const float> numbers);
Tensor tensor_of_integers(const formats::Format& type, Dimensions shape,
                          std::span<const std::int64_t> numbers);
/// FP64 without gaps.
Tensor tensor_of_doubles(Dimensions shape, std::span<const double> numbers);
/// The same where the numbers' type is a parameter: those of FP64 are of no other type.
template <class Doubles>
requires std::convertible_to<const Doubles&, std::span<const double>> Tensor
tensor_of_numbers(const formats::Format&, Dimensions shape, const Doubles& numbers) {
  return tensor_of_doubles(std::move(shape), numbers);
}
/// A tensor whose elements are yet to be written, without gaps, and the memory of such a one.
Tensor uninitialised_tensor(const formats::Format& type, Dimensions shape);
std::span<std::byte> writable_bytes(const Tensor& tensor);
/// Writes the elements from `begin` on, each rounded once. NaNs become the units' one, or with
/// `keeps_nans` keep their bits as far as the type has them.
void write_numbers(const formats::Format& type, std::int64_t begin, std::span<const float> numbers,
                   bool keeps_nans, std::span<std::byte> bytes);
/// Writes a result's elements from `begin` on, each rounded once; FP64 as they are.
void write_elements(const Tensor& result, std::int64_t begin, std::span<const float> numbers);
void write_elements(const Tensor& result, std::int64_t begin, std::span<const double> numbers);
/// A tensor that owns these bytes.
Tensor tensor_of_bytes(const formats::Format& type, Dimensions shape, Dimensions stride,
                       std::vector<std::byte> bytes);

}  // namespace guardbit::emulator::operators

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "formats/conversion/conversion.hpp"
#include "formats/format.hpp"
#include "formats/tensors/byte_writer.hpp"
#include "formats/tensors/tensor.hpp"

// Conversions of arrays that say what happened to the elements. Every element becomes what
// convert_code makes of it; kernels and tables do what they can.
namespace guardbit::formats {

/// Converts `count` codes of `from` into codes of `to`, whose bytes the writer gets. Throws Error
/// for a scale that is zero, infinite or NaN.
ConversionSummary convert_codes(const Format& from, Packing from_packing,
                                std::span<const std::byte> input, const Format& to,
                                Packing to_packing, const ByteWriter& write, std::size_t count,
                                const ConversionOptions& options = {});
ConversionSummary convert_codes(const Format& from, Packing from_packing,
                                std::span<const std::byte> input, const Format& to,
                                Packing to_packing, std::span<std::byte> output, std::size_t count,
                                const ConversionOptions& options = {});

/// Numbers that no code says alone, each named by an index of `width` bits, 16 at most.
struct IndexedValues {
  int width = 0;
  std::function<Value(std::uint64_t index)> value;
  /// The indices of the elements [begin, end), from any thread.
  std::function<void(std::size_t begin, std::size_t end, std::uint16_t* indices)> indices;
};

/// The same of such numbers.
ConversionSummary convert_values(const IndexedValues& values, const Format& to, Packing to_packing,
                                 const ByteWriter& write, std::size_t count,
                                 const ConversionOptions& options = {});

/// A converted tensor of the same name and shape.
Tensor convert_tensor(const Tensor& tensor, const Format& to, Packing packing,
                      const ConversionOptions& options, ConversionSummary& summary);

}  // namespace guardbit::formats

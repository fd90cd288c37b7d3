#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/conversion/conversion.hpp"
#include "formats/conversion/conversion_outcome.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// One conversion, prepared once, of as many arrays as wanted: every element becomes what
/// convert_codes makes of it, without the summary, at the pace of memory where the kernels have
/// the pair (narrow floating formats and integers up to 16 bits; `uses_kernels`).
class ArrayConversion {
 public:
  /// Throws Error for a scale that is zero, infinite or NaN. `kernels` is one of
  /// kernels::available(), the widest if null.
  ArrayConversion(const Format& from, Packing from_packing, const Format& to, Packing to_packing,
                  const ConversionOptions& options = {}, const kernels::Kernels* kernels = nullptr);

  /// Converts `count` codes; the spans hold at least the bytes of so many, at any address, and do
  /// not overlap. Bits of the last byte past the last code of a dense output become zero.
  void operator()(std::span<const std::byte> input, std::span<std::byte> output,
                  std::size_t count) const;

  /// False where every element takes the reference's way.
  bool uses_kernels() const { return path_ != Path::reference; }

  /// Can convert_and_count be called? Not for scales that are no power of two, but where a source
  /// format rounds the products.
  bool counts() const { return counting_.has_value(); }

  /// The elements [begin, end), 65536 at most, of the input; `output` takes their bytes alone,
  /// and `tally` what became of them. `begin` is a multiple of 8.
  void convert_and_count(std::span<const std::byte> input, std::size_t begin, std::size_t end,
                         std::byte* output, Tally& tally) const;

 private:
  enum class Path : std::uint8_t { words, bytes, reference };
  struct Buffers;

  void choose_path();
  bool prepare_scale();
  void prepare_counting(int scale_exponent);
  void convert_range(const std::byte* input, std::byte* output, std::size_t first,
                     std::size_t count, bool stream, Buffers& buffers) const;
  void convert_by_reference(std::span<const std::byte> input, std::span<std::byte> output,
                            std::size_t begin, std::size_t end) const;
  void convert_granules(const std::byte* input, std::byte* output, std::size_t first,
                        std::size_t count, bool stream, Buffers& buffers) const;
  void convert_some(const std::byte* input, std::byte* output, std::size_t first, std::size_t count,
                    Buffers& buffers) const;
  void narrow(const std::byte* codes, std::byte* results, std::size_t first, std::size_t count,
              bool stream, Buffers& buffers) const;
  bool reads_words() const;

  Format from_, to_;
  Packing from_packing_, to_packing_;
  ConversionOptions options_;
  const kernels::Kernels* kernels_;
  Path path_ = Path::reference;
  /// in memory
  std::size_t from_bits_ = 0, to_bits_ = 0;
  /// codes that do not lie in whole bytes
  bool unpacks_ = false, packs_ = false;
  /// not used where the codes are FP32 words
  std::optional<kernels::Widening> widening_;
  std::optional<kernels::Narrowing> narrowing_;
  /// before the narrowing's own scale
  std::optional<kernels::Multiplication> multiplication_;
  std::optional<kernels::Counting> counting_;
  kernels::ByteTable table_{};
};

/// ArrayConversion, once.
void convert_array(const Format& from, Packing from_packing, std::span<const std::byte> input,
                   const Format& to, Packing to_packing, std::span<std::byte> output,
                   std::size_t count, const ConversionOptions& options = {});

}  // namespace guardbit::formats

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

// The options of `cast`.
namespace guardbit::tools {

/// How blocks choose their scales: by OCP's floor, rounded up so that nothing overflows, or to
/// nearest.
enum class ScaleChoice : std::uint8_t { exponents, without_overflow, nearest };
constexpr auto words(ScaleChoice) { return std::array{"exponents", "without_overflow", "nearest"}; }

/// What was written after `cast`; empty where nothing was.
struct CastOptions {
  std::string input;
  std::string output;
  std::string to;
  std::string from;
  std::string rounding;
  std::string overflow;
  std::string scale;
  std::string seed;
  std::string scale_rule;
  std::string tensor_scale;
  std::optional<std::int64_t> axis;
  std::vector<std::string> tensors;
  int threads = 0;
  bool json = false;
};

/// How numbers become codes of `to`. A converter brings its own rounding; naming another one beside
/// it is a contradiction.
formats::ConversionOptions conversion_options(const CastOptions& options,
                                              const formats::Format& to);

/// How numbers become blocks, but for the tensor scale.
formats::BlockQuantisationOptions block_options(const CastOptions& options,
                                                const formats::BlockFormat& to);

/// A tensor scale: that number in the format's; nothing where it follows from each tensor ("auto")
/// or the format has none.
std::optional<formats::Value> given_tensor_scale(const CastOptions& options,
                                                 const formats::BlockFormat& to);

/// The axis of the shape along which blocks lie: the last one where none is named. `what` names the
/// tensor in errors.
std::size_t block_axis(const CastOptions& options, const std::vector<std::int64_t>& shape,
                       const std::string& what);

/// Refuses options that only block formats give a meaning.
void refuse_block_options(const CastOptions& options, bool from_blocks);

/// The tensors to convert: all, or the named ones.
std::vector<formats::Tensor> selected_tensors(const formats::TensorFile& file,
                                              const CastOptions& options);

/// Sub-byte codes lie densely where the file's kind has a type for that.
formats::Packing output_packing(const std::string& path, const formats::Format& to);

}  // namespace guardbit::tools

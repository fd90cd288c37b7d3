#pragma once

#include "formats/block_format.hpp"
#include "tools/cast/cast_options.hpp"

// `cast --to` a format with block scales.
namespace guardbit::tools {

/// What `cast` calls the scales of the blocks of a tensor, and its tensor scale.
inline constexpr const char* scales_suffix = "_scale";
inline constexpr const char* tensor_scale_suffix = "_tensor_scale";

/// `cast --to` a block format: every tensor becomes its elements, under its own name, its scales,
/// and a tensor scale where the format has one. The exit status.
int cast_to_blocks(const CastOptions& options, const formats::BlockFormat& to);

/// `cast --from` a block format, of a file that has such tensors: the numbers they stand for.
int cast_from_blocks(const CastOptions& options, const formats::BlockFormat& from);

}  // namespace guardbit::tools

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "formats/block_format.hpp"
#include "formats/conversion/block_tensor.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

// What `cast` prints of the tensors that it converted.
namespace guardbit::tools {

/// A tensor converted to codes of one format.
struct Cast {
  formats::Tensor tensor;
  /// name of the format
  std::string from;
  formats::ConversionSummary summary;
};

/// A tensor quantised in blocks.
struct BlockCast {
  formats::BlockTensor tensor;
  formats::Format from;
  /// name of the block format
  std::string to;
  std::size_t axis = 0;
  formats::BlockSummary summary;
};

/// "64x32"
std::string shape_text(const std::vector<std::int64_t>& shape);

void print_table(std::span<const Cast> casts, const std::string& to);
void print_table(std::span<const BlockCast> casts, const std::string& to);

nlohmann::ordered_json to_json(const Cast& cast);
nlohmann::ordered_json to_json(const BlockCast& cast);

}  // namespace guardbit::tools

#pragma once

#include <string>

#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

// Operands that options name as FILE or FILE:TENSOR.
namespace guardbit::tools {

/// The tensor at `place`, renamed to `operand`: FILE, or FILE:TENSOR where no file has the whole
/// text as its name; without TENSOR the one called like the operand, else the only one. A file
/// whose element types do not say the format is read as `format`; `from` names the format of codes
/// that the file has as integers. formats::Error that begins with `option`.
formats::Tensor read_operand(const std::string& option, const std::string& operand,
                             const std::string& place, const formats::Format& format,
                             const std::string& from = {});

}  // namespace guardbit::tools

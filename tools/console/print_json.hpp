#pragma once

#include <nlohmann/json_fwd.hpp>

// JSON on standard output.
namespace guardbit::tools {

/// On standard output, in lines; bytes that are no UTF-8, as names of files may have, are replaced.
void print_json(const nlohmann::ordered_json& document);

}  // namespace guardbit::tools

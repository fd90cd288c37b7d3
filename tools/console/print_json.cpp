#include "tools/console/print_json.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

namespace guardbit::tools {

void print_json(const nlohmann::ordered_json& document) {
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace guardbit::tools

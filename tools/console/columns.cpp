#include "tools/console/columns.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace guardbit::tools {

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string plain_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() || value.is_discarded() ? "" : value.dump();
}

void print_csv_line(std::ostream& out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    out << (i == 0 ? "" : ",") << csv_field(fields[i]);
  out << '\n';
}

}  // namespace guardbit::tools

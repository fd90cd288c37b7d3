#include "gpu/operands/sass_table.hpp"

#include <fstream>

#include "formats/support/error.hpp"

namespace guardbit::gpu {

SassTable read_sass(const std::string& path) {
  SassTable table;
  if (path.empty()) return table;
  std::ifstream file(path);
  if (!file) throw formats::Error(path, "cannot be read");
  for (std::string line; std::getline(file, line);)
    if (const auto tab = line.find('\t'); tab != std::string::npos)
      table[line.substr(0, tab)] = line.substr(tab + 1);
  return table;
}

std::string sass_of(const SassTable& table, const TensorCoreInstruction& instruction) {
  const auto found = table.find(std::string(instruction.wrapper));
  return found == table.end() ? std::string() : found->second;
}

}  // namespace guardbit::gpu

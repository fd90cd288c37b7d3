#include "tools/products/spec_file.hpp"

#include <CLI/CLI.hpp>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "formats/files/text_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::tools {

void add_spec_option(CLI::App& command, std::vector<std::string>& files) {
  command.add_option(
      "--spec", files,
      "An instruction as text, as 'probe -o' writes it; its machine and name then mean it");
}

std::vector<emulator::MatrixInstruction> load_specs(const std::vector<std::string>& files) {
  std::vector<emulator::MatrixInstruction> instructions;
  for (const std::string& path : files) {
    instructions.push_back(
        emulator::parse_instruction(formats::read_text(path), formats::printable(path)));
    emulator::add_instruction(instructions.back());
  }
  return instructions;
}

void load_specs(const std::vector<std::string>& files, std::string& arch,
                std::string& instruction) {
  const auto instructions = load_specs(files);
  if (instructions.empty()) return;
  if (arch.empty()) arch = instructions.back().arch;
  if (instruction.empty()) instruction = std::string(std::string_view(instructions.back().name));
}

}  // namespace guardbit::tools

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"

// The option `--spec`: instructions from files.
namespace guardbit::tools {

/// `--spec FILE`, once or more.
void add_spec_option(CLI::App& command, std::vector<std::string>& files);

/// Adds the instructions of these files to the catalogue; returns them. formats::Error that begins
/// with a file's name.
std::vector<emulator::MatrixInstruction> load_specs(const std::vector<std::string>& files);

/// The same, and the last instruction's machine and name where no others are given.
void load_specs(const std::vector<std::string>& files, std::string& arch, std::string& instruction);

}  // namespace guardbit::tools

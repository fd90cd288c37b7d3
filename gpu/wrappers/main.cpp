#include <iostream>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"

// Prints what the wrappers are generated from: a line "sm_90 NAME" for every instruction of the
// catalogue that NVIDIA's newest toolkit has.
int main() {
  using namespace guardbit;
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch.starts_with("sm_") &&
        instruction.toolkit.includes(emulator::newest_toolkit))
      std::cout << instruction.arch << ' ' << std::string_view(instruction.name) << '\n';
  }
}

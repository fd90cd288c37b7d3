#include "emulator/gemm/atlas/scope.hpp"

namespace guardbit::emulator::atlas {

std::string describe(const Scope& of) {
  return std::string(of.framework) + ", driver " + std::string(of.driver) + ", " +
         std::string(of.device) + " with " + std::to_string(of.multiprocessors) +
         " multiprocessors, default flags and workspaces";
}

}  // namespace guardbit::emulator::atlas

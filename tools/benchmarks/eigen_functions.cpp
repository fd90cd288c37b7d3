// Compiled once for each instruction set, with namespace Eigen renamed (-DEigen=...), so that no
// function of one object can stand in for another's: the linker keeps one copy of each name.
#include "tools/benchmarks/eigen_functions.hpp"

#include <Eigen/Core>
#include <array>
#include <unsupported/Eigen/SpecialFunctions>

namespace guardbit::tools::GUARDBIT_EIGEN {

namespace {

using Array = Eigen::ArrayXf;

template <class Function>
void run(const float* x, float* results, std::size_t count) {
  const auto size = static_cast<Eigen::Index>(count);
  Eigen::Map<Array>(results, size) = Function()(Eigen::Map<const Array>(x, size));
}
template <class Function>
constexpr EigenFunction named(std::string_view name, Function) {
  return {name, run<Function>};
}

constexpr std::array functions = {
    named("exp", [](const auto& x) { return x.exp(); }),
    named("log", [](const auto& x) { return x.log(); }),
    named("tanh", [](const auto& x) { return x.tanh(); }),
    named("sin", [](const auto& x) { return x.sin(); }),
    named("erf", [](const auto& x) { return x.erf(); }),
    named("rsqrt", [](const auto& x) { return x.rsqrt(); }),
    named("sqrt", [](const auto& x) { return x.sqrt(); }),
};

}  // namespace

std::span<const EigenFunction> all() { return functions; }

}  // namespace guardbit::tools::GUARDBIT_EIGEN

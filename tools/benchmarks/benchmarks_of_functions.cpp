// Functions of FP32 arrays in the caches, beside Eigen's vectorised ones for the same instruction
// set.

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <random>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/kernels/function_kernels.hpp"
#include "tools/benchmarks/benchmarks.hpp"
#include "tools/benchmarks/eigen_functions.hpp"

namespace guardbit::tools {

namespace {

using emulator::Function;
using emulator::FunctionEngine;

constexpr std::size_t elements = std::size_t{1} << 20;

/// One of Eigen's functions, and ours of arguments from the same range.
struct Beside {
  std::string_view eigen;
  float least, most;
  std::vector<std::string_view> functions;
};

const std::vector<Beside>& functions_beside_eigen() {
  static const std::vector<Beside> all = {
      {"exp",
       -10,
       10,
       {"ex2.approx.ftz.f32", "ex2.approx.f32", "expf", "exp10f", "expm1f", "sinhf", "coshf"}},
      {"log",
       0.01F,
       100,
       {"lg2.approx.ftz.f32", "lg2.approx.f32", "logf", "log2f", "log10f", "log1pf", "acoshf",
        "lgammaf"}},
      {"tanh", -4, 4, {"tanh.approx.f32", "tanhf", "asinhf", "atanf"}},
      {"sin",
       -10,
       10,
       {"sin.approx.ftz.f32", "cos.approx.ftz.f32", "sinf", "cosf", "tanf", "sinpif"}},
      {"erf", -3, 3, {"erff", "erfcf", "erfcxf", "normcdff", "tgammaf"}},
      {"rsqrt",
       0.01F,
       100,
       {"rsqrt.approx.ftz.f32", "rsqrt.approx.f32", "rcp.approx.ftz.f32", "rcp.approx.f32",
        "cbrtf"}},
      {"sqrt", 0.01F, 100, {"sqrt.approx.ftz.f32", "sqrt.approx.f32", "sqrtf"}},
  };
  return all;
}

/// What is asked of an engine, as its rate over Eigen's; 0: nothing.
double goal_of(std::string_view engine, std::string_view function) {
  constexpr std::array programs = {"expf", "logf", "tanhf", "erff", "sinf"};
  const bool is_form =
      function.find(".approx.") != std::string_view::npos && !function.starts_with("rcp");
  const bool is_program = std::ranges::find(programs, function) != programs.end();
  if (engine == "portable" || (!is_form && !is_program)) return 0;
  const double of_avx512 = is_form ? 0.25 : 0.15;
  return engine == "avx512" ? of_avx512 : of_avx512 * 2 / 3;
}

std::vector<float> numbers(float least, float most) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution distribution(least, most);
  std::vector<float> x(elements);
  for (float& number : x) number = distribution(random);
  return x;
}

Planned planned_function(const std::string& group, std::string_view subject,
                         std::string_view engine) {
  Planned planned;
  planned.result.kind = "function";
  planned.result.subject = subject;
  planned.result.engine = engine;
  planned.result.name = group + "/" + std::string(subject) + "/" + std::string(engine);
  planned.result.unit = "G/s";
  planned.result.work = 1e-9 * static_cast<double>(elements);
  return planned;
}

Planned eigen_function(const std::string& group, const Beside& beside, const EigenFunction& eigen,
                       std::string_view instruction_set) {
  Planned planned = planned_function(group, "eigen_" + std::string(eigen.name), instruction_set);
  planned.prepare = [=](Result&) -> std::function<void()> {
    return [run = eigen.run, x = numbers(beside.least, beside.most),
            results = std::make_shared<std::vector<float>>(elements)] {
      run(x.data(), results->data(), elements);
    };
  };
  return planned;
}

Planned our_function(const std::string& group, const Beside& beside, const Function& function,
                     const std::string& yardstick) {
  Planned planned = planned_function(group, function.name, function.engine);
  planned.result.goal = goal_of(function.engine, function.name);
  planned.result.moonshot = planned.result.goal > 0 ? 0.5 : 0;
  planned.yardstick = yardstick;
  planned.prepare = [=](Result&) -> std::function<void()> {
    std::vector<std::uint32_t> x;
    for (const float number : numbers(beside.least, beside.most))
      x.push_back(std::bit_cast<std::uint32_t>(number));
    return [run = function.run, x = std::move(x),
            results = std::make_shared<std::vector<std::uint32_t>>(elements)] {
      run({{x}, {*results}});
    };
  };
  return planned;
}

std::span<const EigenFunction> eigen_functions(std::string_view engine) {
#if defined(__x86_64__)
  if (engine == "avx512") return functions_avx512::all();
  if (engine == "avx2") return functions_avx2::all();
#else
  static_cast<void>(engine);
#endif
  return functions_baseline::all();
}

}  // namespace

void plan_functions(const BenchOptions& options, std::vector<Group>& groups) {
  for (const Beside& beside : functions_beside_eigen()) {
    const std::string name = "function/" + std::string(beside.eigen);
    Group group;
    for (const FunctionEngine& engine : emulator::function_engines()) {
      const bool is_asked =
          options.engines.empty() ||
          std::ranges::find(options.engines, engine.name) != options.engines.end();
      if (!is_asked) continue;
      const std::span<const EigenFunction> all = eigen_functions(engine.name);
      const auto eigen = std::ranges::find(all, beside.eigen, &EigenFunction::name);
      const std::string_view set = engine.kernels.empty() ? "baseline" : engine.name;
      group.push_back(eigen_function(name, beside, *eigen, set));
      const std::string yardstick = group.back().result.name;
      for (const std::string_view word : beside.functions) {
        const Function function =
            emulator::on_engine(emulator::require_function("sm_90", word, "bench"), engine);
        group.push_back(our_function(name, beside, function, yardstick));
      }
    }
    groups.push_back(std::move(group));
  }
}

}  // namespace guardbit::tools

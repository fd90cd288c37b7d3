#include "emulator/functions/function_catalogue.hpp"

#include <algorithm>
#include <mutex>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/functions/function_digest.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::emulator {

const std::vector<Function>& function_catalogue(CompileMode mode) {
  if (mode != CompileMode::standard) return cuda_functions(mode);
  static const std::vector<Function> all = [] {
    std::vector<Function> list = ptx_functions();
    const std::vector<Function> cuda = cuda_functions();
    list.insert(list.end(), cuda.begin(), cuda.end());
    return list;
  }();
  return all;
}

const Function& require_function(std::string_view arch, std::string_view name,
                                 std::string_view where, CompileMode compile) {
  const std::string_view page = require_page(arch, "--arch");
  std::vector<std::string_view> names, machines;
  for (const Function& function : function_catalogue(compile)) {
    if (function.arch == page && function.name == name) return function;
    if (function.arch == page) names.push_back(function.name);
    if (std::ranges::find(machines, function.arch) == machines.end())
      machines.push_back(function.arch);
  }
  if (names.empty()) {
    std::string choices;
    for (const std::string_view machine : machines)
      choices.append(choices.empty() ? "" : ", ").append(machine);
    throw formats::Error("--arch", "no functions are known of " + std::string(arch), choices);
  }
  if (compile != CompileMode::standard &&
      std::ranges::any_of(function_catalogue(), [&](const Function& function) {
        return function.arch == page && function.name == name;
      })) {
    throw formats::Error("--compile", std::string(name) +
                                          " is an instruction: what it computes does not depend "
                                          "on how nvcc compiles");
  }
  throw formats::Error(std::string(where), formats::unknown_name("function", name, names));
}

std::uint64_t function_digest(const Function& function, std::uint64_t stride, int threads,
                              const std::function<void(std::uint64_t)>& progress) {
  constexpr std::size_t at_once = 4096;
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  std::mutex mutex;
  std::uint64_t total = 0, done = 0;
  formats::parallel_for(count, 1 << 18, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> x(at_once), results(at_once);
    std::uint64_t sum = 0;
    for (std::size_t i = begin; i < end; i += at_once) {
      const std::size_t part = std::min(at_once, end - i);
      for (std::size_t k = 0; k < part; ++k) x[k] = static_cast<std::uint32_t>((i + k) * stride);
      function.run({{x}, {std::span(results).first(part)}});
      for (std::size_t k = 0; k < part; ++k) sum += function_digest_share(x[k], results[k]);
    }
    const std::lock_guard lock(mutex);
    total += sum;
    done += end - begin;
    progress(done);
  });
  return total;
}

}  // namespace guardbit::emulator

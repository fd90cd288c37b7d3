#include "emulator/functions/function_catalogue.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/functions/function_digest.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"
#include "formats/support/joined.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::emulator {

namespace {

std::vector<Function> compiled_functions(CompileMode mode) {
  std::vector<Function> list = cuda_functions(mode);
  for (const auto& part : {cuda_rounded_functions(mode), cuda_functions_of_halves(mode)})
    list.insert(list.end(), part.begin(), part.end());
  return list;
}

}  // namespace

const std::vector<Function>& function_catalogue(CompileMode mode) {
  if (mode != CompileMode::standard) {
    static const std::vector<Function> ftz = compiled_functions(CompileMode::ftz),
                                       fast = compiled_functions(CompileMode::fast);
    return mode == CompileMode::ftz ? ftz : fast;
  }
  static const std::vector<Function> all = [] {
    constexpr CompileMode mode = CompileMode::standard;
    std::vector<Function> list = ptx_functions();
    for (const auto& part :
         {ptx_functions_of_formats(), cuda_functions(), cuda_rounded_functions(mode),
          cuda_functions_of_halves(), cuda_arithmetic_of_halves(), rdna_functions()})
      list.insert(list.end(), part.begin(), part.end());
    for (Function& function : list)
      function = on_engine(std::move(function), function_engines().front());
    return list;
  }();
  return all;
}

Function on_engine(Function function, const FunctionEngine& engine) {
  if (function.run_without_kernel) {
    function.run = std::exchange(function.run_without_kernel, {});
    function.engine = "portable";
  }
  const FunctionKernel* const kernel =
      function.compile == CompileMode::standard ? find_kernel(engine, function.name) : nullptr;
  if (kernel == nullptr) return function;
  function.engine = engine.name;
  function.run_without_kernel = function.run;
  function.run = [run = kernel->run](const CodeArrays<std::uint32_t>& arrays) {
    run(arrays.operands[0].data(), arrays.operands[1].data(), arrays.results[0].data(),
        arrays.results[0].size());
  };
  return function;
}

namespace {

using Names = std::vector<std::string_view>;

bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The machines of which functions are known, and those that have the function of that name.
struct Machines {
  Names all, with_function;
};
Machines machines_of(std::string_view name) {
  Machines machines;
  for (const Function& function : function_catalogue()) {
    if (!has(machines.all, function.arch)) machines.all.push_back(function.arch);
    if (function.name == name) machines.with_function.push_back(function.arch);
  }
  return machines;
}

}  // namespace

const Function& require_function(std::string_view arch, std::string_view name,
                                 const FunctionPlaces& where, CompileMode compile) {
  const std::string_view page = require_page(arch, where.arch);
  Names names;
  for (const Function& function : function_catalogue(compile)) {
    if (function.arch == page && function.name == name) return function;
    if (function.arch == page) names.push_back(function.name);
  }
  if (!names.empty() && name.find('(') == std::string_view::npos) {
    const std::string of_half = std::string(name) + "(half)";
    if (has(names, of_half)) return require_function(arch, of_half, where, compile);
  }
  const Machines machines = machines_of(name);
  if (!has(machines.all, page))
    throw formats::Error(where.arch, "no functions are known of " + std::string(arch),
                         formats::joined(machines.all, ", "));
  if (has(machines.with_function, page)) {
    throw formats::Error(where.compile,
                         std::string(name) +
                             " is known as an instruction, which does not depend on "
                             "how nvcc compiles",
                         "default");
  }
  if (!machines.with_function.empty())
    throw formats::Error(where.arch,
                         std::string(name) + " is not a function of " + std::string(arch),
                         formats::joined(machines.with_function, ", "));
  throw formats::Error(where.name, formats::unknown_name("function", name, names));
}

namespace {

/// The same by arrays of words, of one part.
template <class Word>
void compute_part(const std::function<void(const CodeArrays<Word>&)>& run,
                  const std::vector<std::vector<std::uint64_t>>& operands, std::size_t begin,
                  std::size_t end, std::vector<std::vector<std::uint64_t>>& results) {
  std::vector<std::vector<Word>> words;
  words.reserve(operands.size() + results.size());
  for (const auto& codes : operands)
    words.emplace_back(codes.begin() + static_cast<std::ptrdiff_t>(begin),
                       codes.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::size_t i = 0; i < results.size(); ++i) words.emplace_back(end - begin);
  CodeArrays<Word> arrays;
  for (std::size_t i = 0; i < operands.size(); ++i) arrays.operands.at(i) = words[i];
  for (std::size_t i = 0; i < results.size(); ++i)
    arrays.results.at(i) = words[operands.size() + i];
  run(arrays);
  for (std::size_t i = 0; i < results.size(); ++i)
    std::ranges::copy(words[operands.size() + i],
                      results[i].begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

std::vector<std::vector<std::uint64_t>> function_results(
    const Function& function, const std::vector<std::vector<std::uint64_t>>& operands,
    int threads) {
  const std::size_t count = operands.at(0).size();
  std::vector<std::vector<std::uint64_t>> results(function.results,
                                                  std::vector<std::uint64_t>(count));
  formats::parallel_for(count, 1 << 14, threads, [&](std::size_t begin, std::size_t end) {
    function.run ? compute_part<std::uint32_t>(function.run, operands, begin, end, results)
                 : compute_part<std::uint64_t>(function.run_wide, operands, begin, end, results);
  });
  return results;
}

bool same_function_result(const formats::Format& format, std::uint64_t recorded,
                          std::uint64_t computed) {
  if (recorded == computed) return true;
  return formats::bits(format) >= 32 &&
         formats::decode(format, recorded).kind == formats::Kind::nan &&
         formats::decode(format, computed).kind == formats::Kind::nan;
}

int input_bits(const Function& function) {
  return std::min(formats::bits(function.formats.operands[0]), 32);
}

namespace {

/// Sums the shares of inputs `begin` to `end` at a stride.
template <class Word>
std::uint64_t digest_of_part(const std::function<void(const CodeArrays<Word>&)>& run,
                             const Function& function, std::uint64_t stride, std::size_t begin,
                             std::size_t end) {
  constexpr std::size_t at_once = 4096;
  const int low_bits = formats::bits(function.formats.operands[0]) - input_bits(function);
  const bool is_folded = formats::bits(function.formats.results[0]) > 32;
  std::vector<Word> x(at_once), results(at_once), second(function.results > 1 ? at_once : 0);
  std::uint64_t sum = 0;
  for (std::size_t i = begin; i < end; i += at_once) {
    const std::size_t part = std::min(at_once, end - i);
    for (std::size_t k = 0; k < part; ++k) x[k] = static_cast<Word>((i + k) * stride << low_bits);
    const std::span spare = std::span(second).first(std::min(part, second.size()));
    run({{std::span<const Word>(x).first(part)}, {std::span(results).first(part), spare}});
    for (std::size_t k = 0; k < part; ++k) {
      const std::uint64_t code = results[k];
      sum += function_digest_share(
          (i + k) * stride, static_cast<std::uint32_t>(is_folded ? code >> 32 ^ code : code));
    }
  }
  return sum;
}

}  // namespace

std::uint64_t function_digest(const Function& function, std::uint64_t stride, int threads,
                              const std::function<void(std::uint64_t)>& progress) {
  const std::uint64_t count = ((std::uint64_t{1} << input_bits(function)) + stride - 1) / stride;
  std::mutex mutex;
  std::uint64_t total = 0, done = 0;
  formats::parallel_for(count, 1 << 18, threads, [&](std::size_t begin, std::size_t end) {
    const std::uint64_t sum =
        function.run
            ? digest_of_part<std::uint32_t>(function.run, function, stride, begin, end)
            : digest_of_part<std::uint64_t>(function.run_wide, function, stride, begin, end);
    const std::lock_guard lock(mutex);
    total += sum;
    done += end - begin;
    progress(done);
  });
  return total;
}

}  // namespace guardbit::emulator

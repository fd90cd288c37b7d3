#include "tools/products/function_arrays.hpp"

#include <algorithm>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "tools/console/counted.hpp"

namespace guardbit::tools {

using emulator::Function;
using formats::Error;
using formats::Packing;

std::optional<std::uint64_t> code_of_number(const std::string& word,
                                            const formats::Format& format) {
  try {
    const formats::ParsedValue value = formats::parse_value(word, "function");
    return value.format == format ? value.code : formats::encode(format, value.value);
  } catch (const Error&) {
    return std::nullopt;
  }
}

const Function& function_of_call(const std::string& arch, const std::string& name,
                                 emulator::CompileMode compile,
                                 const std::optional<formats::Format>& first) {
  const emulator::FunctionPlaces places("function", "--arch", "--compile");
  const Function& function = emulator::require_function(arch, name, places, compile);
  const bool has_overloads = function.name != name;
  return has_overloads && first == formats::bf16
             ? emulator::require_function(arch, name + "(bfloat16)", places, compile)
             : function;
}

void require_operand_count(const Function& function, std::size_t given) {
  if (given == function.operands) return;
  throw Error("function", std::string(function.name) + " takes " +
                              counted(function.operands, "operand") + ", " + std::to_string(given) +
                              " were given");
}

std::vector<std::int64_t> result_shape(const Function& function,
                                       const std::vector<FunctionOperand>& operands) {
  std::vector<std::int64_t> shape;
  const FunctionOperand* first = nullptr;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const FunctionOperand& x = operands[i];
    if (!x.array) continue;
    const formats::Format& format = function.formats.operands.at(i);
    if (x.array->format != format) {
      throw Error(x.place, std::string(function.name) + " takes " + formats::name_of(format) +
                               ", not " + formats::name_of(x.array->format));
    }
    if (x.array->shape.empty()) continue;
    if (first != nullptr && x.array->shape != shape)
      throw Error("function", first->place + " and " + x.place + " have different shapes");
    first = &x;
    shape = x.array->shape;
  }
  return shape;
}

namespace {

/// Elements of one call of a kernel.
constexpr std::size_t at_once = 4096;

template <class Word>
void compute_part(const Function& function,
                  const std::function<void(const emulator::CodeArrays<Word>&)>& run,
                  const std::vector<FunctionOperand>& operands,
                  const std::vector<std::span<std::byte>>& results, std::size_t begin,
                  std::size_t end) {
  const std::size_t count = end - begin;
  std::vector<std::vector<Word>> words(operands.size() + results.size(), std::vector<Word>(count));
  emulator::CodeArrays<Word> arrays;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const FunctionOperand& x = operands[i];
    if (!x.array || x.array->shape.empty()) {
      const std::uint64_t code =
          x.array ? formats::load_code(x.array->bytes, x.array->format, x.array->packing, 0)
                  : x.code;
      std::ranges::fill(words[i], static_cast<Word>(code));
    } else {
      for (std::size_t k = 0; k < count; ++k)
        words[i][k] = static_cast<Word>(
            formats::load_code(x.array->bytes, x.array->format, x.array->packing, begin + k));
    }
    arrays.operands.at(i) = words[i];
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    arrays.results.at(i) = words[operands.size() + i];
  run(arrays);
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t k = 0; k < count; ++k)
      formats::store_code(results[i], function.formats.results.at(i), Packing::container, begin + k,
                          arrays.results.at(i)[k]);
}

}  // namespace

void compute_elements(const Function& function, const std::vector<FunctionOperand>& operands,
                      const std::vector<std::span<std::byte>>& results, int threads,
                      const std::function<void()>& between) {
  const auto count =
      static_cast<std::size_t>(formats::element_count(result_shape(function, operands)));
  formats::parallel_for(count, 1 << 14, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += at_once) {
      const std::size_t last = std::min(i + at_once, end);
      between();
      function.run
          ? compute_part<std::uint32_t>(function, function.run, operands, results, i, last)
          : compute_part<std::uint64_t>(function, function.run_wide, operands, results, i, last);
    }
  });
}

}  // namespace guardbit::tools

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_toolkits.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/function_facts.hpp"
#include "tools/products/function_arrays.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"

namespace guardbit::python {

namespace {

using emulator::Function;

/// An array, or a number as the command takes it.
using Operand = std::variant<Array, std::string>;

emulator::CompileMode compile_mode(const std::string& word) {
  return formats::require_word<emulator::CompileMode>("mode", word, "compile");
}

/// A function on operands that fit it. Arrays are views of the caller's memory.
class FunctionCall {
 public:
  FunctionCall(const std::string& arch, const std::string& name, const std::string& compile,
               const std::string& toolkit, const std::vector<Operand>& operands) {
    std::optional<formats::Format> first;
    for (const Operand& x : operands) {
      if (const auto* array = std::get_if<Array>(&x); array != nullptr && !first)
        first = array->format;
    }
    function_ = &tools::function_of_call(arch, name, compile_mode(compile), first);
    emulator::require_function_toolkit(*function_, toolkit, "toolkit");
    tools::require_operand_count(*function_, operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) operands_.push_back(operand(operands[i], i));
    shape_ = tools::result_shape(*function_, operands_);
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }

  std::vector<std::string> formats() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < function_->results; ++i)
      names.push_back(formats::name_of(function_->formats.results.at(i)));
    return names;
  }

  /// Computes into memory for each result.
  void run(const std::vector<Array>& outputs, int threads) const {
    std::vector<std::span<std::byte>> memory;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      memory.push_back(outputs[i].output(function_->formats.results.at(i), shape_));
    run_interruptibly([&](const Stop& stop) {
      tools::compute_elements(*function_, operands_, memory, threads, [&stop] { stop.check(); });
    });
  }

 private:
  tools::FunctionOperand operand(const Operand& x, std::size_t i) const {
    const formats::Format& format = function_->formats.operands.at(i);
    const std::string name = emulator::operand_names.at(i);
    if (const auto* word = std::get_if<std::string>(&x)) {
      const auto code = tools::code_of_number(*word, format);
      if (!code) throw formats::Error(name, formats::in_quotes(*word) + " is no number");
      return {name, {}, *code};
    }
    // Unsigned words of the same width are codes.
    Array array = std::get<Array>(x);
    if (formats::name_of(array.format).starts_with("uint") &&
        formats::container_bits(array.format) == formats::container_bits(format))
      array.format = format;
    return {name, array.tensor(), 0};
  }

  const Function* function_ = nullptr;
  std::vector<tools::FunctionOperand> operands_;
  std::vector<std::int64_t> shape_;
};

}  // namespace

void bind_functions(nb::module_& module) {
  nb::class_<FunctionCall>(module, "FunctionCall")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&,
                    const std::vector<Operand>&>(),
           nb::arg("arch"), nb::arg("name"), nb::arg("compile"), nb::arg("toolkit"),
           nb::arg("operands"))
      .def_prop_ro("shape", &FunctionCall::shape)
      .def_prop_ro("formats", &FunctionCall::formats)
      .def("run", &FunctionCall::run, nb::arg("outputs"), nb::arg("threads"));
  module.def(
      "functions",
      [](const std::string& compile) {
        return tools::functions_json(emulator::function_catalogue(compile_mode(compile))).dump();
      },
      nb::arg("compile"));
}

}  // namespace guardbit::python

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_errors.hpp"
#include "emulator/functions/function_toolkits.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/function_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/products/function_arrays.hpp"
#include "tools/products/function_picture.hpp"
#include "tools/products/operand_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::Function;
using formats::Error;
using formats::Tensor;

struct FunctionOptions {
  std::string name, arch = "sm_90", toolkit, compile = "default", output;
  std::vector<std::string> arguments;
  bool list = false, digest = false, errors = false, json = false, markdown = false;
  PlotOptions plot;
  int threads = 0;
};

/// "two", "three", "four".
std::string counted_word(std::size_t n) {
  constexpr std::array<const char*, emulator::most_operands> words = {"one", "two", "three",
                                                                      "four"};
  return words.at(n - 1);
}

nlohmann::ordered_json heading(const Function& function, int toolkit) {
  nlohmann::ordered_json document = {{"function", function.name}, {"arch", function.arch}};
  if (emulator::has_toolkit(function)) {
    document["compile"] = formats::word_of(function.compile);
    document["toolkit"] = emulator::version_text(toolkit);
  }
  return document;
}

// ---- Values ----

void show_values(const Function& function, const FunctionOptions& options,
                 const std::vector<std::uint64_t>& codes, nlohmann::ordered_json document) {
  const std::size_t operands = function.operands;
  if (codes.size() % operands != 0) {
    throw Error("function", std::string(function.name) + " takes " + std::to_string(operands) +
                                " numbers, " + std::to_string(codes.size()) + " were given");
  }
  document["results"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < codes.size(); i += operands) {
    emulator::OperandCodes these{};
    std::copy_n(codes.begin() + static_cast<std::ptrdiff_t>(i), operands, these.begin());
    const FunctionResult result = function_result(function, these);
    if (options.json) {
      document["results"].push_back(result_json(result));
    } else {
      std::cout << (i == 0 ? "" : "\n");
      print_result(result);
    }
  }
  if (options.json) print_json(document);
}

// ---- Arrays ----

FunctionOperand read_argument(const Function& function, const std::string& word, std::size_t i) {
  const formats::Format& format = function.formats.operands.at(i);
  if (const auto code = code_of_number(word, format)) return {word, {}, *code};
  std::error_code error;
  if (!std::filesystem::exists(word, error) && word.find(':') == std::string::npos)
    throw Error("function", formats::in_quotes(word) + " is no number, and no such file is there");
  return {formats::printable(word), read_operand("", emulator::operand_names.at(i), word, format)};
}

/// The overload of a name without its type: that of the first array's format.
const Function& overload_of(const Function& function, const FunctionOptions& options) {
  if (options.name == function.name) return function;
  for (std::size_t i = 0; i < std::min(function.operands, options.arguments.size()); ++i) {
    const std::string& word = options.arguments[i];
    if (code_of_number(word, formats::fp16)) continue;
    const Tensor array = read_operand("", emulator::operand_names.at(i), word, formats::fp16);
    return function_of_call(options.arch, options.name, function.compile, array.format);
  }
  return function;
}

void compute_arrays(const Function& function, const FunctionOptions& options,
                    nlohmann::ordered_json document) {
  require_operand_count(function, options.arguments.size());
  std::vector<FunctionOperand> operands;
  for (std::size_t i = 0; i < function.operands; ++i)
    operands.push_back(read_argument(function, options.arguments[i], i));
  const std::vector<std::int64_t> shape = result_shape(function, operands);
  const auto count = static_cast<std::size_t>(formats::element_count(shape));
  std::vector<std::vector<std::byte>> memory;
  for (std::size_t i = 0; i < function.results; ++i)
    memory.emplace_back(
        formats::byte_size(function.formats.results.at(i), formats::Packing::container, count)
            .value());
  compute_elements(function, operands, {memory.begin(), memory.end()}, options.threads);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < memory.size(); ++i)
    tensors.push_back(
        formats::owning_tensor(emulator::result_names.at(i), function.formats.results.at(i),
                               formats::Packing::container, shape, std::move(memory[i])));
  formats::write_tensors(options.output, {}, tensors);
  if (!options.json) {
    std::cout << function.name << " of " << counted(count, "number") << ", engine "
              << function.engine << ": " << formats::printable(options.output) << '\n';
    return;
  }
  document["elements"] = count;
  document["engine"] = function.engine;
  document["file"] = options.output;
  print_json(document);
}

// ---- All inputs ----

void require_one_operand(const Function& function, const std::string& option) {
  if (function.operands == 1) return;
  throw Error(option, std::string(function.name) + " has " + counted_word(function.operands) +
                          " operands, too many to try them all: only functions of one "
                          "number have it");
}

void print_digest(const Function& function, const FunctionOptions& options,
                  nlohmann::ordered_json document) {
  require_one_operand(function, "--digest");
  const EndAtOnce interruption;
  ProgressLine line("digest", std::size_t{1} << emulator::input_bits(function));
  const std::uint64_t digest = emulator::function_digest(
      function, 1, options.threads, [&](std::uint64_t done) { line.update(done); });
  document["digest"] = hex_digits(digest, 16);
  document["engine"] = function.engine;
  options.json ? print_json(document)
               : void(std::cout << function.name << " " << hex_digits(digest, 16) << '\n');
}

void show_errors(const Function& function, const FunctionOptions& options,
                 nlohmann::ordered_json document) {
  require_one_operand(function, "--errors");
  const formats::Format& format = function.formats.operands[0];
  if (formats::bits(format) > 32)
    throw Error("--errors", std::string(function.name) + " takes " + formats::name_of(format) +
                                ", which has too many numbers to try them all");
  const EndAtOnce interruption;
  ProgressLine line("errors", std::size_t{2} * formats::infinity_code(format));
  const emulator::FunctionErrors errors = emulator::function_errors(
      function, 1, options.threads, [&](std::uint64_t done) { line.update(done); });
  if (options.plot.asked())
    write_picture(options.plot.path,
                  function_error_picture(function, errors, options.plot.chart()));
  if (options.json) {
    document["errors"] = errors_json(function, errors);
    print_json(document);
    return;
  }
  std::cout << paint(function.name, Colour::bold) << "  " << function.meaning << '\n';
  print_errors(function, errors);
}

void run(const CLI::App& command, const FunctionOptions& options) {
  const auto compile =
      formats::require_word<emulator::CompileMode>("mode", options.compile, "--compile");
  if (options.list) {
    refuse_unread(command, {"--digest", "--errors", "--output", "--plot"}, "without --list");
    if (!options.name.empty()) throw Error("--list", "takes no name");
    emulator::require_page(options.arch, "--arch");
    const int toolkit = emulator::require_toolkit(options.toolkit, "--toolkit");
    std::vector<Function> all = emulator::function_catalogue(compile);
    if (!options.toolkit.empty())
      std::erase_if(
          all, [&](const Function& function) { return !emulator::is_known_of(function, toolkit); });
    if (all.empty())
      throw Error("--toolkit", "no function is known as CUDA " + options.toolkit + " computes it",
                  "12.0 to 13.0");
    options.json ? print_json({{"functions", functions_json(all)}})
                 : print_functions(all, options.markdown);
    return;
  }
  refuse_unread(command, {"--markdown"}, "with --list");
  if (!options.errors)
    refuse_unread(command, {"--plot", "--x", "--y", "--range", "--width", "--height"},
                  "with --errors");
  options.plot.require_valid();
  if (options.name.empty()) throw Error("function", "needs NAME, or --list");
  const Function& function = emulator::require_function(
      options.arch, options.name, {"function", "--arch", "--compile"}, compile);
  const int toolkit = emulator::require_function_toolkit(function, options.toolkit, "--toolkit");
  const nlohmann::ordered_json document = heading(function, toolkit);
  if (options.digest || options.errors) {
    if (options.digest && options.errors) throw Error("--digest", "not with --errors");
    if (!options.arguments.empty())
      throw Error(options.digest ? "--digest" : "--errors",
                  "is of all inputs, and takes no operand");
    refuse_unread(command, {"--output"}, "with operands");
    options.digest ? print_digest(function, options, document)
                   : show_errors(function, options, document);
    return;
  }
  if (options.arguments.empty())
    throw Error("function", "needs a number or a file, --digest or --errors");
  if (!options.output.empty()) {
    const Function& overload = overload_of(function, options);
    return compute_arrays(overload, options, heading(overload, toolkit));
  }
  std::vector<std::uint64_t> codes;
  for (const std::string& word : options.arguments) {
    const auto code =
        code_of_number(word, function.formats.operands.at(codes.size() % function.operands));
    if (!code) {
      std::error_code ignored;
      if (std::filesystem::exists(word, ignored))
        throw Error("function", "arrays need -o, where results go");
      throw Error("function",
                  formats::in_quotes(word) + " is no number, and no such file is there");
    }
    codes.push_back(*code);
  }
  show_values(function, options, codes, document);
}

}  // namespace

void add_function(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "function", "Special functions and CUDA's mathematics, as a GPU computes them");
  const auto options = std::make_shared<FunctionOptions>();
  command->add_option("NAME", options->name,
                      "PTX's name, as ex2.approx.ftz.f32, CUDA's, as expf, or AMD's, as v_exp_f32");
  command
      ->add_option(
          "ARGUMENT", options->arguments,
          "Numbers, of which each result is taken apart; or with -o arrays: a .npy, .npz or "
          ".safetensors file, FILE:TENSOR, or a number for all elements")
      ->type_name("");
  command->add_flag("--list", options->list, "List the functions and how we know them");
  command
      ->add_option("-o,--output", options->output, "Where results go: .npy, .npz or .safetensors")
      ->type_name("FILE");
  command->add_flag("--digest", options->digest,
                    "Print the digest of all results: of 2^32 inputs, of a 16-bit format 2^16 "
                    "(docs/FUNCTIONS.md)");
  command->add_flag("--errors", options->errors,
                    "Errors over all inputs: the largest, how many are correctly rounded");
  add_plot_options(*command, options->plot,
                   "Of --errors: draw how often each error occurs into this file");
  command->add_option("--arch", options->arch, "The machine (default sm_90)");
  command
      ->add_option("--compile", options->compile,
                   "How nvcc compiles CUDA's functions: default, ftz (-ftz=true) or fast "
                   "(-use_fast_math)")
      ->type_name("MODE");
  command->add_option(
      "--toolkit", options->toolkit,
      "The CUDA version (default 13.0), of NVIDIA's functions; of --list: functions "
      "that are known of it");
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Of --list: print the table of the documents");
  command->footer(
      "A number is a decimal, 0x1.8p-3, inf, nan or a code as in 0x3f800000:fp32; it is rounded to the function's format.\n"
      "Example: guardbit function ex2.approx.ftz.f32 -1.25\n"
      "CUDA's functions of halves have their type in parentheses, as hexp(half) and hexp(bfloat16); without it the arrays say which.\n"
      "A packed form (f16x2) computes the elements of arrays as its form of one element does.\n"
      "Example: guardbit function expf x.npy -o y.npy\n"
      "Example: guardbit function expf --compile fast 1.5");
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace guardbit::tools

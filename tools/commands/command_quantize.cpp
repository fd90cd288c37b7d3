#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/gemm/scalar.hpp"
#include "experiments/quantisation/integer_product.hpp"
#include "experiments/quantisation/integer_tensor.hpp"
#include "experiments/quantisation/structured_sparsity.hpp"
#include "experiments/training/integer_network.hpp"
#include "experiments/training/trainer.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/pruning_columns.hpp"

namespace guardbit::tools {

namespace {

using experiments::IntegerErrors;
using experiments::IntegerScheme;
using experiments::IntegerTensor;
using experiments::PruningSummary;
using formats::Error;
using nlohmann::ordered_json;

struct QuantizeOptions {
  std::string input, output, multiply, from;
  std::vector<std::string> tensors;
  std::string calibrator = "max", quirks = "modelopt", granularity = "tensor", arithmetic;
  std::string arch = "sm_90", instruction, rule = "double_rounding";
  double percentile = 99.99;
  std::int64_t block = 128;
  std::size_t axis = 0;
  int bits = 8, threads = 0;
  bool is_unsigned = false, affine = false, prune = false, json = false;
};

/// A tensor before and after.
struct Quantised {
  std::string name;
  /// pruned where that was asked for
  std::vector<float> numbers;
  /// as they were before pruning; empty where nothing was pruned
  std::vector<float> unpruned;
  IntegerTensor integers;
  /// against the input
  IntegerErrors errors;
  /// against the pruned numbers, where there are such
  std::optional<IntegerErrors> pruned_errors;
  std::optional<PruningSummary> pruning;

  const std::vector<float>& given() const { return unpruned.empty() ? numbers : unpruned; }
};

IntegerScheme scheme_of(const QuantizeOptions& options) {
  IntegerScheme scheme;
  scheme.granularity = formats::require_word<experiments::Granularity>(
      "granularity", options.granularity, "--granularity");
  scheme.axis = options.axis;
  scheme.block = options.block;
  scheme.affine = options.affine;
  const std::string usual = options.affine ? "pytorch" : "modelopt";
  scheme.arithmetic = formats::require_word<experiments::IntegerArithmetic>(
      "arithmetic", options.arithmetic.empty() ? usual : options.arithmetic, "--arithmetic");
  scheme.calibrator = formats::require_word<experiments::Calibrator>(
      "calibrator", options.calibrator, "--calibrator");
  scheme.calibration.bits = options.bits;
  scheme.calibration.is_unsigned = options.is_unsigned;
  if (options.percentile == 0)
    throw Error("--percentile", "0 leaves no range: every number lies outside it");
  scheme.calibration.percentile = options.percentile;
  scheme.calibration.quirks = experiments::parse_quirks(options.quirks, "--quirks");
  experiments::require_scheme(scheme, "quantize");
  return scheme;
}

bool is_floating(const formats::Format& f) {
  return f.encoding == formats::Encoding::floating && f.has_sign;
}

/// FP32 numbers of a floating tensor; FP64 is rounded.
std::vector<float> numbers_of(const formats::Tensor& tensor, const std::string& where) {
  std::vector<float> numbers(static_cast<std::size_t>(formats::element_count(tensor.shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double x = emulator::scalar::decoded(
        tensor.format, formats::load_code(tensor.bytes, tensor.format, tensor.packing, i));
    numbers[i] = static_cast<float>(x);
    if (std::isfinite(x) && !std::isfinite(numbers[i]))
      throw Error(where, "element " + std::to_string(i) + " is " + number(x) +
                             ", past the largest number of FP32, in which ranges are calibrated");
  }
  return numbers;
}

/// A checkpoint of `guardbit train`, whose convolutions have their channels innermost.
bool is_checkpoint(const formats::TensorFile& file) {
  return file.metadata.contains("weights_hash") && file.metadata.contains("optimizer_steps");
}

/// Of a checkpoint the layers that ModelOpt prunes, of other files every tensor.
std::optional<experiments::PruningAxis> pruned_axis(const formats::Tensor& tensor,
                                                    bool of_checkpoint, const std::string& where) {
  if (of_checkpoint) return experiments::training::pruned_axis(tensor);
  return experiments::input_axis(tensor.shape, where);
}

Quantised quantise(const formats::Tensor& tensor, const IntegerScheme& scheme,
                   const QuantizeOptions& options, bool of_checkpoint = false) {
  Quantised q;
  q.name = tensor.name;
  const std::string where =
      formats::printable(options.input) + ": tensor " + formats::in_quotes(tensor.name);
  q.numbers = numbers_of(tensor, where);
  if (options.prune) {
    if (const auto axis = pruned_axis(tensor, of_checkpoint, where)) {
      q.unpruned = q.numbers;
      q.pruning = experiments::prune(q.numbers, *axis, where);
    }
  }
  q.integers = experiments::quantised(q.numbers, tensor.shape, scheme, where, options.threads,
                                      [] { return false; });
  q.errors = experiments::errors_of(q.integers, q.given());
  if (q.pruning) q.pruned_errors = experiments::errors_of(q.integers, q.numbers);
  return q;
}

formats::Tensor floats_tensor(const std::string& name, std::vector<std::int64_t> shape,
                              const std::vector<float>& numbers) {
  std::vector<std::uint32_t> codes;
  codes.reserve(numbers.size());
  for (const float x : numbers) codes.push_back(std::bit_cast<std::uint32_t>(x));
  return formats::tensor_of_codes(name, formats::fp32, formats::Packing::container,
                                  std::move(shape), codes);
}

formats::Tensor integers_tensor(const std::string& name, const formats::Format& format,
                                std::vector<std::int64_t> shape,
                                const std::vector<std::int32_t>& numbers) {
  std::vector<std::uint64_t> codes;
  codes.reserve(numbers.size());
  for (const std::int32_t x : numbers)
    codes.push_back(static_cast<std::uint32_t>(x) & formats::code_mask(format));
  return formats::tensor_of_codes(name, format, formats::Packing::container, std::move(shape),
                                  codes);
}

/// NAME, NAME.scale and, where one is not 0, NAME.zero_point.
void add_outputs(const Quantised& q, const QuantizeOptions& options,
                 std::vector<formats::Tensor>& out) {
  const IntegerTensor& t = q.integers;
  std::vector<std::int32_t> codes(q.numbers.size()), zeros;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = t.code(i);
  std::vector<float> scales;
  bool any_zero_point = false;
  for (const experiments::IntegerGrid& grid : t.grids) {
    scales.push_back(grid.scale());
    zeros.push_back(grid.zero);
    any_zero_point = any_zero_point || grid.zero != 0;
  }
  const bool narrow = options.bits <= 4;
  const formats::Format format = options.is_unsigned ? (narrow ? formats::uint4 : formats::uint8)
                                                     : (narrow ? formats::int4 : formats::int8);
  out.push_back(integers_tensor(q.name, format, t.shape, codes));
  out.push_back(floats_tensor(q.name + ".scale", t.group_shape, scales));
  if (any_zero_point)
    out.push_back(integers_tensor(q.name + ".zero_point", formats::int32, t.group_shape, zeros));
}

ordered_json number_or_null(double x) {
  return std::isfinite(x) ? ordered_json(x) : ordered_json(nullptr);
}

/// Zeros alone have no ratio.
std::string decibel_text(double x) { return std::isnan(x) ? "-" : number(x); }

const Columns<Quantised>& pruning_columns() {
  using Q = Quantised;
  static const Columns<Q> columns =
      Columns<Q>{{"",
                  "2:4 pruning",
                  Side::left,
                  {},
                  [](const Q& q) { return formats::printable(q.name, 60); }}} +
      pruning_columns_of<Q>(
          [](const Q& q) -> const auto& { return *q.pruning; },
          [](double share) { return number(100 * share) + "%"; }) +
      Columns<Q>{{"modelopt_prunes_it",
                  "",
                  Side::none,
                  [](const Q& q) { return experiments::is_pruned_by_modelopt(q.integers.shape); },
                  {},
                  1}};
  return columns;
}

const Columns<Quantised>& columns_of_tensors() {
  using Q = Quantised;
  static const Columns<Q> columns = {
      {"name", "tensor", Side::left, [](const Q& q) { return q.name; },
       [](const Q& q) { return paint(formats::printable(q.name, 60), Colour::bold); }},
      {"shape", "", Side::none, [](const Q& q) { return q.integers.shape; }},
      {"elements", "elements", Side::right, [](const Q& q) { return q.errors.numbers; }, {}, 1},
      {"scales", "scales", Side::right, [](const Q& q) { return q.integers.grids.size(); }},
      {"least_amax", "", Side::none,
       [](const Q& q) { return *std::ranges::min_element(q.integers.amax); }},
      {"largest_amax", "", Side::none,
       [](const Q& q) { return *std::ranges::max_element(q.integers.amax); }},
      {"sqnr_db", "SQNR dB", Side::right,
       [](const Q& q) { return number_or_null(q.errors.sqnr_db()); },
       [](const Q& q) { return decibel_text(q.errors.sqnr_db()); }},
      {"pruned_sqnr_db", "SQNR dB of the pruned", Side::right,
       [](const Q& q) {
         return q.pruned_errors ? number_or_null(q.pruned_errors->sqnr_db()) : absent();
       },
       [](const Q& q) { return q.pruned_errors ? decibel_text(q.pruned_errors->sqnr_db()) : ""; },
       0, false, true},
      {"max_error", "max error", Side::right, [](const Q& q) { return q.errors.largest; },
       [](const Q& q) { return number(q.errors.largest); }},
      {"pruned_max_error", "", Side::none,
       [](const Q& q) {
         return q.pruned_errors ? ordered_json(q.pruned_errors->largest) : absent();
       }},
      {"clipped", "", Side::none, [](const Q& q) { return q.errors.clipped; }},
      {"clipped_percent", "clipped", Side::right,
       [](const Q& q) { return q.errors.clipped_percent(); },
       [](const Q& q) { return number(q.errors.clipped_percent()) + "%"; }},
      {"zeros_made", "made zero", Side::right, [](const Q& q) { return q.errors.zeros_made; },
       [](const Q& q) { return number(q.errors.zeros_percent()) + "%"; }},
      {"pruning",
       "",
       Side::none,
       [](const Q& q) { return q.pruning ? pruning_columns().json(q) : absent(); },
       {},
       2}};
  return columns;
}

void print_tables(const std::vector<Quantised>& all) {
  columns_of_tensors().print(std::cout, all);
  std::vector<std::reference_wrapper<const Quantised>> pruned;
  for (const Quantised& q : all)
    if (q.pruning) pruned.emplace_back(q);
  if (pruned.empty()) return;
  std::cout << '\n';
  pruning_columns().print(std::cout, pruned);
}

/// The integer product, requantised, beside the product of the numbers in FP64.
struct Product {
  experiments::IntegerProduct integers;
  std::vector<std::int32_t> requantised;
  experiments::IntegerGrid grid;
  /// of sums times scales, against the product of the inputs
  double sqnr_db = 0, max_error = 0;
  /// of the requantised integers
  double requantised_sqnr_db = 0, requantised_max = 0;
  /// as sqnr_db, against the product of the pruned A
  std::optional<double> pruned_sqnr_db;
};

/// A [M, K] times B [K, N] in FP64, whose errors are far below those of integers; `numbers` are
/// A's.
std::vector<double> reference_product(const std::vector<float>& numbers, const Quantised& a,
                                      const Quantised& b) {
  const auto m = static_cast<std::size_t>(a.integers.shape[0]);
  const auto k = static_cast<std::size_t>(a.integers.shape[1]);
  const auto n = static_cast<std::size_t>(b.integers.shape[1]);
  std::vector<double> d(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t p = 0; p < k; ++p)
      for (std::size_t j = 0; j < n; ++j)
        d[i * n + j] +=
            static_cast<double>(numbers[i * k + p]) * static_cast<double>(b.numbers[p * n + j]);
  return d;
}

/// Of the sums times scales, against these numbers.
double sqnr_db(const Product& product, const std::vector<double>& exact) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = product.integers.sums[i] * product.integers.factors[i] - exact[i];
    signal += exact[i] * exact[i];
    noise += error * error;
  }
  return 10 * std::log10(signal / noise);
}

Product multiply(const Quantised& a, const Quantised& b, const QuantizeOptions& options) {
  const auto rule =
      formats::require_word<experiments::RequantisationRule>("rule", options.rule, "--requantise");
  Product product;
  product.integers = experiments::multiply(
      a.integers, b.integers, {options.arch, options.instruction, options.prune, options.threads},
      "quantize");
  const std::vector<double> exact = reference_product(a.given(), a, b);
  double amax = 0, signal = 0, requantised_noise = 0;
  for (const double x : exact) amax = std::max(amax, std::abs(x));
  product.grid = experiments::divide_grid(static_cast<float>(amax), options.bits, false);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double factor = product.integers.factors[i];
    const auto ratio = static_cast<float>(factor / static_cast<double>(product.grid.factor));
    const std::int32_t q = experiments::Requantisation(rule, ratio)(
        product.integers.sums[i], 0, product.grid.low, product.grid.high);
    product.requantised.push_back(q);
    const double error = product.integers.sums[i] * factor - exact[i];
    const double rounded = static_cast<double>(product.grid.value(q)) - exact[i];
    product.max_error = std::max(product.max_error, std::abs(error));
    product.requantised_max = std::max(product.requantised_max, std::abs(rounded));
    signal += exact[i] * exact[i];
    requantised_noise += rounded * rounded;
  }
  product.sqnr_db = sqnr_db(product, exact);
  if (a.pruning) product.pruned_sqnr_db = sqnr_db(product, reference_product(a.numbers, a, b));
  product.requantised_sqnr_db = 10 * std::log10(signal / requantised_noise);
  return product;
}

void check_output(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".safetensors" && extension != ".npz" && path != "-")
    throw Error(formats::printable(path), "integers and scales need a file of several tensors",
                ".safetensors, .npz");
  const formats::AtomicOutput writable(path);
}

/// What stays as it is beside a checkpoint's integers.
bool is_bias(const formats::Tensor& t, bool of_checkpoint) {
  return of_checkpoint && t.name.ends_with(".bias") && !experiments::training::is_state(t.name);
}

/// The tensors to quantise, of a checkpoint its weights; the others are written as they are.
std::vector<const formats::Tensor*> chosen(const formats::TensorFile& file,
                                           const QuantizeOptions& options) {
  std::vector<const formats::Tensor*> tensors;
  std::vector<std::string_view> names;
  std::string list;
  const bool of_checkpoint = is_checkpoint(file);
  for (const formats::Tensor& t : file.tensors) {
    if (!is_floating(t.format)) continue;
    names.push_back(t.name);
    if (!list.empty()) list += ", ";
    list += formats::printable(t.name, 40);
    const bool is_operand = !of_checkpoint || experiments::training::is_weight(t);
    if (options.tensors.empty() && is_operand) tensors.push_back(&t);
  }
  const std::string where = formats::printable(options.input);
  for (const std::string& name : options.tensors) {
    if (std::ranges::find(names, std::string_view(name)) == names.end())
      throw Error(where, formats::unknown_name("floating-point tensor", name, names), list);
    tensors.push_back(file.find(name));
  }
  if (tensors.empty()) throw Error(where, "holds no floating-point tensor");
  for (const formats::Tensor* const t : tensors)
    if (formats::element_count(t->shape) == 0)
      throw Error(where + ": tensor " + formats::in_quotes(t->name), "is empty");
  return tensors;
}

int run(const QuantizeOptions& options) {
  const IntegerScheme scheme = scheme_of(options);
  formats::FormatOverrides overrides;
  if (!options.from.empty()) overrides.any = require_element_format(options.from, "--from");
  const formats::TensorFile file = formats::read_tensors(options.input, overrides);
  const auto tensors = chosen(file, options);
  const bool of_checkpoint = is_checkpoint(file);
  if (!options.multiply.empty() && tensors.size() != 1)
    throw Error("--multiply", "needs one tensor as A: choose it by --tensor");
  check_output(options.output);
  std::optional<EndAtOnce> computing(std::in_place, ": nothing written");
  std::vector<Quantised> all;
  all.reserve(tensors.size());
  std::optional<Product> product;
  for (const formats::Tensor* const t : tensors)
    all.push_back(quantise(*t, scheme, options, of_checkpoint));
  if (!options.multiply.empty()) {
    QuantizeOptions of_b = options;
    of_b.prune = false;
    of_b.input = options.multiply;
    IntegerScheme columns = scheme;
    columns.axis = 1;
    all.push_back(
        quantise(read_operand("--multiply", "b", options.multiply, formats::fp32, options.from),
                 columns, of_b));
    product = multiply(all[0], all[1], options);
  }
  std::vector<formats::Tensor> outputs;
  for (const Quantised& q : all) add_outputs(q, options, outputs);
  for (const formats::Tensor& t : file.tensors)
    if (options.tensors.empty() && (!is_floating(t.format) || is_bias(t, of_checkpoint)))
      outputs.push_back(t);
  if (product) {
    const std::vector<std::int64_t> shape = {product->integers.m, product->integers.n};
    outputs.push_back(integers_tensor("d.sums", formats::int32, shape, product->integers.sums));
    outputs.push_back(integers_tensor("d", formats::int8, shape, product->requantised));
    outputs.push_back(floats_tensor("d.scale", {1}, {product->grid.factor}));
  }
  auto metadata = file.metadata;
  metadata["quantisation"] = std::string(formats::word_of(scheme.calibrator)) + ", " +
                             std::string(formats::word_of(scheme.arithmetic)) + ", quirks " +
                             experiments::to_text(scheme.calibration.quirks);
  computing.reset();
  const Interruption interruption;
  formats::write_tensors(options.output, metadata, outputs);
  interruption.check(" after the output was written");
  if (!options.json) {
    print_tables(all);
    if (!product) return 0;
    std::cout << "\nA * B by " << product->integers.instruction << " of " << options.arch
              << ": SQNR " << decibel_text(product->sqnr_db) << " dB, max error "
              << number(product->max_error) << "; requantised (" << options.rule << "): SQNR "
              << decibel_text(product->requantised_sqnr_db) << " dB, max error "
              << number(product->requantised_max) << '\n';
    if (product->pruned_sqnr_db)
      std::cout << "Against the product of the pruned A: SQNR "
                << decibel_text(*product->pruned_sqnr_db) << " dB\n";
    return 0;
  }
  ordered_json j = {{"input", options.input},
                    {"output", options.output},
                    {"bits", options.bits},
                    {"calibrator", formats::word_of(scheme.calibrator)},
                    {"quirks", experiments::to_text(scheme.calibration.quirks)},
                    {"arithmetic", formats::word_of(scheme.arithmetic)},
                    {"granularity", options.granularity},
                    {"affine", options.affine},
                    {"tensors", ordered_json::array()}};
  for (const Quantised& q : all) j["tensors"].push_back(columns_of_tensors().json(q));
  if (product)
    j["product"] = {{"instruction", product->integers.instruction},
                    {"arch", options.arch},
                    {"rule", options.rule},
                    {"sqnr_db", number_or_null(product->sqnr_db)},
                    {"max_error", product->max_error},
                    {"requantised_sqnr_db", number_or_null(product->requantised_sqnr_db)},
                    {"requantised_max_error", product->requantised_max}};
  if (product && product->pruned_sqnr_db)
    j["product"]["pruned_sqnr_db"] = number_or_null(*product->pruned_sqnr_db);
  print_json(j);
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, int& status) {
  CLI::App* const command = app.add_subcommand(
      "quantize", "Calibrate and quantise tensors to integers; multiply them on a tensor core");
  const auto options = std::make_shared<QuantizeOptions>();
  command->add_option("IN", options->input, "A .safetensors, .npy, .npz, .pt or HDF5 file")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "Where NAME, NAME.scale and NAME.zero_point go: .safetensors or .npz")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--from", options->from,
                   "The format of the input, where the file does not say it")
      ->type_name("FORMAT");
  command->add_option("--tensor", options->tensors, "Only these tensors")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option(
          "--calibrator", options->calibrator,
          "How the range is chosen (default max); search: least squared error among 39 multiples, from 1/4 to 4, of the largest magnitude, which is none of them")
      ->type_name(type_of_words<experiments::Calibrator>());
  command->add_option("--percentile", options->percentile, "Of --calibrator percentile (99.99)")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--quirks", options->quirks,
                   "modelopt (default), modelopt_numpy, none, or any of " +
                       std::string(experiments::quirk_names))
      ->type_name("QUIRKS");
  command->add_option("--bits", options->bits, "2 to 8 (default 8); up to 4 are written as INT4")
      ->check(CLI::Range(2, 8));
  command->add_flag("--unsigned", options->is_unsigned, "Integers without a sign");
  command->add_flag("--affine", options->affine, "With a zero point, for [least, largest]");
  command
      ->add_option(
          "--arithmetic", options->arithmetic,
          "modelopt: x * (bound / amax); pytorch: x * (1 / s); divide: x / s (default modelopt, with --affine pytorch)")
      ->type_name(type_of_words<experiments::IntegerArithmetic>());
  command->add_option("--granularity", options->granularity, "Numbers that share a scale")
      ->type_name(type_of_words<experiments::Granularity>());
  command->add_option("--axis", options->axis, "Of the channels (default 0)");
  command->add_option("--block", options->block, "Numbers of a block, along the last axis (128)")
      ->check(CLI::Range(1, 1 << 30));
  command->add_flag(
      "--prune", options->prune,
      "Prune 2:4 by magnitude first, along the inputs of each weight; errors are against "
      "the input, and where named so against the pruned numbers");
  command
      ->add_option("--multiply", options->multiply,
                   "B, as FILE or FILE:TENSOR: quantise it, too, and multiply IN * B in integers")
      ->type_name("FILE");
  command->add_option("--arch", options->arch, "Of the instruction (default sm_90)");
  command->add_option("--instruction", options->instruction,
                      "That multiplies (default mma.sync of these integers, sparse with --prune)");
  command
      ->add_option("--requantise", options->rule,
                   "How the product's sums become integers (default double_rounding)")
      ->type_name(type_of_words<experiments::RequantisationRule>());
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print the tables as JSON");
  command->footer(
      "NAME.scale holds what one unit stands for: x is about (NAME - NAME.zero_point) * NAME.scale.\n"
      "Example: guardbit quantize w.safetensors --calibrator entropy --granularity channel -o w8.safetensors\n"
      "Example: guardbit quantize w.npy --prune --multiply x.npy -o d.npz\n"
      "Of a checkpoint of 'guardbit train' weights are quantised, biases stay; "
      "to see what the network is worth on integers: [quantisation] in train's configuration.");
  command->callback([options, command, &status] {
    if (options->calibrator != "percentile")
      refuse_unread(*command, {"--percentile"}, "with --calibrator percentile");
    if (options->granularity != "block")
      refuse_unread(*command, {"--block"}, "with --granularity block");
    if (options->multiply.empty())
      refuse_unread(*command, {"--arch", "--instruction", "--requantise"}, "with --multiply");
    status = run(*options);
  });
}

}  // namespace guardbit::tools

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/capture/bound_operands.hpp"
#include "emulator/catalogue/usual_instruction.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/inputs/matrix_families.hpp"
#include "formats/files/array_file.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "gpu/cuda/device/on_devices.hpp"
#include "gpu/cuda/product/cublas.hpp"
#include "gpu/cuda/product/device_product.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/devices_option.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/products/operand_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::MatrixInstruction;
using emulator::inputs::MatrixFamily;
using formats::Error;
using formats::Format;
using formats::Tensor;
using gpu::DeviceBuffer;

constexpr const char* where = "gpu gemm";

/// The families whose elements do not depend on each other.
std::vector<std::string> family_words() {
  std::vector<std::string> words;
  for (const MatrixFamily& family : emulator::inputs::matrix_families)
    if (!family.cancelling) words.emplace_back(family.word);
  return words;
}

struct Options {
  std::string a, b, c, output;
  std::string arch, instruction, type = "fp16", result = "fp32", toolkit;
  std::string kernel = "auto", family = "normal", compare;
  std::vector<int> random;
  std::uint64_t seed = 1;
  std::string devices = "all";
  int repeat = 1, check = 0;
  bool json = false;
};

/// The named instruction, or the machine's usual one for the types: the newest unit that has it,
/// with its longest K.
MatrixInstruction instruction_of(const Options& options) {
  const int toolkit = emulator::require_toolkit(options.toolkit, "--toolkit");
  if (!options.instruction.empty())
    return emulator::require_instruction(options.arch, options.instruction, where, toolkit);
  const std::string_view page = emulator::require_page(options.arch, where);
  const Format inputs = formats::require_format(options.type, "--type");
  const Format result = formats::require_format(options.result, "--result");
  if (const auto usual = emulator::usual_instruction(page, {inputs, inputs, result}, toolkit))
    return *usual;
  throw Error(where,
              options.arch + " has no dense instruction that multiplies " +
                  formats::name_of(inputs) + " into " + formats::name_of(result),
              "see guardbit list --arch " + options.arch);
}

/// As a batch of one.
Tensor read_matrix(const std::string& place, const std::string& operand, const Format& format) {
  Tensor matrix = read_operand("", operand, place, format);
  if (matrix.shape.size() != 2)
    throw Error(formats::printable(place), "shape " + emulator::shape_text(matrix.shape) +
                                               " is no matrix's, which has two dimensions");
  matrix.shape.insert(matrix.shape.begin(), 1);
  return matrix;
}

std::size_t bytes_of(const Format& f, std::int64_t elements) {
  return static_cast<std::size_t>(elements) *
         static_cast<std::size_t>(formats::container_bits(f) / 8);
}

/// The operands and the result in device memory.
struct Matrices {
  MatrixInstruction instruction;
  int m, n, k;
  DeviceBuffer a, b, c, d;
  bool has_c = false;

  Matrices(const MatrixInstruction& made, const emulator::Shape& shape)
      : instruction(made),
        m(shape.m),
        n(shape.n),
        k(shape.k),
        a(bytes_of(made.a, std::int64_t{m} * k), where),
        b(bytes_of(made.b, std::int64_t{n} * k), where),
        c(bytes_of(made.c, std::int64_t{m} * n), where),
        d(bytes_of(made.d, std::int64_t{m} * n), where) {}

  gpu::DeviceMatrices view() const { return view(0, m); }
  /// So many rows of A, C and D, and all of B.
  gpu::DeviceMatrices view(int row, int rows) const {
    const std::size_t results = bytes_of(instruction.d, std::int64_t{row} * n),
                      addends = bytes_of(instruction.c, std::int64_t{row} * n);
    return {a.as<std::byte>() + bytes_of(instruction.a, std::int64_t{row} * k),
            b.as<std::byte>(),
            has_c ? c.as<std::byte>() + addends : nullptr,
            d.as<std::byte>() + results,
            rows,
            n,
            k};
  }
};

Matrices random_matrices(const Options& options, const MatrixInstruction& instruction) {
  const auto& s = options.random;
  if (s.size() != 3 || *std::min_element(s.begin(), s.end()) < 1)
    throw Error("--random", "needs three positive sizes", "M,N,K");
  Matrices x(instruction, {s[0], s[1], s[2]});
  const MatrixFamily& family = *emulator::inputs::find_matrix_family(options.family);
  const auto fill = [&](const Format& f, const DeviceBuffer& to, std::uint64_t stream,
                        std::int64_t count) {
    gpu::generate_operand(f, element_draw(family, f, instruction.d), options.seed * 4 + stream,
                          to.as<std::byte>(), static_cast<std::size_t>(count));
  };
  fill(instruction.a, x.a, 0, std::int64_t{x.m} * x.k);
  fill(instruction.b, x.b, 1, std::int64_t{x.n} * x.k);
  return x;
}

Matrices matrices_of_files(const Options& options, const MatrixInstruction& instruction) {
  if (options.a.empty() || options.b.empty())
    throw Error(where, "needs A and B, or --random M,N,K");
  std::vector<Tensor> tensors = {read_matrix(options.a, "a", instruction.a),
                                 read_matrix(options.b, "b", instruction.b)};
  if (!options.c.empty()) tensors.push_back(read_matrix(options.c, "c", instruction.c));
  MatrixInstruction any_size = instruction;
  for (const Tensor& tensor : tensors)
    if (*std::max_element(tensor.shape.begin(), tensor.shape.end()) > INT32_MAX)
      throw Error(where, "too large a dimension");
  any_size.shape = {static_cast<int>(tensors[0].shape[1]), static_cast<int>(tensors[1].shape[2]),
                    static_cast<int>(tensors[0].shape[2])};
  const auto bound =
      emulator::bind_operands(any_size, tensors, emulator::ElementType::same_bits, where);
  if (bound.outputs() == 0) throw Error(where, "D has no elements");
  emulator::require_product(instruction, any_size.shape.k, where);
  Matrices x(instruction, any_size.shape);
  x.a.write(bound.tensors[0].bytes);
  x.b.write(bound.tensors[1].bytes);
  x.has_c = bound.tensors.size() > 2;
  if (x.has_c) x.c.write(bound.tensors[2].bytes);
  return x;
}

struct Checked {
  int tiles = 0;
  std::int64_t outputs = 0, mismatches = 0;
};

/// Columns [column, column + columns) of `rows` rows of a row-major matrix in device memory.
void read_part(const DeviceBuffer& from, const Format& f, std::int64_t width, std::int64_t row,
               std::int64_t rows, std::int64_t column, std::int64_t columns, std::byte* to) {
  const std::size_t part = bytes_of(f, columns);
  gpu::check_cuda(cudaMemcpy2D(to, part, from.as<std::byte>() + bytes_of(f, row * width + column),
                               bytes_of(f, width), part, static_cast<std::size_t>(rows),
                               cudaMemcpyDeviceToHost),
                  where);
}

/// Computes `tiles` tiles of D again on the CPU: those at the corners first, then anywhere.
Checked check_tiles(const Matrices& x, int tiles, std::uint64_t seed) {
  const int m = std::min(16, x.m), n = std::min(16, x.n);
  const MatrixInstruction& instruction = x.instruction;
  const emulator::Engine& engine = emulator::require_engine("auto", instruction);
  const std::int64_t outputs = std::int64_t{m} * n;
  std::vector<std::byte> a(bytes_of(instruction.a, std::int64_t{m} * x.k)),
      b(bytes_of(instruction.b, std::int64_t{x.k} * n)), c(bytes_of(instruction.c, outputs)),
      d(bytes_of(instruction.d, outputs)), expected(d.size());
  const auto codes = [](const Format& f, const std::vector<std::byte>& bytes) {
    return emulator::codes_of(f, bytes.data());
  };
  emulator::MatrixProduct product;
  product.m = m;
  product.n = n;
  product.k = x.k;
  product.a = {codes(instruction.a, a), x.k};
  product.b = {codes(instruction.b, b), n};
  product.c = {codes(instruction.c, c), n};
  product.d = {emulator::codes_of(instruction.d, expected.data()), n};
  Checked checked{tiles, tiles * outputs, 0};
  ProgressLine progress("checking on the CPU", static_cast<std::size_t>(tiles));
  for (int t = 0; t < tiles; ++t) {
    progress.update(static_cast<std::size_t>(t));
    const auto draw = [&](unsigned stream, int room) {
      if (t < 4) return (t >> stream & 1) != 0 ? room : 0;
      const auto bits = formats::random_bits(seed, 2 * static_cast<std::uint64_t>(t) + stream).bits;
      return static_cast<int>(bits % static_cast<std::uint64_t>(room + 1));
    };
    const int i = draw(0, x.m - m), j = draw(1, x.n - n);
    read_part(x.a, instruction.a, x.k, i, m, 0, x.k, a.data());
    read_part(x.b, instruction.b, x.n, 0, x.k, j, n, b.data());
    if (x.has_c) read_part(x.c, instruction.c, x.n, i, m, j, n, c.data());
    read_part(x.d, instruction.d, x.n, i, m, j, n, d.data());
    emulator::multiply(engine, instruction, product);
    const emulator::ConstCodes got = codes(instruction.d, d),
                               right = codes(instruction.d, expected);
    for (std::int64_t at = 0; at < outputs; ++at)
      checked.mismatches += got[at] != right[at] ? 1 : 0;
  }
  return checked;
}

struct Timing {
  std::string kernel;
  /// of the whole product
  double seconds = 0;
  /// of it, for bringing the operands into the tuned kernel's form
  double pack_seconds = 0;
};

/// Those rows of D, on the current device.
Timing multiply(const Options& options, const Matrices& x, const gpu::DeviceMatrices& rows) {
  const auto tuned = gpu::tuned_instruction(x.instruction);
  const bool takes = tuned && gpu::tuned_takes(*tuned, x.k);
  if (options.kernel == "tuned" && !takes)
    throw Error("--kernel tuned",
                "does not take " + std::string(std::string_view(x.instruction.name)),
                "auto, model");
  Timing best;
  gpu::DeviceTimer timer;
  if (!takes || options.kernel == "model") {
    best.kernel = "model";
    StatusLine line;
    for (int i = 0; i < options.repeat; ++i) {
      line.show("multiplying by the model, run " + std::to_string(i + 1) + " of " +
                std::to_string(options.repeat));
      timer.start();
      gpu::multiply_by_model(x.instruction, rows);
      const double seconds = timer.stop();
      if (i == 0 || seconds < best.seconds) best.seconds = seconds;
    }
    return best;
  }
  best.kernel = "tuned";
  const gpu::TunedMultiplication product(*tuned, rows);
  for (int i = 0; i < options.repeat; ++i) {
    timer.start();
    product.pack();
    const double packing = timer.stop();
    timer.start();
    product.multiply();
    const double seconds = packing + timer.stop();
    if (i == 0 || seconds < best.seconds) {
      best.seconds = seconds;
      best.pack_seconds = packing;
    }
  }
  return best;
}

/// D by rows on several devices, each with operands of its own; D is whole on the first of them.
/// The seconds are those of the slowest.
struct DividedProduct {
  std::unique_ptr<Matrices> matrices;
  Timing timing;
};

DividedProduct multiply(const Options& options, const MatrixInstruction& instruction,
                        const std::vector<int>& devices) {
  constexpr int alignment = 256;  // a multiple of every tile's height
  std::vector<DividedProduct> parts(devices.size());
  const auto rows_until = [&](std::size_t i) {
    const std::int64_t m = parts[0].matrices->m;
    if (i == devices.size()) return static_cast<int>(m);
    const std::int64_t share = m * static_cast<std::int64_t>(i) / std::ssize(devices);
    return static_cast<int>(share / alignment * alignment);
  };
  gpu::on_each_device(devices, [&](std::size_t i) {
    parts[i].matrices =
        std::make_unique<Matrices>(options.random.empty() ? matrices_of_files(options, instruction)
                                                          : random_matrices(options, instruction));
    gpu::check_cuda(cudaDeviceSynchronize(), where);
  });
  gpu::on_each_device(devices, [&](std::size_t i) {
    const int begin = rows_until(i), rows = rows_until(i + 1) - begin;
    if (rows == 0) return;
    const Matrices& mine = *parts[i].matrices;
    parts[i].timing = multiply(options, mine, mine.view(begin, rows));
    if (i == 0) return;
    gpu::check_cuda(
        cudaMemcpy(parts[0].matrices->view(begin, rows).d, mine.view(begin, rows).d,
                   bytes_of(instruction.d, std::int64_t{rows} * mine.n), cudaMemcpyDefault),
        where);
  });
  for (const DividedProduct& part : parts)
    if (part.timing.seconds > parts[0].timing.seconds) parts[0].timing = part.timing;
  return std::move(parts[0]);
}

nlohmann::ordered_json compare_with_cublas(const Matrices& x) {
  if (const std::string refusal = gpu::cublas_refusal(x.instruction, x.has_c); !refusal.empty())
    return {{"skipped", refusal}};
  const DeviceBuffer d(bytes_of(x.instruction.d, std::int64_t{x.m} * x.n), where);
  gpu::DeviceMatrices view = x.view();
  view.d = d.as<std::byte>();
  const auto run = gpu::run_cublas(x.instruction, view);
  if (!run) return {{"skipped", "no libcublas.so.13 or libcublas.so.12 was found"}};
  const auto outputs = static_cast<std::size_t>(x.m) * static_cast<std::size_t>(x.n);
  const std::uint64_t unequal =
      gpu::count_differences(x.instruction.d, x.d.as<std::byte>(), view.d, outputs);
  return {{"library", run->library},
          {"seconds", run->seconds},
          {"tflops", 2.0 * x.m * x.n * x.k / run->seconds * 1e-12},
          {"outputs", outputs},
          {"equal", outputs - unequal}};
}

/// What the tuned kernel's FP64 multiply-adds are of the most that the device does: Hopper's tensor
/// cores do 128 per clock and multiprocessor.
std::optional<double> fp64_fraction(const gpu::Device& device, double flops_per_second) {
  if (device.capability != 90 || device.clock_ghz <= 0) return std::nullopt;
  return flops_per_second / (2.0 * 128 * device.processors * device.clock_ghz * 1e9);
}

std::string text_of(const nlohmann::ordered_json& j) {
  std::ostringstream out;
  const auto number = [](const nlohmann::ordered_json& x) { return x.get<double>(); };
  out << std::setprecision(4) << j["m"] << " x " << j["n"] << " x " << j["k"] << " as "
      << j["instruction"].get<std::string>() << " on " << j["arch"].get<std::string>() << ": "
      << number(j["seconds"]) * 1e3 << " ms, " << number(j["tflops"]) << " TFLOP/s, "
      << j["kernel"].get<std::string>() << " kernel";
  if (j["devices"] != 1) out << ", " << j["devices"] << " devices";
  if (j.contains("fp64_fraction"))
    out << ", " << 100 * number(j["fp64_fraction"]) << " % of the FP64 tensor cores";
  out << '\n';
  if (const auto& checked = j["checked"]; checked["tiles"] != 0)
    out << "checked on the CPU: " << counted(checked["outputs"].get<std::int64_t>(), "output")
        << " in " << counted(checked["tiles"].get<std::int64_t>(), "tile") << ", "
        << counted(checked["mismatches"].get<std::int64_t>(), "mismatch", "es") << '\n';
  if (j.contains("cublas")) {
    const auto& cublas = j["cublas"];
    if (cublas.contains("skipped")) {
      out << "cuBLAS: " << cublas["skipped"].get<std::string>() << '\n';
    } else {
      out << "cuBLAS: " << cublas["equal"] << " of " << cublas["outputs"] << " outputs equal, "
          << number(cublas["tflops"]) << " TFLOP/s\n";
    }
  }
  return out.str();
}

int run(const Options& options) {
  const MatrixInstruction instruction = instruction_of(options);
  if (!options.random.empty()) emulator::require_product(instruction, options.random.back(), where);
  const gpu::Device device = gpu::require_device();
  const std::vector<int> devices = usable_devices(options.devices);
  gpu::check_cuda(cudaSetDevice(devices.front()), where);
  const auto [matrices, timing] = multiply(options, instruction, devices);
  const Matrices& x = *matrices;
  const double flops = 2.0 * x.m * x.n * x.k;

  nlohmann::ordered_json j = {{"arch", options.arch},
                              {"instruction", std::string(std::string_view(instruction.name))},
                              {"m", x.m},
                              {"n", x.n},
                              {"k", x.k},
                              {"seconds", timing.seconds},
                              {"tflops", flops / timing.seconds * 1e-12},
                              {"kernel", timing.kernel},
                              {"pack_seconds", timing.pack_seconds},
                              {"device", device.name},
                              {"devices", devices.size()}};
  const auto fraction =
      fp64_fraction(device, flops / timing.seconds / static_cast<double>(devices.size()));
  if (timing.kernel == "tuned" && fraction) j["fp64_fraction"] = *fraction;
  Checked checked;
  if (options.check > 0) checked = check_tiles(x, options.check, options.seed);
  j["checked"] = {
      {"tiles", checked.tiles}, {"outputs", checked.outputs}, {"mismatches", checked.mismatches}};
  if (options.compare == "cublas") j["cublas"] = compare_with_cublas(x);
  if (!options.output.empty()) {
    const Tensor d = formats::owning_tensor("d", instruction.d, formats::Packing::container,
                                            {x.m, x.n}, x.d.read());
    formats::write_tensors(options.output, {}, std::vector<Tensor>{d});
  }
  std::cout << (options.json ? j.dump(2) + "\n" : text_of(j));
  return checked.mismatches == 0 ? 0 : 1;
}

}  // namespace

void add_gpu_gemm(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      gpu.add_subcommand("gemm", "Multiply matrices as another machine's matrix unit would");
  const std::string file = "as FILE or FILE:TENSOR; .npy, .npz or .safetensors";
  command->add_option("A", options->a, "A: [M, K], " + file);
  command->add_option("B", options->b, "B: [K, N]");
  command->add_option("--c", options->c, "C: [M, N] (default: +0)");
  command->add_option("-o,--output", options->output, "Where D goes: .npy, .npz or .safetensors");
  command->add_option("--arch", options->arch, "The machine: sm_90, sm_100, ...")->required();
  command->add_option("--instruction", options->instruction,
                      "The instruction that is chained over K (default: the machine's usual one)");
  command->add_option("--type", options->type, "Without --instruction: the type of A and B")
      ->capture_default_str();
  command->add_option("--result", options->result, "Without --instruction: the type of C and D")
      ->capture_default_str();
  command->add_option("--toolkit", options->toolkit,
                      "ptxas version that compiled it, where it matters (default: newest)");
  command->add_option("--kernel", options->kernel, "tuned, or the model itself")
      ->check(CLI::IsMember({"auto", "tuned", "model"}))
      ->capture_default_str();
  command->add_option("--random", options->random, "Operands made on the device, of sizes M,N,K")
      ->delimiter(',');
  command->add_option("--family", options->family, "What they look like")
      ->check(CLI::IsMember(family_words()))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of --random and of --check")
      ->capture_default_str();
  command->add_option("--repeat", options->repeat, "Multiply so often and report the fastest")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--check", options->check, "Compute so many tiles of D again on the CPU")
      ->check(CLI::Range(0, 100000));
  command->add_option("--compare", options->compare, "Also multiply with that library")
      ->check(CLI::IsMember({"cublas"}));
  add_devices_option(*command, options->devices);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "D's elements are ascending chains of the instruction. Exits with 1 when --check finds a mismatch.\n"
      "Example: guardbit gpu gemm --arch sm_100 --type e4m3 --random 8192,8192,8192 --check 8");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace guardbit::tools

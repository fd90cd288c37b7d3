// Emulated matrix products beside Eigen's.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "formats/support/parallel.hpp"
#include "tools/benchmarks/benchmark_cases.hpp"
#include "tools/benchmarks/benchmark_instructions.hpp"
#include "tools/benchmarks/benchmark_operands.hpp"
#include "tools/benchmarks/benchmarks.hpp"
#include "tools/benchmarks/yardsticks.hpp"

namespace guardbit::tools {

namespace {

using emulator::Engine;
using emulator::MatrixInstruction;
using emulator::inputs::ElementDraw;
using emulator::inputs::share;

struct Size {
  std::int64_t m = 0, n = 0, k = 0;
};

double work_of(const Size& size) {
  return 2e-9 * static_cast<double>(size.m) * static_cast<double>(size.n) *
         static_cast<double>(size.k);
}

/// Eigen's operands: normal numbers.
template <class T>
struct EigenOperands {
  std::vector<T> a, b, c;

  explicit EigenOperands(const Size& size)
      : a(static_cast<std::size_t>(size.m * size.k)),
        b(static_cast<std::size_t>(size.k * size.n)),
        c(static_cast<std::size_t>(size.m * size.n)) {
    std::mt19937_64 random(1);
    std::normal_distribution<T> normal;
    std::vector<T> pool(1 << 16);
    for (T& x : pool) x = normal(random);
    for (std::vector<T>* matrix : {&a, &b})
      for (T& x : *matrix) x = pool[random() % pool.size()];
  }
};

std::string eigen_name(const ProductYardstick& eigen, bool is_double) {
  return std::string(is_double ? "eigen_dgemm_" : "eigen_sgemm_") +
         std::string(eigen.instruction_set);
}

Planned eigen_product(const std::string& group, const ProductYardstick& eigen, bool is_double,
                      const Size& size) {
  Planned planned;
  Result& r = planned.result;
  r.kind = "gemm";
  r.subject = eigen_name(eigen, is_double);
  r.name = group + "/" + r.subject;
  r.m = size.m;
  r.n = size.n;
  r.k = size.k;
  r.data = "normal";
  r.work = work_of(size);
  r.unit = "GFLOP/s";
  planned.prepare = [eigen, is_double, size](Result&) -> std::function<void()> {
    if (is_double) {
      return [x = std::make_shared<EigenOperands<double>>(size), eigen, size] {
        eigen.dgemm(x->a.data(), x->b.data(), x->c.data(), size.m, size.n, size.k);
      };
    }
    return [x = std::make_shared<EigenOperands<float>>(size), eigen, size] {
      eigen.sgemm(x->a.data(), x->b.data(), x->c.data(), size.m, size.n, size.k);
    };
  };
  return planned;
}

std::string peak_name(const ProductYardstick& set, bool is_double) {
  return std::string(is_double ? "multiply_add_fp64_" : "multiply_add_fp32_") +
         std::string(set.instruction_set);
}

/// What no product of one thread can outrun.
Planned multiply_add_peak(const std::string& group, const ProductYardstick& set, bool is_double) {
  constexpr std::int64_t rounds = 200'000;
  Planned planned;
  Result& r = planned.result;
  r.kind = "gemm";
  r.subject = peak_name(set, is_double);
  r.name = group + "/" + r.subject;
  r.unit = "GFLOP/s";
  planned.prepare = [of = is_double ? set.multiply_adds_fp64 : set.multiply_adds_fp32](
                        Result& result) -> std::function<void()> {
    result.work = 1e-9 * of(rounds);
    return [of] { of(rounds); };
  };
  return planned;
}

/// Operands that the benchmarks of a group share, made when the first one needs them.
class SharedOperands {
 public:
  SharedOperands(const MatrixInstruction& instruction, const MatrixFamily& data, const Size& size,
                 int scale_binades = 0)
      : instruction_(instruction), data_(data), size_(size), scale_binades_(scale_binades) {}

  const emulator::MatrixProduct& product() {
    if (!operands_)
      operands_.emplace(instruction_, data_, size_.m, size_.n, size_.k, scale_binades_);
    return operands_->product();
  }
  const MatrixInstruction& instruction() const { return instruction_; }

 private:
  MatrixInstruction instruction_;
  MatrixFamily data_;
  Size size_;
  int scale_binades_;
  std::optional<ProductOperands> operands_;
};

/// Rows and columns of the product that an engine may compute within `seconds`: the whole of it, or
/// a square part as large as a small part's time allows, since the time of the slow engines grows
/// with the number of outputs.
emulator::MatrixProduct affordable_part(const Engine& engine, const MatrixInstruction& instruction,
                                        const emulator::MatrixProduct& whole, int threads,
                                        double seconds) {
  const double outputs = static_cast<double>(whole.m) * static_cast<double>(whole.n);
  double affordable = 0;
  for (const std::int64_t side : {8, 128}) {
    const emulator::MatrixProduct part =
        whole.part(0, std::min(side, whole.m), 0, std::min(side, whole.n));
    double least = 1e9;
    for (int repeat = 0; repeat < (side == 8 ? 3 : 1); ++repeat) {  // the first ones are cold
      const auto start = std::chrono::steady_clock::now();
      emulator::multiply(engine, instruction, part, threads);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      least = std::min(least, taken.count());
    }
    affordable = seconds / least * static_cast<double>(part.m) * static_cast<double>(part.n);
    if (affordable >= outputs) return whole;
    // Small parts do not show what engines that work in tiles can do.
    if (4 * affordable < 128 * 128) break;
  }
  const auto edge = std::max<std::int64_t>(8, static_cast<std::int64_t>(std::sqrt(affordable)));
  const std::int64_t rounded = edge >= 64 ? edge / 64 * 64 : edge / 8 * 8;
  return whole.part(0, std::min(rounded, whole.m), 0, std::min(rounded, whole.n));
}

Planned emulated_product(const std::string& name, const Engine& engine,
                         const std::shared_ptr<SharedOperands>& operands, const Size& size,
                         int threads, double seconds) {
  const MatrixInstruction& instruction = operands->instruction();
  Planned planned;
  Result& r = planned.result;
  r.kind = "gemm";
  r.name = name;
  r.arch = instruction.arch;
  r.instruction = std::string_view(instruction.name);
  r.engine = engine.name;
  r.threads = threads;
  r.unit = formats::is_integer(instruction.a) ? "Gop/s" : "GFLOP/s";
  r.m = size.m;
  r.n = size.n;
  r.k = size.k;
  planned.prepare = [&engine, operands, threads, seconds](Result& result) -> std::function<void()> {
    const emulator::MatrixProduct part =
        affordable_part(engine, operands->instruction(), operands->product(), threads, seconds);
    result.m = part.m;
    result.n = part.n;
    result.work = work_of({part.m, part.n, part.k});
    return [&engine, operands, part, threads] {
      emulator::multiply(engine, operands->instruction(), part, threads);
    };
  };
  return planned;
}

/// All at the middle size of the full set, which shows what data cost.
constexpr std::int64_t size_of_families = 1024;

std::vector<MatrixFamily> families(const BenchOptions& options, const Size& size) {
  std::vector<MatrixFamily> chosen;
  for (const MatrixFamily& family : data_families()) {
    const auto named = [&](const std::string& name) {
      return name == family.word || name == "all";
    };
    const bool all = options.full && size.k == size_of_families;
    const bool by_default = options.data.empty() && (all || family.word == "normal");
    if (by_default || std::any_of(options.data.begin(), options.data.end(), named))
      chosen.push_back(family);
  }
  return chosen;
}

/// The longest that one product should take: of slow engines a part shows the rate.
double longest_product(const BenchOptions& options, const Engine& engine) {
  if (is_slow(engine)) return 0.1;
  return options.full ? 4.0 : 0.25;
}

/// The first model that accepts the instruction: the engine that a user gets.
const Engine& preferred(const MatrixInstruction& instruction) {
  return emulator::require_engine("auto", instruction);
}

/// Eigen for an engine's instruction set and, beside engines that are not held to AVX2, as a user
/// compiles it.
std::vector<const ProductYardstick*> yardsticks_beside(const Engine& engine) {
  std::vector<const ProductYardstick*> eigen = {&eigen_beside(engine.name)};
  if (engine.name != "avx2" && native_eigen() != nullptr) eigen.push_back(native_eigen());
  return eigen;
}

/// Sets the yardsticks and, for the case's goals, the engine they are set for.
void judge(Planned& planned, const Case& of, const MatrixInstruction& instruction,
           const Engine& engine, const std::string& group) {
  const std::vector<const ProductYardstick*> eigen = yardsticks_beside(engine);
  const auto name = [&](const ProductYardstick* x) {
    return group + "/" + eigen_name(*x, is_double_precision(instruction));
  };
  planned.yardstick = name(eigen.front());
  if (eigen.size() > 1) planned.native_yardstick = name(eigen.back());
  planned.result.subject = of.name;
  if (planned.result.threads != 1) return;
  planned.peak = group + "/" + peak_name(*eigen.front(), is_double_precision(instruction));
  if (engine.name == "avx2") {
    planned.result.goal = of.avx2_goal;
    planned.result.moonshot = of.avx2_moonshot;
  } else if (engine.name == preferred(instruction).name) {
    planned.result.goal = of.goal;
    planned.result.moonshot = of.moonshot;
  }
}

/// Every engine, family of data and number of threads for one instruction and size, with Eigen.
Group product_group(const BenchOptions& options, const MeasuredInstruction& of,
                    const std::string& size_word, const Size& size) {
  const std::string name = "gemm/" + std::string(of.of.name) + "/" + size_word;
  Group group;
  std::vector<const ProductYardstick*> yardsticks;
  for (const MatrixFamily& data : families(options, size)) {
    const auto operands = std::make_shared<SharedOperands>(of.instruction, data, size);
    for (const Engine& engine : emulator::engines()) {
      if (!engine.accepts(of.instruction) || !is_asked_for(options, engine)) continue;
      if (is_slow(engine) && options.engines.empty() && data.word != "normal") continue;
      for (const int threads : thread_counts(options, engine, data.word)) {
        Planned planned =
            emulated_product(name + "/" + std::string(data.word) + "/" + std::string(engine.name) +
                                 "/" + std::to_string(threads),
                             engine, operands, size, threads, longest_product(options, engine));
        planned.result.data = data.word;
        judge(planned, of.of, of.instruction, engine, name);
        for (const ProductYardstick* const eigen : yardsticks_beside(engine)) {
          if (std::find(yardsticks.begin(), yardsticks.end(), eigen) != yardsticks.end()) continue;
          yardsticks.push_back(eigen);
          const bool is_double = is_double_precision(of.instruction);
          group.push_back(eigen_product(name, *eigen, is_double, size));
          if (eigen->multiply_adds_fp32 != nullptr)
            group.push_back(multiply_add_peak(name, *eigen, is_double));
        }
        group.push_back(std::move(planned));
      }
    }
  }
  return group;
}

// ---- Curves ----

struct Point {
  std::string axis;
  double x = 0;
  Size size;
  int threads = 1;
  MatrixFamily data{};
  int scale_binades = 0;
};

std::vector<Point> curve_points(bool full) {
  std::vector<Point> points;
  const std::int64_t side = full ? 1024 : 512;
  const Size middle = {side, side, side};
  const auto add = [&](std::string axis, double x, const Size& size) {
    points.push_back({std::move(axis), x, size});
  };
  for (std::int64_t s = 16; s <= (full ? 4096 : 1024); s *= 2) {
    const auto x = static_cast<double>(s);
    add("size", x, {s, s, s});
    add("m", x, {s, side, side});
    add("n", x, {side, s, side});
  }
  for (std::int64_t k = 16; k <= (full ? 65536 : 8192); k *= 2)
    add("k", static_cast<double>(k), {256, 256, k});
  for (int threads = 1; threads <= formats::thread_count(0); threads *= 2)
    points.push_back({"threads", static_cast<double>(threads), middle, threads});
  const auto add_data = [&](std::string axis, double x, const ElementDraw& elements) {
    points.push_back({std::move(axis), x, middle, 1, {.elements = elements}});
  };
  for (const int binades : {1, 2, 4, 6, 8, 12, 16, 20, 24, 28})
    add_data("binades", binades,
             {.numbers = ElementDraw::Numbers::spread, .low = 1 - binades, .high = 0});
  for (const int binades : {1, 2, 4, 8, 12, 16, 24, 32, 64, 128})
    points.push_back({"scales", static_cast<double>(binades), middle, 1, {}, binades});
  for (const double part : {0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0})
    add_data("specials", part, {.specials = share(part)});
  for (const double part : {0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0})
    add_data("zeros", part, {.zeros = share(part)});
  return points;
}

std::string number_text(double x) {
  std::string text = std::to_string(x);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Group curve_group(const BenchOptions& options, const MeasuredInstruction& of, const Point& point) {
  const std::string name =
      "curve/" + std::string(of.of.name) + "/" + point.axis + "/" + number_text(point.x);
  const Engine& engine = options.engines.empty()
                             ? preferred(of.instruction)
                             : emulator::require_engine(options.engines.front(), of.instruction);
  const auto operands =
      std::make_shared<SharedOperands>(of.instruction, point.data, point.size, point.scale_binades);
  Planned planned = emulated_product(name, engine, operands, point.size, point.threads,
                                     longest_product(options, engine));
  judge(planned, of.of, of.instruction, engine, name);
  Group group;
  for (const ProductYardstick* const eigen : yardsticks_beside(engine))
    group.push_back(eigen_product(name, *eigen, is_double_precision(of.instruction), point.size));
  group.push_back(std::move(planned));
  for (Planned& part : group) {
    part.result.kind = "curve";
    part.result.axis = point.axis;
    part.result.x = point.x;
    part.result.goal = part.result.moonshot = 0;
  }
  return group;
}

bool has_axis(const MatrixInstruction& instruction, const std::string& axis) {
  if (axis == "specials") return formats::has_nan(instruction.a);
  if (axis == "binades") return !formats::is_integer(instruction.a);
  if (axis == "scales") return instruction.scale.count != 0;
  return true;
}

}  // namespace

void plan_products(const BenchOptions& options, std::vector<Group>& groups) {
  std::vector<std::string> sizes = options.sizes;
  if (sizes.empty()) sizes = {"512"};
  if (options.sizes.empty() && options.full) sizes = {"512", "1024", "2048"};
  for (const MeasuredInstruction& of : chosen_instructions(options)) {
    for (const std::string& size : sizes) {
      const auto [m, n, k] = product_size(size).value();
      emulator::require_product(of.instruction, k, "--size");
      groups.push_back(product_group(options, of, size, {m, n, k}));
    }
  }
}

void plan_curves(const BenchOptions& options, std::vector<Group>& groups) {
  for (const MeasuredInstruction& of : chosen_instructions(options)) {
    const bool by_default = of.of.name == "hopper_f16" || of.of.name == "hopper_fp8" ||
                            of.of.name == "ampere_f16" || of.of.name == "nvfp4" ||
                            of.of.name == "int8" || of.of.name == "fp64" || of.of.name == "row";
    const bool named = std::any_of(
        options.only.begin(), options.only.end(),
        [&](const std::string& word) { return word.find(of.of.name) != std::string::npos; });
    if (!by_default && !options.full && !named) continue;
    for (const Point& point : curve_points(options.full)) {
      if (!has_axis(of.instruction, point.axis)) continue;
      emulator::require_product(of.instruction, point.size.k, "--curves");
      groups.push_back(curve_group(options, of, point));
    }
  }
}

}  // namespace guardbit::tools

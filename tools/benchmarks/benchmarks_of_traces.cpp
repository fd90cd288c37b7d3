// The pass of `guardbit trace` over numbers in memory, beside a plain read of the same memory.

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "experiments/traces/magnitude_counts.hpp"
#include "formats/format_catalogue.hpp"
#include "tools/benchmarks/benchmarks.hpp"
#include "tools/benchmarks/yardsticks.hpp"

namespace guardbit::tools {

namespace {

using experiments::Sums;

/// FP32 numbers as layers' gradients are: normally distributed, the scale another one every 2^16
/// elements, an eighth of them zero.
std::shared_ptr<const formats::Tensor> gradients(std::size_t count) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(count * sizeof(float));
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> pool(std::size_t{1} << 16);
  for (float& x : pool) x = random() % 8 == 0 ? 0 : normal(random);
  for (std::size_t i = 0; i < count; ++i) {
    const int layer = static_cast<int>(i >> 16) % 24;
    const float x = std::ldexp(pool[random() % pool.size()], -layer);
    std::memcpy(bytes->data() + i * sizeof x, &x, sizeof x);
  }
  return std::make_shared<const formats::Tensor>(formats::Tensor{"gradients",
                                                                 formats::fp32,
                                                                 formats::Packing::container,
                                                                 {static_cast<std::int64_t>(count)},
                                                                 *bytes,
                                                                 bytes});
}

/// Made when the first benchmark needs them, and gone with the last one.
class Operand {
 public:
  explicit Operand(std::size_t count) : count_(count) {}
  std::size_t bytes() const { return count_ * sizeof(float); }
  std::shared_ptr<const formats::Tensor> get() {
    std::shared_ptr<const formats::Tensor> tensor = made_.lock();
    if (!tensor) made_ = tensor = gradients(count_);
    return tensor;
  }

 private:
  std::size_t count_;
  std::weak_ptr<const formats::Tensor> made_;
};

Planned plain_read(const std::shared_ptr<Operand>& operand) {
  Planned planned;
  planned.result.kind = "trace";
  planned.result.subject = "read";
  planned.result.name = "trace/read";
  planned.result.unit = "GB/s";
  planned.result.work = 1e-9 * static_cast<double>(operand->bytes());
  planned.prepare = [operand](Result&) -> std::function<void()> {
    return [tensor = operand->get(), sum = std::make_shared<std::uint64_t>(0)] {
      *sum += read_all(tensor->bytes);
    };
  };
  return planned;
}

Planned pass(const std::string& subject, const std::shared_ptr<Operand>& operand,
             const std::vector<experiments::Storing>& storings, Sums sums, int threads) {
  Planned planned;
  Result& r = planned.result;
  r.kind = "trace";
  r.subject = subject;
  r.name = "trace/" + subject + "/" + std::to_string(threads);
  r.threads = threads;
  r.unit = "GB/s";
  r.work = 1e-9 * static_cast<double>(operand->bytes());
  planned.yardstick = "trace/read";
  planned.prepare = [=](Result&) -> std::function<void()> {
    const auto cells = std::make_shared<experiments::MagnitudeCells>(formats::fp32, storings);
    return [=, tensor = operand->get()] {
      experiments::count_magnitudes(*cells, *tensor, threads, {}, sums);
    };
  };
  return planned;
}

}  // namespace

void plan_traces(const BenchOptions& options, std::vector<Group>& groups) {
  const auto operand = std::make_shared<Operand>(std::size_t{1} << (options.full ? 28 : 24));
  std::vector<experiments::Storing> storings;
  for (const formats::Format& to : {formats::fp16, formats::bf16, formats::e4m3, formats::e5m2}) {
    for (int scale = 0; scale <= 32; ++scale) storings.push_back({to, scale});
  }
  Group group = {plain_read(operand)};
  for (const int threads : options.threads.empty() ? std::vector{1} : options.threads) {
    group.push_back(pass("histogram", operand, {}, Sums::none, threads));
    if (threads == 1) {
      group.back().result.goal = 0.5;
      group.back().result.moonshot = 0.8;
    }
    group.push_back(pass("4_formats_33_scales", operand, storings, Sums::exact, threads));
  }
  groups.push_back(std::move(group));
}

}  // namespace guardbit::tools

// Outputs per second of every engine on recorded-size batches: `guardbit_benchmark
// --benchmark_filter=f16`.

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/catalogue.hpp"
#include "emulator/engine.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "formats/storage.hpp"

namespace {

using namespace guardbit;

/// Codes of numbers spread over a few binades around 1, as training data are; integers are uniform.
std::vector<std::byte> random_codes(const formats::Format& format, std::int64_t count,
                                    std::uint64_t seed) {
  std::vector<std::uint64_t> codes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t random = formats::random_bits(seed, i).bits;
    const auto exponent = static_cast<int>(random % 6) - 12;
    const formats::Value value{formats::Kind::finite, (random >> 8 & 1) != 0, exponent,
                               (random >> 16 & 1023) + 1};
    codes[i] = formats::is_integer(format) ? random & formats::code_mask(format)
                                           : formats::encode(format, value);
  }
  std::vector<std::byte> bytes(
      formats::byte_size(format, formats::Packing::container, codes.size()).value());
  formats::pack_codes(codes, format, formats::Packing::container, bytes);
  return bytes;
}

struct Case {
  std::string_view arch;
  std::string_view name;
};

constexpr std::array cases = {
    Case{"sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    Case{"sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
    Case{"sm_90", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"},
    Case{"sm_90", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
    Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
    Case{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"},
    Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
    Case{"sm_90", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"},
    Case{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    Case{"sm_120",
         "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1."
         "f32.ue4m3"},
};

/// One batch of a row with its own memory.
struct Workload {
  emulator::MatrixInstruction row;
  std::vector<std::byte> a, b, c, d, a_scale, b_scale;
  emulator::MatrixBatch batch;

  Workload(const Case& of, std::int64_t executions)
      : row(emulator::require_instruction(of.arch, of.name, "benchmark")) {
    const emulator::Shape& s = row.shape;
    a = random_codes(row.a, executions * s.m * s.k, 1);
    b = random_codes(row.b, executions * s.k * s.n, 2);
    c = random_codes(row.c, executions * s.m * s.n, 3);
    d = c;
    batch.count = executions;
    batch.shape = s;
    batch.a = view(row.a, a);
    batch.b = view(row.b, b);
    batch.c = view(row.c, c);
    batch.d = emulator::codes_of(row.d, d.data());
    if (row.scale.count == 0) return;
    a_scale = random_codes(row.scale.format, executions * s.m * row.scale.count, 4);
    b_scale = random_codes(row.scale.format, executions * s.n * row.scale.count, 5);
    batch.a_scale = view(row.scale.format, a_scale);
    batch.b_scale = view(row.scale.format, b_scale);
  }

  static emulator::ConstCodes view(const formats::Format& f, const std::vector<std::byte>& bytes) {
    return emulator::codes_of(f, bytes.data());
  }
};

void run_engine(benchmark::State& state, const Case& of, const emulator::Engine& engine,
                int threads) {
  const bool slow = engine.name == "reference";
  Workload work(of, slow ? 256 : 8192);
  for (auto _ : state) {
    emulator::run_batch(engine, work.row, work.batch, threads);
    benchmark::ClobberMemory();
  }
  const double outputs =
      static_cast<double>(work.batch.count) * work.row.shape.m * work.row.shape.n;
  state.counters["outputs/s"] = benchmark::Counter(
      outputs * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace

int main(int count, char** words) {
  for (const Case& of : cases) {
    const auto row = emulator::require_instruction(of.arch, of.name, "benchmark");
    for (const emulator::Engine& engine : emulator::engines()) {
      if (!engine.accepts(row)) continue;
      for (const int threads : {1, 0}) {
        const std::string name = std::string(of.arch) + "/" + std::string(of.name) + "/" +
                                 std::string(engine.name) +
                                 (threads == 1 ? "/one_thread" : "/all_threads");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [of, engine, threads](benchmark::State& state) {
                                       run_engine(state, of, engine, threads);
                                     })
            ->UseRealTime()
            ->MinTime(0.3);
      }
    }
  }
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

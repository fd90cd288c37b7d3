#include <algorithm>
#include <cstring>
#include <string>

#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "gpu/cuda/screening/product_screen.hpp"
#include "gpu/cuda/tensor_core/note_entry.cuh"

namespace guardbit::gpu {

namespace {

constexpr const char* where = "gpu screen";
constexpr int threads = 256;

/// Each thread compares 16 bytes of a row; expected rows repeat.
template <class Word>
__global__ void __launch_bounds__(threads)
    compare_product(const Word* got, const Word* expected, int rows, int columns, ProductLog* log) {
  constexpr int each = 16 / sizeof(Word);
  const int column =
      (static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x)) * each;
  if (column >= columns) return;
  for (int row = static_cast<int>(blockIdx.y); row < rows; row += static_cast<int>(gridDim.y)) {
    const std::size_t at = static_cast<std::size_t>(row) * columns + column;
    const std::size_t wanted = static_cast<std::size_t>(row % distinct_rows) * distinct_columns +
                               column % distinct_columns;
    const uint4 x = __ldcs(reinterpret_cast<const uint4*>(got + at));
    const uint4 y = *reinterpret_cast<const uint4*>(expected + wanted);
    if (((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) == 0) continue;
    for (int i = 0; i < each; ++i) {
      if (got[at + i] == expected[wanted + i]) continue;
      atomicAdd(&log->mismatches, 1ULL);
      note_entry(log, {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column + i),
                       expected[wanted + i], got[at + i]});
    }
  }
}

int width_of(const formats::Format& format) { return formats::container_bits(format) / 8; }

std::size_t bytes_of(const formats::Format& format, int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
         static_cast<std::size_t>(width_of(format));
}

}  // namespace

ProductScreen::ProductScreen(const ProductCase& product)
    : case_(product),
      cublas_(product.instruction),
      a_(bytes_of(product.instruction.a, product.m, product.k), where),
      b_(bytes_of(product.instruction.b, product.k, product.n), where),
      d_(bytes_of(product.instruction.d, product.m, product.n), where),
      expected_(product.expected, where),
      log_(sizeof(ProductLog), where) {
  cublas_.accumulate_wide();
  for (int row = 0; row < product.m; row += distinct_rows)
    check_cuda(cudaMemcpy(a_.as<std::byte>() + bytes_of(product.instruction.a, row, product.k),
                          product.a.data(), product.a.size(), cudaMemcpyHostToDevice),
               where);
  const std::size_t line = bytes_of(product.instruction.b, 1, distinct_columns),
                    pitch = bytes_of(product.instruction.b, 1, product.n);
  for (std::size_t column = 0; column < pitch; column += line)
    check_cuda(cudaMemcpy2D(b_.as<std::byte>() + column, pitch, product.b.data(), line, line,
                            static_cast<std::size_t>(product.k), cudaMemcpyHostToDevice),
               where);
  matrices_ = {a_.as<const std::byte>(),
               b_.as<const std::byte>(),
               nullptr,
               d_.as<std::byte>(),
               product.m,
               product.n,
               product.k};
  log_.clear();
  multiply();
  compare();
  const ProductLog log = read_log();
  const auto results = static_cast<std::uint64_t>(product.m) * static_cast<unsigned>(product.n);
  follows_another_plan_ = log.mismatches > results / 2;
  constexpr int timed = 4;
  DeviceTimer timer;
  timer.start();
  for (int i = 0; i < timed; ++i) multiply();
  seconds_alone_ = timer.stop() / timed;
  seconds_each_ = seconds_alone_;
  log_.clear();
}

void ProductScreen::multiply() const { cublas_.multiply(matrices_); }

void ProductScreen::compare() const {
  const auto launch = [&](auto word) {
    using Word = decltype(word);
    constexpr int each = 16 / sizeof(Word);
    const dim3 grid(static_cast<unsigned>((case_.n / each + threads - 1) / threads),
                    static_cast<unsigned>(std::min(case_.m, 1024)));
    compare_product<Word><<<grid, threads>>>(d_.as<const Word>(), expected_.as<const Word>(),
                                             case_.m, case_.n, log_.as<ProductLog>());
  };
  switch (width_of(case_.instruction.d)) {
    case 2: launch(std::uint16_t{}); break;
    case 4: launch(std::uint32_t{}); break;
    default: launch(std::uint64_t{}); break;
  }
  check_cuda(cudaGetLastError(), where);
}

ProductLog ProductScreen::read_log() const {
  ProductLog log;
  log_.read(std::as_writable_bytes(std::span(&log, 1)));
  return log;
}

std::uint64_t ProductScreen::outputs() const {
  return count_ * static_cast<std::uint64_t>(case_.m) * static_cast<unsigned>(case_.n);
}

void ProductScreen::run(double seconds) {
  if (follows_another_plan_) return;
  const int products = std::max(1, static_cast<int>(seconds / seconds_each_));
  DeviceTimer timer;
  timer.start();
  for (int i = 0; i < products; ++i) {
    multiply();
    compare();
  }
  const double passed = timer.stop();
  seconds_ += passed;
  seconds_each_ = passed / products;
  count_ += static_cast<unsigned>(products);
  const ProductLog log = read_log();
  mismatches_ += log.mismatches;
  if (log.mismatches == 0) return;
  if (first_wrong_.mismatches == 0) first_wrong_ = log;
  log_.clear();
}

std::vector<ScreenFault> ProductScreen::faults(std::size_t most) {
  std::vector<ScreenFault> found;
  const ProductLog seen = first_wrong_;
  first_wrong_ = {};
  if (seen.mismatches == 0) return found;
  constexpr int repetitions = 8;
  const std::size_t listed = std::min<std::size_t>(most, seen.listed());
  const auto width = static_cast<std::size_t>(width_of(case_.instruction.d));
  std::vector<std::uint64_t> wrong_again(listed);
  for (int i = 0; i < repetitions; ++i) {
    multiply();
    for (std::size_t at = 0; at < listed; ++at) {
      const WrongResult& x = seen.entries[at];
      std::uint64_t got = 0;
      check_cuda(cudaMemcpy(&got,
                            d_.as<const std::byte>() +
                                (static_cast<std::size_t>(x.row) * case_.n + x.column) * width,
                            width, cudaMemcpyDeviceToHost),
                 where);
      wrong_again[at] += got != x.expected ? 1 : 0;
    }
  }
  const formats::Format& format = case_.instruction.d;
  for (std::size_t at = 0; at < listed; ++at) {
    const WrongResult& x = seen.entries[at];
    ScreenFault fault;
    fault.test = "product";
    fault.instruction = case_.name + " by " + CublasProduct::library_name();
    fault.operands =
        "row " + std::to_string(x.row) + " of A, column " + std::to_string(x.column) + " of B";
    fault.expected = formats::hex_text(format, x.expected);
    fault.got = formats::hex_text(format, x.got);
    for (int bit = 0; bit < 64; ++bit)
      if (((x.expected ^ x.got) >> bit & 1) != 0) fault.bits.push_back(bit);
    fault.repeated = repetitions;
    fault.wrong_again = wrong_again[at];
    fault.recurrence =
        wrong_again[at] == repetitions ? Recurrence::permanent : Recurrence::intermittent;
    found.push_back(fault);
  }
  return found;
}

}  // namespace guardbit::gpu

// Conversions of arrays far larger than the caches, and what memory itself does.

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/format_catalogue.hpp"
#include "tools/benchmarks/benchmarks.hpp"
#include "tools/benchmarks/peers.hpp"
#include "tools/benchmarks/yardsticks.hpp"

namespace guardbit::tools {

namespace {

using formats::Format;
using Bytes = std::vector<std::byte>;

std::size_t array_bytes(const BenchOptions& options) {
  return std::size_t{1} << (options.full ? 28 : 26);
}

/// Seconds times 10^9 bytes a second, both read and written bytes counted.
double gigabytes(std::size_t read, std::size_t written) {
  return 1e-9 * static_cast<double>(read + written);
}

Planned memory_copy(const std::string& name, std::size_t size) {
  Planned planned;
  planned.result.kind = "memory";
  planned.result.subject = "memcpy";
  planned.result.name = name + "/memcpy";
  planned.result.unit = "GB/s";
  planned.result.work = gigabytes(size, size);
  planned.prepare = [size](Result&) -> std::function<void()> {
    return [from = std::make_shared<Bytes>(size, std::byte{1}),
            to = std::make_shared<Bytes>(size, std::byte{2})] {
      std::memcpy(to->data(), from->data(), from->size());
    };
  };
  return planned;
}

Planned memory_read(const std::string& name, std::size_t size) {
  Planned planned;
  planned.result.kind = "memory";
  planned.result.subject = "read";
  planned.result.name = name + "/read";
  planned.result.unit = "GB/s";
  planned.result.work = gigabytes(size, 0);
  planned.prepare = [size](Result&) -> std::function<void()> {
    return [from = std::make_shared<Bytes>(size, std::byte{1}),
            sum = std::make_shared<std::uint64_t>(0)] { *sum += read_all(*from); };
  };
  return planned;
}

struct Pair {
  std::string_view from, to;
};

constexpr std::array pairs = {
    Pair{"fp32", "bf16"}, Pair{"fp32", "fp16"}, Pair{"fp32", "tf32"}, Pair{"fp32", "e4m3"},
    Pair{"fp32", "e5m2"}, Pair{"fp32", "e2m3"}, Pair{"fp32", "e3m2"}, Pair{"fp32", "e2m1"},
    Pair{"fp32", "int8"}, Pair{"fp32", "int4"}, Pair{"bf16", "e4m3"}, Pair{"fp16", "e4m3"},
    Pair{"e4m3", "fp32"}, Pair{"e5m2", "fp16"}, Pair{"bf16", "fp32"}, Pair{"fp16", "fp32"},
};

/// Normal numbers in a format, one in each container.
Bytes normal_codes(const Format& f, std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution normal;
  std::vector<std::uint64_t> pool(1 << 16);
  for (std::uint64_t& code : pool)
    code = formats::encode(
        f, formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(normal(random))));
  const std::size_t width = static_cast<std::size_t>(formats::container_bits(f)) / 8;
  Bytes bytes(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t code = pool[random() % pool.size()] << formats::container_shift(f);
    std::memcpy(bytes.data() + i * width, &code, width);
  }
  return bytes;
}

Planned conversion(const std::string& group, const Pair& pair, std::size_t count, int threads) {
  Planned planned;
  Result& r = planned.result;
  r.kind = "convert";
  r.subject = std::string(pair.from) + "_to_" + std::string(pair.to);
  r.name = group + "/" + std::to_string(threads);
  r.threads = threads;
  r.unit = "GB/s";
  planned.yardstick = group + "/memcpy";
  const Format from = *formats::find_format(pair.from), to = *formats::find_format(pair.to);
  const auto bytes = [count](const Format& f) {
    return count * static_cast<std::size_t>(formats::container_bits(f)) / 8;
  };
  r.work = gigabytes(bytes(from), bytes(to));
  planned.prepare = [=](Result&) -> std::function<void()> {
    const auto input = std::make_shared<Bytes>(normal_codes(from, count));
    const auto output = std::make_shared<Bytes>(bytes(to));
    formats::ConversionOptions options;
    options.overflow = formats::overflow_saturate;
    options.threads = threads;
    return [=] {
      formats::convert_array(from, formats::Packing::container, *input, to,
                             formats::Packing::container, *output, count, options);
    };
  };
  return planned;
}

/// What another library makes of the same numbers. Its rate is counted as if it wrote codes, so
/// that equal rates are equally many elements.
Planned peer_conversion(const std::string& group, const Pair& pair, const ConversionPeer& peer,
                        std::size_t count) {
  Planned planned;
  Result& r = planned.result;
  r.kind = "peer";
  r.subject = std::string(pair.from) + "_to_" + std::string(pair.to);
  r.engine = peer.library;
  r.name = group + "/" + r.engine;
  r.unit = "GB/s";
  planned.yardstick = group + "/memcpy";
  const std::size_t width =
      static_cast<std::size_t>(formats::container_bits(*formats::find_format(pair.to))) / 8;
  r.work = gigabytes(count * sizeof(float), count * width);
  planned.prepare = [=](Result&) -> std::function<void()> {
    const auto input = std::make_shared<Bytes>(normal_codes(formats::fp32, count));
    const auto output = std::make_shared<Bytes>(count * peer.written);
    return
        [=] { peer.convert(reinterpret_cast<const float*>(input->data()), output->data(), count); };
  };
  return planned;
}

constexpr std::array block_formats = {"mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"};

/// FP32 rows of 4096 to blocks, scales chosen on the way.
Planned quantisation(const std::string& group, std::string_view block, formats::Rounding rounding,
                     std::size_t count, int threads) {
  const formats::BlockFormat format = *formats::find_block_format(block);
  constexpr std::int64_t length = 4096;
  const auto rows = static_cast<std::int64_t>(count) / length;
  const auto elements = static_cast<std::size_t>(formats::element_bytes(format, length) * rows);
  const auto scales = static_cast<std::size_t>(formats::scale_bytes(format, length) * rows);
  Planned planned;
  Result& r = planned.result;
  r.kind = "convert";
  r.subject = group.substr(group.find('/') + 1);
  r.name = group + "/" + std::to_string(threads);
  r.threads = threads;
  r.unit = "GB/s";
  r.work = gigabytes(count * sizeof(float), elements + scales);
  planned.yardstick = group + "/memcpy";
  planned.prepare = [=](Result&) -> std::function<void()> {
    const auto input = std::make_shared<Bytes>(normal_codes(formats::fp32, count));
    const auto codes = std::make_shared<Bytes>(elements);
    const auto factors = std::make_shared<Bytes>(scales);
    formats::BlockQuantisationOptions options;
    options.rounding = rounding;
    options.threads = threads;
    if (format.scale != formats::e8m0) options.rule = formats::scale_nearest;
    const auto quantise = std::make_shared<formats::BlockQuantisation>(format, options);
    return [=] { (*quantise)(*input, rows, length, *codes, *factors); };
  };
  return planned;
}

}  // namespace

void plan_conversions(const BenchOptions& options, std::vector<Group>& groups) {
  const std::size_t size = array_bytes(options);
  for (const Pair& pair : pairs) {
    const std::string name = "convert/" + std::string(pair.from) + "_to_" + std::string(pair.to);
    Group group = {memory_copy(name, size)};
    const std::size_t width =
        static_cast<std::size_t>(formats::container_bits(*formats::find_format(pair.from))) / 8;
    for (const int threads : options.threads.empty() ? std::vector{1} : options.threads)
      group.push_back(conversion(name, pair, size / width, threads));
    if (pair.from == "fp32") {
      for (const ConversionPeer& peer : conversion_peers(pair.to))
        group.push_back(peer_conversion(name, pair, peer, size / width));
    }
    groups.push_back(std::move(group));
  }
  for (const char* const block : block_formats) {
    for (const formats::Rounding rounding :
         {formats::Rounding::nearest_even, formats::Rounding::stochastic}) {
      const bool stochastic = rounding == formats::Rounding::stochastic;
      const std::string name =
          std::string("convert/fp32_to_") + block + (stochastic ? "_stochastic" : "");
      Group group = {memory_copy(name, size)};
      for (const int threads : options.threads.empty() ? std::vector{1} : options.threads)
        group.push_back(quantisation(name, block, rounding, size / sizeof(float), threads));
      groups.push_back(std::move(group));
    }
  }
}

void plan_memory(const BenchOptions& options, std::vector<Group>& groups) {
  const std::size_t size = array_bytes(options);
  groups.push_back({memory_copy("memory", size), memory_read("memory", size)});
}

}  // namespace guardbit::tools

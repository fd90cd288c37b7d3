#include "emulator/gemm/sums.hpp"

#include <algorithm>
#include <bit>

#include "emulator/gemm/scalar.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

/// Fewer numbers than this are not worth a conversion's preparation.
constexpr std::size_t few = 256;

/// How many parts there are, the last ones without an element of K, too.
std::size_t all_parts(const Partition& partition, const std::vector<Sums>& parts) {
  return std::max<std::size_t>(parts.size(), static_cast<std::size_t>(partition.parts));
}

/// Rounds sums to the format that they are stored in.
void store(const Format& format, Sums& sums) {
  if (!sums.are_singles()) {
    for (double& x : sums.doubles()) x = scalar::rounded(format, x);
    return;
  }
  // Blocks that stay in the first-level cache.
  constexpr std::size_t block = 4096;
  constexpr auto packing = formats::Packing::container;
  const std::span<float> all = sums.singles();
  if (all.size() < few) {
    for (float& x : all) x = static_cast<float>(scalar::rounded(format, x));
    return;
  }
  formats::ConversionOptions options;
  options.overflow = scalar::overflow_of(format);
  options.threads = 1;
  const formats::ArrayConversion narrow(formats::fp32, packing, format, packing, options);
  const formats::ArrayConversion widen(format, packing, formats::fp32, packing, options);
  std::vector<std::byte> codes(block * static_cast<std::size_t>(formats::container_bits(format)) /
                               8);
  for (std::size_t at = 0; at < all.size(); at += block) {
    const std::span<float> some = all.subspan(at, std::min(block, all.size() - at));
    narrow(std::as_bytes(some), codes, some.size());
    widen(codes, std::as_writable_bytes(some), some.size());
  }
}

/// Adds parts to parts in FP32.
void add_singles(Sums& to, const Sums& other) {
  const std::span<float> x = to.singles();
  const std::span<const float> y = other.singles();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

std::span<double> Sums::doubles() {
  if (!singles_.empty()) {
    doubles_.assign(singles_.begin(), singles_.end());
    singles_ = {};
  }
  return doubles_;
}

bool fits_singles(const Format& format) {
  return !formats::is_integer(format) && format.fraction_bits <= formats::fp32.fraction_bits &&
         format.exponent_bits <= formats::fp32.exponent_bits;
}

Sums sums_of(const CodeMatrix& matrix) {
  const auto count = static_cast<std::size_t>(matrix.size());
  if (!fits_singles(matrix.format)) {
    std::vector<double> doubles(count);
    for (std::size_t i = 0; i < count; ++i)
      doubles[i] = scalar::decoded(matrix.format, matrix[static_cast<std::int64_t>(i)]);
    return doubles;
  }
  std::vector<float> singles(count);
  if (count < few) {
    for (std::size_t i = 0; i < count; ++i)
      singles[i] =
          static_cast<float>(scalar::decoded(matrix.format, matrix[static_cast<std::int64_t>(i)]));
    return singles;
  }
  constexpr auto packing = formats::Packing::container;
  formats::convert_array(matrix.format, packing, matrix.contiguous().bytes, formats::fp32, packing,
                         std::as_writable_bytes(std::span(singles)), count);
  return singles;
}

Sums add_up(const Partition& partition, const Format& compute, std::vector<Sums> parts) {
  if (parts.size() <= 1) return parts.empty() ? Sums{} : std::move(parts.front());
  if (partition.sums != formats::fp32 && partition.sums != compute)
    for (Sums& part : parts) store(partition.sums, part);
  const auto is_single = [](const Sums& part) { return part.are_singles(); };
  const bool native =
      compute == formats::fp32 && std::all_of(parts.begin(), parts.end(), is_single);
  const auto add = [&](Sums& to, Sums& other) {
    if (native) return add_singles(to, other);
    const std::span<double> x = to.doubles(), y = other.doubles();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = scalar::add(compute, x[i], y[i]);
  };
  switch (partition.order) {
    case SumOrder::descending: std::reverse(parts.begin(), parts.end()); [[fallthrough]];
    case SumOrder::ascending:
      for (std::size_t p = 1; p < parts.size(); ++p) add(parts[0], parts[p]);
      break;
    case SumOrder::adjacent_last: std::reverse(parts.begin(), parts.end()); [[fallthrough]];
    case SumOrder::adjacent:
      for (std::size_t step = 1; step < parts.size(); step *= 2)
        for (std::size_t p = 0; p + step < parts.size(); p += 2 * step)
          add(parts[p], parts[p + step]);
      break;
    case SumOrder::halves: {
      // `count` parts, so many apart; the last ones may be missing.
      const auto add_halves = [&](std::size_t first, std::size_t count, std::size_t apart) {
        while (count > 1) {
          const std::size_t half = (count + 1) / 2;
          for (std::size_t p = 0; p + half < count; ++p)
            if (const std::size_t to = first + p * apart; to + half * apart < parts.size())
              add(parts[to], parts[to + half * apart]);
          count = half;
        }
      };
      const std::size_t all = all_parts(partition, parts);
      const std::size_t group = partition.group > 0 ? static_cast<std::size_t>(partition.group) : 1;
      for (std::size_t first = 0; first < parts.size() && group > 1; first += group)
        add_halves(first, std::min(group, all - first), 1);
      add_halves(0, (all + group - 1) / group, group);
      break;
    }
    case SumOrder::shuffles:
      for (std::size_t apart = std::bit_ceil(all_parts(partition, parts)) / 2; apart > 0;
           apart /= 2)
        for (std::size_t p = 0; p < apart && p + apart < parts.size(); ++p)
          add(parts[p], parts[p + apart]);
      break;
    case SumOrder::by_four:
      for (std::size_t p = 128; p < parts.size(); ++p) add(parts[p % 128], parts[p]);
      for (const std::size_t apart : {std::size_t{64}, std::size_t{32}})
        for (std::size_t p = 0; p < apart && p + apart < parts.size(); ++p)
          add(parts[p], parts[p + apart]);
      parts.resize(std::min<std::size_t>(parts.size(), 32));
      for (std::size_t p = 4; p < parts.size(); ++p) add(parts[p % 4], parts[p]);
      for (std::size_t p = 1; p < std::min<std::size_t>(4, parts.size()); ++p)
        add(parts[0], parts[p]);
      break;
    case SumOrder::last_first:
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) add(parts.back(), parts[p]);
      return std::move(parts.back());
    case SumOrder::buffers: {
      const std::size_t buffers = parts.size() / 2 + parts.size() % 2;
      for (std::size_t p = buffers; p + 1 < parts.size(); ++p) add(parts[p % buffers], parts[p]);
      std::rotate(parts.begin(), parts.end() - 1, parts.end());
      for (std::size_t p = 1; p <= buffers; ++p)
        if (p < parts.size()) add(parts[0], parts[p]);
      break;
    }
    case SumOrder::in_place: break;  // in the epilogue
  }
  return std::move(parts.front());
}

}  // namespace guardbit::emulator

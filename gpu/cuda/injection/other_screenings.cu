#include <algorithm>

#include "formats/format_catalogue.hpp"
#include "gpu/cuda/injection/other_screenings.hpp"

namespace guardbit::gpu {

namespace {

constexpr const char* where = "injection";

/// Words of two runs that differ, and by how much.
struct Differences {
  unsigned words, beyond_a_thousandth;
};

__global__ void count_differences(const unsigned* x, const unsigned* y, std::size_t words,
                                  Differences* counts) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += std::size_t{gridDim.x} * blockDim.x) {
    if (x[i] == y[i]) continue;
    atomicAdd(&counts->words, 1U);
    if (fabsf(__uint_as_float(x[i]) - __uint_as_float(y[i])) > 0.001F)
      atomicAdd(&counts->beyond_a_thousandth, 1U);
  }
}

/// Copies of the inputs on each multiprocessor: every processing block gets some.
int copies_on_each(const PackedCase& x) { return x.instruction->unit == Unit::wgmma ? 8 : 128; }

/// The bytes of operands and results that the largest case needs.
std::array<std::size_t, 5> sizes_of(const ScreenSet& set, int processors) {
  std::array<std::size_t, 5> most{};
  for (const PackedCase& x : set.cases) {
    const auto copies = static_cast<std::size_t>(processors) * copies_on_each(x);
    const std::array<int, 5> each = {x.a_bytes, x.b_bytes, x.c_bytes, x.e_bytes, x.d_bytes};
    for (std::size_t i = 0; i < each.size(); ++i)
      most[i] = std::max(most[i], copies * static_cast<std::size_t>(each[i]));
  }
  return most;
}

}  // namespace

UncheckedRuns::UncheckedRuns(const ScreenSet& set, int processors)
    : set_(set),
      processors_(processors),
      sizes_(sizes_of(set, processors)),
      operands_{DeviceBuffer(sizes_[a], where), DeviceBuffer(sizes_[b], where),
                DeviceBuffer(sizes_[c], where), DeviceBuffer(sizes_[e], where)},
      first_(sizes_[arrays], where),
      again_(sizes_[arrays], where),
      healthy_(sizes_[arrays], where),
      counts_(2 * sizeof(Differences), where) {}

int UncheckedRuns::copies_of(const PackedCase& x) const { return processors_ * copies_on_each(x); }

/// The images of an operand again and again.
void UncheckedRuns::copy(Array array, std::size_t begin, int bytes, const PackedCase& x) const {
  auto* const to = operands_[array].as<std::byte>();
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t total = size * static_cast<std::size_t>(copies_of(x));
  std::size_t done = std::min(total, size * static_cast<std::size_t>(x.images));
  check_cuda(cudaMemcpy(to, set_.bytes.data() + begin, done, cudaMemcpyHostToDevice), where);
  while (done != 0 && done < total) {
    const std::size_t more = std::min(done, total - done);
    check_cuda(cudaMemcpyAsync(to + done, to, more, cudaMemcpyDeviceToDevice), where);
    done += more;
  }
}

void UncheckedRuns::run(const PackedCase& x, const Fault* fault,
                        const DeviceBuffer& results) const {
  kernel_of (*x.instruction)({.a = operands_[a].as(),
                              .b = operands_[b].as(),
                              .c = operands_[c].as(),
                              .e = x.instruction->sparse ? operands_[e].as() : nullptr,
                              .d = results.as(),
                              .images = copies_of(x),
                              .a_bytes = x.a_bytes,
                              .b_bytes = x.b_bytes,
                              .c_bytes = x.c_bytes,
                              .d_bytes = x.d_bytes,
                              .fault = fault});
  check_cuda(cudaGetLastError(), where);
}

OtherScreenings UncheckedRuns::compare(std::size_t index, const Fault* fault,
                                       const Fault* none) const {
  const PackedCase& x = set_.cases[index];
  copy(a, x.a, x.a_bytes, x);
  copy(b, x.b, x.b_bytes, x);
  copy(c, x.c, x.c_bytes, x);
  if (x.instruction->sparse) copy(e, x.e, x.e_bytes, x);
  run(x, fault, first_);
  run(x, fault, again_);
  run(x, none, healthy_);
  counts_.clear();
  const std::size_t words =
      static_cast<std::size_t>(x.d_bytes) * static_cast<std::size_t>(copies_of(x)) / 4;
  const auto count = [&](const DeviceBuffer& other, int place) {
    count_differences<<<1024, 256>>>(first_.as<const unsigned>(), other.as<const unsigned>(), words,
                                     counts_.as<Differences>() + place);
    check_cuda(cudaGetLastError(), where);
  };
  count(again_, 0);
  count(healthy_, 1);
  std::array<Differences, 2> counts{};
  counts_.read(std::as_writable_bytes(std::span(counts)));
  return {
      .by_first = counts[0].words != 0,
      .by_first_within = x.instruction->d == formats::fp32 && counts[0].beyond_a_thousandth != 0,
      .by_vote = counts[1].words != 0};
}

}  // namespace guardbit::gpu

#include "gpu/conversions/conversion_digest.hpp"

#include <atomic>
#include <mutex>
#include <numeric>

#include "formats/support/parallel.hpp"

namespace guardbit::gpu {

namespace {

/// Inputs between two calls of `progress`.
constexpr std::uint64_t inputs_per_part = std::uint64_t{1} << 20;

/// Inputs first, first + digest_slices, … before `end`.
std::uint64_t slice_digest(const ConversionRule& rule, std::uint64_t first, std::uint64_t end) {
  std::uint64_t digest = 0;
  for (std::uint64_t index = first; index < end; index += digest_slices)
    digest += digest_share(index, convert_by_model(rule, conversion_input(rule, index)));
  return digest;
}

}  // namespace

std::uint64_t total_digest(const std::vector<std::uint64_t>& slices) {
  return std::accumulate(slices.begin(), slices.end(), std::uint64_t{0});
}

std::vector<std::uint64_t> model_digests(const ConversionRule& rule,
                                         const std::vector<std::uint32_t>& slices, int threads,
                                         const std::function<void(std::uint64_t)>& progress) {
  const std::uint64_t inputs = std::uint64_t{1} << input_bits(rule);
  const std::uint64_t part = inputs_per_part < inputs ? inputs_per_part : inputs;
  const std::uint64_t parts = inputs / part;
  std::vector<std::atomic<std::uint64_t>> digests(slices.size());
  std::mutex mutex;
  std::uint64_t done = 0;
  // A task is one slice of one part: a few hundred inputs.
  formats::parallel_for(parts * slices.size(), slices.size(), threads,
                        [&](std::size_t begin, std::size_t end) {
                          const std::uint64_t first = begin / slices.size() * part;
                          for (std::size_t i = 0; i < end - begin; ++i)
                            digests[i] += slice_digest(rule, first + slices[i], first + part);
                          const std::lock_guard lock(mutex);
                          done += slices.size() * (part / digest_slices);
                          progress(done);
                        });
  return {digests.begin(), digests.end()};
}

std::vector<std::uint64_t> model_digests(const ConversionRule& rule, int threads,
                                         const std::function<void(std::uint64_t)>& progress) {
  std::vector<std::uint32_t> slices(digest_slices);
  std::iota(slices.begin(), slices.end(), 0U);
  return model_digests(rule, slices, threads, progress);
}

}  // namespace guardbit::gpu

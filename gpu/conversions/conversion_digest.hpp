#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/conversions/conversion_inputs.hpp"

// Digests of the answers of conversions: 2^32 results compared by a few numbers.
namespace guardbit::gpu {

/// The digest of a form: the sum of the digests of all slices.
std::uint64_t total_digest(const std::vector<std::uint64_t>& slices);

/// Slices of which records keep the digests, so that a quick test can check a part of 2^32 inputs.
/// By the low 14 bits of an FP32 code: FP16's and TF32's ties above an even and an odd fraction,
/// mixed bits, just above an exact number, just below and above a tie, exact, just below exact.
inline constexpr std::array<std::uint32_t, 8> recorded_slices = {0x1000, 0x3000, 0x2A9C, 0x0001,
                                                                 0x0FFF, 0x1001, 0x0000, 0x3FFF};

/// What the model answers over the inputs of `slices`: one digest each, in their order. Runs on
/// `threads` threads (0: all) and calls progress(inputs done) now and then, one call at a time;
/// whatever that throws ends the work.
std::vector<std::uint64_t> model_digests(
    const ConversionRule& rule, const std::vector<std::uint32_t>& slices, int threads = 0,
    const std::function<void(std::uint64_t)>& progress = [](std::uint64_t) {});

/// The same for every slice.
std::vector<std::uint64_t> model_digests(
    const ConversionRule& rule, int threads = 0,
    const std::function<void(std::uint64_t)>& progress = [](std::uint64_t) {});

}  // namespace guardbit::gpu

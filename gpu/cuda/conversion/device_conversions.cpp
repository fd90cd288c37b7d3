#include "gpu/cuda/conversion/device_conversions.hpp"

#include <algorithm>

#include "gpu/cuda/device/device.hpp"

namespace guardbit::gpu {

namespace {

constexpr std::string_view where = "gpu convert";

class ConversionRunner {
 public:
  explicit ConversionRunner(const ConversionForm& form)
      : form_(form), tally_(sizeof(ConversionTally), where) {}

  /// What the kernel leaves of inputs [begin, begin + count); `seconds` of the device.
  ConversionTally run(std::uint64_t begin, std::uint64_t count, std::uint64_t* outputs,
                      double& seconds) const {
    ConversionTally tally{};
    std::fill(std::begin(tally.first_mismatch), std::end(tally.first_mismatch), ~std::uint64_t{0});
    tally_.write(std::as_bytes(std::span(&tally, 1)));
    DeviceTimer timer;
    timer.start();
    conversion_kernels()[static_cast<std::size_t>(form_.kernel)](
        {form_.rule, form_.variant, begin, count, tally_.as<ConversionTally>(), outputs});
    check_cuda(cudaGetLastError(), where);
    seconds = timer.stop();
    tally_.read(std::as_writable_bytes(std::span(&tally, 1)));
    return tally;
  }

  ConversionMismatch ask(std::uint64_t index) const {
    std::uint64_t output = 0;
    const DeviceBuffer outputs(sizeof output, where);
    double seconds = 0;
    run(index, 1, outputs.as<std::uint64_t>(), seconds);
    outputs.read(std::as_writable_bytes(std::span(&output, 1)));
    const ConversionInput input = conversion_input(form_.rule, index);
    return {index, input, output, convert_by_model(form_.rule, input)};
  }

 private:
  const ConversionForm& form_;
  DeviceBuffer tally_;
};

}  // namespace

ConversionComparison compare_conversion(const ConversionForm& form, std::size_t most_examples) {
  const ConversionRunner runner(form);
  ConversionComparison comparison;
  const std::uint64_t inputs = std::uint64_t{1} << input_bits(form.rule);
  const ConversionTally tally = runner.run(0, inputs, nullptr, comparison.seconds);
  comparison.digests.assign(std::begin(tally.digests), std::end(tally.digests));
  comparison.mismatches = tally.mismatches;
  std::vector<std::uint64_t> found(std::begin(tally.first_mismatch),
                                   std::end(tally.first_mismatch));
  std::erase(found, ~std::uint64_t{0});
  std::sort(found.begin(), found.end());
  // The smallest, and others evenly spread over those known.
  const std::size_t count = std::min(most_examples, found.size());
  for (std::size_t i = 0; i < count; ++i)
    comparison.examples.push_back(runner.ask(found[i * found.size() / count]));
  return comparison;
}

}  // namespace guardbit::gpu

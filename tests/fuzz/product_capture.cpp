#include "emulator/capture/product_capture.hpp"

#include "formats/files/safetensors.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// A library's product or convolution, as `explain` reads it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const emulator::GemmCapture capture = emulator::make_gemm_capture(
        formats::read_safetensors(fuzz::in_memory(data, size)), "input");
    emulator::Epilogue epilogue;
    capture.set_factors(epilogue);
    if (capture.outputs() < 1000) emulator::telling_outputs(capture, 8);
    if (capture.convolution) capture.lowered(emulator::ConvolutionOrder{});
  });
}

#include "formats/files/pickle.hpp"

#include <array>

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// The virtual machine of pickles alone, without a zip archive around it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array<std::string_view, 3> known = {"torch.FloatStorage", "torch.float32",
                                                            "m.n"};
  static constexpr std::array<std::string_view, 3> callable = {"torch._utils._rebuild_tensor_v2",
                                                               "collections.OrderedDict", "c.d"};
  return fuzz::parse_or_refuse([&] {
    const formats::Pickle pickle =
        formats::read_pickle("input", std::as_bytes(std::span(data, size)), {known, callable});
    fuzz::require(pickle.root < pickle.values.size(), "a root outside the values");
    for (const formats::PickleValue& value : pickle.values)
      for (const std::uint32_t item : value.items)
        fuzz::require(item < pickle.values.size(), "an item outside the values");
  });
}

#include "emulator/operators/memory_order.hpp"

#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

ops::Tensor tensor_of(const ops::Dimensions& shape, const ops::Dimensions& stride) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return ops::tensor_of_numbers(formats::fp32, shape, stride,
                                std::vector<float>(static_cast<std::size_t>(count)));
}

}  // namespace

TEST_CASE("Strides say that channels lie together as PyTorch reads them") {
  struct Case {
    ops::Dimensions shape, stride;
    bool is_said, is_contiguous;
  };
  // What an H200's PyTorch took for channels_last; sizes of one leave open what strides mean.
  const std::vector<Case> cases = {{{2, 3, 4, 5}, {60, 20, 5, 1}, false, false},
                                   {{2, 3, 4, 5}, {60, 1, 15, 3}, true, true},
                                   {{2, 8, 1, 1}, {8, 1, 1, 1}, false, true},
                                   {{2, 8, 1, 1}, {8, 1, 8, 8}, true, true},
                                   {{2, 1, 4, 5}, {20, 20, 5, 1}, false, true},
                                   {{2, 1, 4, 5}, {20, 1, 5, 1}, true, true},
                                   {{2, 3, 4, 5}, {60, 0, 15, 3}, false, false},
                                   {{2, 3, 4, 5}, {80, 1, 20, 4}, true, false},
                                   {{2, 3, 4, 5}, {60, 1, 3, 12}, false, false},
                                   {{6, 10, 40}, {400, 1, 10}, false, false},
                                   {{2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}, true, true}};
  for (const Case& x : cases) {
    CAPTURE(x.shape, x.stride);
    const ops::Tensor tensor = tensor_of(x.shape, x.stride);
    CHECK(ops::says_channels_last(tensor) == x.is_said);
    CHECK(ops::is_contiguous_channels_last(tensor) == x.is_contiguous);
  }
  CHECK(ops::channels_last_stride({2, 3, 4, 5}) == ops::Dimensions{60, 1, 15, 3});
  CHECK(ops::channels_last_stride({2, 3, 4, 5, 6}) == ops::Dimensions{360, 1, 90, 18, 3});
}

}  // namespace guardbit::tests

#include "emulator/functions/largest_errors.hpp"

#include <algorithm>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/drawn_operands.hpp"

namespace guardbit::emulator {

const LargestError* find_largest_error(const Function& function) {
  const auto all = largest_errors();
  const auto found = std::ranges::find_if(all, [&](const LargestError& e) {
    return e.function == function.name && e.compile == function.compile;
  });
  return found == all.end() ? nullptr : &*found;
}

OperandCodes drawn_inputs(const Function& function, std::uint64_t number) {
  const auto& formats = function.formats.operands;
  OperandCodes codes{};
  if (formats[0] != formats::fp32 && formats[0] != formats::int32) {
    codes = drawn_operands(formats[0], number);
  } else {
    const ArgumentTuple t = argument_tuple(number);
    const bool is_integer_first = formats[0] == formats::int32;
    codes = {is_integer_first ? small_integer_argument(t.x) : t.x,
             formats[1] == formats::int32 ? integer_argument(t.y) : t.y, t.z, t.w};
  }
  std::fill(codes.begin() + static_cast<std::ptrdiff_t>(function.operands), codes.end(), 0);
  return codes;
}

}  // namespace guardbit::emulator

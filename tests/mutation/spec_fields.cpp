#include <algorithm>
#include <functional>

#include "tests/mutation/mutants.hpp"

namespace guardbit::tests {

const std::vector<SpecField>& spec_fields() {
  static const std::vector<SpecField> fields = [] {
    const auto table = emulator::accumulator_fields();
    std::vector<SpecField> list(table.begin(), table.end());
    const emulator::AccumulatorSpec spec;
    std::sort(list.begin(), list.end(), [&spec](const SpecField& x, const SpecField& y) {
      return std::less<>{}(x.address(spec), y.address(spec));
    });
    return list;
  }();
  return fields;
}

}  // namespace guardbit::tests

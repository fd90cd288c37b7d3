#include "gpu/cuda/validation/checks.hpp"

#include <algorithm>
#include <cmath>

#include "formats/format_catalogue.hpp"
#include "gpu/cuda/tensor_core/tensor_core.hpp"
#include "gpu/inputs/inputs.hpp"
#include "gpu/operands/plain_form.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/validation/device_capture.hpp"

namespace guardbit::gpu {

namespace {

/// Calls visit(index of the output, exact total) for every output.
template <class Visit>
void for_each_total(const TensorCoreInstruction& instruction, const Batch& batch, Visit visit) {
  for (int t = 0; t < batch.executions; ++t)
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < instruction.n; ++j)
        visit(element_index(instruction.m, instruction.n, t, i, j),
              exact_total(instruction, batch, t, i, j));
}

int packing_mismatches(const TensorCoreInstruction& instruction, std::uint64_t seed) {
  constexpr int executions = 8;
  Batch batch = make_small_integers(instruction, executions, seed);
  run_on_tensor_core(instruction, batch);
  int wrong = 0;
  for_each_total(instruction, batch, [&](std::size_t at, long double total) {
    wrong += !is_integer(instruction.d) && !is_finite(instruction.d, batch.d[at])
                 ? 1
                 : static_cast<int>(value_of(instruction.d, batch.d[at]) != total);
  });
  return wrong;
}

int integer_mismatches(const TensorCoreInstruction& instruction, const Batch& batch) {
  const bool saturate = instruction.name.find("satfinite") != std::string_view::npos;
  int wrong = 0;
  for_each_total(instruction, batch, [&](std::size_t at, long double total) {
    auto exact = static_cast<std::int64_t>(total);
    if (saturate) exact = std::clamp<std::int64_t>(exact, -0x80000000LL, 0x7FFFFFFF);
    wrong += (static_cast<std::uint64_t>(exact) & word_mask(instruction.d)) != batch.d[at];
  });
  return wrong;
}

int ignored_addend_mismatches(const TensorCoreInstruction& instruction, const Batch& recorded) {
  Batch batch = recorded;
  std::fill(batch.c.begin(), batch.c.end(),
            formats::magnitude_mask(instruction.c));  // NaN, or the largest integer
  run_on_tensor_core(instruction, batch);
  int wrong = 0;
  for (std::size_t i = 0; i < batch.d.size(); ++i) wrong += batch.d[i] != recorded.d[i];
  return wrong;
}

int plain_form_mismatches(const TensorCoreInstruction& instruction,
                          const TensorCoreInstruction& plain, const Batch& recorded) {
  Batch batch = as_plain_form(instruction, plain, recorded);
  run_on_tensor_core(plain, batch);
  return count_differences(instruction, plain, recorded, batch);
}

}  // namespace

std::vector<std::string> check_recording(const TensorCoreInstruction& instruction,
                                         const Batch& recorded, std::uint64_t seed) {
  std::vector<std::string> breaches;
  const auto require_none = [&](int count, const char* what) {
    if (count != 0)
      breaches.push_back(capture_stem(instruction) + ": " + std::to_string(count) + " results " +
                         what);
  };
  require_none(packing_mismatches(instruction, seed), "of small integers are wrong");
  if (is_integer(instruction.d))
    require_none(integer_mismatches(instruction, recorded),
                 "are not the exact total wrapped or saturated");
  if (instruction.ignore_c)
    require_none(ignored_addend_mismatches(instruction, recorded), "depend on the ignored addend");
  if (const TensorCoreInstruction* plain = find_plain(instruction.plain))
    require_none(plain_form_mismatches(instruction, *plain, recorded),
                 "differ from the plain form");
  return breaches;
}

}  // namespace guardbit::gpu

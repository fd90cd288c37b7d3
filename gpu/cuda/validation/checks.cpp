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
void for_each_total(const TensorCoreInstruction& row, const Batch& batch, Visit visit) {
  for (int t = 0; t < batch.executions; ++t)
    for (int i = 0; i < row.m; ++i)
      for (int j = 0; j < row.n; ++j)
        visit(element_index(row.m, row.n, t, i, j), exact_total(row, batch, t, i, j));
}

int packing_mismatches(const TensorCoreInstruction& row, std::uint64_t seed) {
  constexpr int executions = 8;
  Batch batch = make_small_integers(row, executions, seed);
  run_on_tensor_core(row, batch);
  int wrong = 0;
  for_each_total(row, batch, [&](std::size_t at, long double total) {
    wrong += !is_integer(row.d) && !is_finite(row.d, batch.d[at])
                 ? 1
                 : static_cast<int>(value_of(row.d, batch.d[at]) != total);
  });
  return wrong;
}

int integer_mismatches(const TensorCoreInstruction& row, const Batch& batch) {
  const bool saturate = row.name.find("satfinite") != std::string_view::npos;
  int wrong = 0;
  for_each_total(row, batch, [&](std::size_t at, long double total) {
    auto exact = static_cast<std::int64_t>(total);
    if (saturate) exact = std::clamp<std::int64_t>(exact, -0x80000000LL, 0x7FFFFFFF);
    wrong += (static_cast<std::uint64_t>(exact) & word_mask(row.d)) != batch.d[at];
  });
  return wrong;
}

int ignored_addend_mismatches(const TensorCoreInstruction& row, const Batch& recorded) {
  Batch batch = recorded;
  std::fill(batch.c.begin(), batch.c.end(),
            formats::magnitude_mask(row.c));  // NaN, or the largest integer
  run_on_tensor_core(row, batch);
  int wrong = 0;
  for (std::size_t i = 0; i < batch.d.size(); ++i) wrong += batch.d[i] != recorded.d[i];
  return wrong;
}

int plain_form_mismatches(const TensorCoreInstruction& row, const TensorCoreInstruction& plain,
                          const Batch& recorded) {
  Batch batch = as_plain_form(row, plain, recorded);
  run_on_tensor_core(plain, batch);
  return count_differences(row, plain, recorded, batch);
}

}  // namespace

std::vector<std::string> check_recording(const TensorCoreInstruction& row, const Batch& recorded,
                                         std::uint64_t seed) {
  std::vector<std::string> breaches;
  const auto require_none = [&](int count, const char* what) {
    if (count != 0)
      breaches.push_back(capture_stem(row) + ": " + std::to_string(count) + " results " + what);
  };
  require_none(packing_mismatches(row, seed), "of small integers are wrong");
  if (is_integer(row.d))
    require_none(integer_mismatches(row, recorded), "are not the exact total wrapped or saturated");
  if (row.ignore_c)
    require_none(ignored_addend_mismatches(row, recorded), "depend on the ignored addend");
  if (const TensorCoreInstruction* plain = find_plain(row.plain))
    require_none(plain_form_mismatches(row, *plain, recorded), "differ from the plain form");
  return breaches;
}

}  // namespace guardbit::gpu

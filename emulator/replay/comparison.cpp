#include "emulator/replay/comparison.hpp"

#include <algorithm>
#include <vector>

namespace guardbit::emulator::replay {
namespace {

std::vector<const Tensor*> operands_of(const Call& call) {
  std::vector<const Tensor*> all;
  for (const Value& value : call.args) {
    const auto tensors = tensors_of(value);
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  for (const auto& [name, value] : call.kwargs) {
    const auto tensors = tensors_of(value);
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  return all;
}

bool is_equal(const Tensor& x, const Tensor& y) {
  return x.type == y.type && x.shape == y.shape && std::ranges::equal(x.bytes, y.bytes);
}

bool are_equal(const std::vector<const Tensor*>& x, const std::vector<const Tensor*>& y) {
  return std::ranges::equal(x, y,
                            [](const Tensor* a, const Tensor* b) { return is_equal(*a, *b); });
}

std::string circumstances_of(const Call& a, const Call& b) {
  const auto x = operands_of(a), y = operands_of(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i]->stride != y[i]->stride) return "operand " + std::to_string(i) + " has other strides";
    if (x[i]->offset != y[i]->offset)
      return "operand " + std::to_string(i) + " begins at another offset";
  }
  return "";
}

std::optional<Divergence> divergence(const Call& a, const Call& b) {
  const auto x = tensors_of(a.out), y = tensors_of(b.out);
  if (x.size() != y.size()) return std::nullopt;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i]->type != y[i]->type || x[i]->shape != y[i]->shape || is_equal(*x[i], *y[i])) continue;
    Divergence found;
    found.op = a.op;
    found.result = i;
    found.type = x[i]->type;
    for (std::int64_t k = 0; k < x[i]->count(); ++k) {
      const std::uint64_t of_a = operators::code_at(*x[i], k), of_b = operators::code_at(*y[i], k);
      if (of_a == of_b) continue;
      if (found.differing++ > 0) continue;
      found.index = k;
      found.code_a = of_a;
      found.code_b = of_b;
    }
    found.circumstances = circumstances_of(a, b);
    return found;
  }
  return std::nullopt;
}

bool moves_data_only(const Call& call) {
  for (const char* op : {"aten._to_copy.", "aten.clone.", "aten.copy_.", "aten.lift_fresh."}) {
    if (call.op.starts_with(op)) return true;
  }
  return false;
}

}  // namespace

Comparison compare(const Recording& a, const Recording& b) {
  Comparison result;
  std::size_t i = 0, j = 0;
  while (i < a.calls.size() && j < b.calls.size()) {
    const Call &x = a.calls[i], &y = b.calls[j];
    if (x.op != y.op) {
      if (moves_data_only(x)) {
        ++i;
      } else if (moves_data_only(y)) {
        ++j;
      } else {
        result.parted = std::pair(i, j);
        return result;
      }
      continue;
    }
    ++result.paired;
    if (!are_equal(operands_of(x), operands_of(y))) {
      ++result.with_other_operands;
    } else if (auto found = divergence(x, y)) {
      if (!result.first) {
        found->call_a = i;
        found->call_b = j;
        result.first = std::move(found);
      }
    } else {
      ++result.equal;
    }
    ++i;
    ++j;
  }
  return result;
}

}  // namespace guardbit::emulator::replay

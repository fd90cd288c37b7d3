#include "emulator/replay/comparison.hpp"

#include <algorithm>
#include <cstring>
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

/// Do they differ, if at all, in the number of their rows, the first dimension?
bool are_alike(const Tensor& x, const Tensor& y) {
  if (x.type != y.type || x.rank() != y.rank()) return false;
  return x.shape == y.shape ||
         (x.rank() > 0 && std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1));
}

/// Elements of the rows that both have.
std::int64_t common_count(const Tensor& x, const Tensor& y) {
  return std::min(x.count(), y.count());
}

bool is_equal(const Tensor& x, const Tensor& y) {
  if (!are_alike(x, y)) return false;
  const auto size = static_cast<std::size_t>(common_count(x, y) * x.element_bytes());
  return size == 0 || std::memcmp(x.bytes.data(), y.bytes.data(), size) == 0;
}

bool are_equal(const std::vector<const Tensor*>& x, const std::vector<const Tensor*>& y) {
  return std::ranges::equal(x, y,
                            [](const Tensor* a, const Tensor* b) { return is_equal(*a, *b); });
}

bool are_of_one_size(const std::vector<const Tensor*>& x, const std::vector<const Tensor*>& y) {
  return std::ranges::equal(x, y,
                            [](const Tensor* a, const Tensor* b) { return a->shape == b->shape; });
}

std::string circumstances_of(const Call& a, const Call& b) {
  const auto x = operands_of(a), y = operands_of(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string operand = "operand " + std::to_string(i);
    if (x[i]->shape != y[i]->shape)
      return operand + " has " + std::to_string(x[i]->shape[0]) + " rows here, " +
             std::to_string(y[i]->shape[0]) + " there";
    if (x[i]->stride != y[i]->stride) return operand + " has other strides";
    if (x[i]->offset != y[i]->offset)
      return operand + " begins at offset " + std::to_string(x[i]->offset) + " here, " +
             std::to_string(y[i]->offset) + " there";
  }
  return "";
}

/// What became of a pair of calls with equal operands.
struct Judged {
  /// something of their results could be compared
  bool is_comparable = false;
  std::optional<Divergence> divergence;
};

Judged judged(const Call& a, const Call& b) {
  const auto x = tensors_of(a.out), y = tensors_of(b.out);
  Judged result;
  if (x.size() != y.size()) return result;
  const bool is_of_other_size = !are_of_one_size(operands_of(a), operands_of(b));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!are_alike(*x[i], *y[i])) continue;
    // A result of the same size from other rows was reduced over them.
    if (is_of_other_size && x[i]->shape == y[i]->shape) continue;
    result.is_comparable = true;
    if (is_equal(*x[i], *y[i])) continue;
    Divergence found;
    found.op = a.op;
    found.result = i;
    found.type = x[i]->type;
    found.is_of_other_size = is_of_other_size;
    for (std::int64_t k = 0; k < common_count(*x[i], *y[i]); ++k) {
      const std::uint64_t of_a = operators::code_at(*x[i], k), of_b = operators::code_at(*y[i], k);
      if (of_a == of_b) continue;
      if (found.differing++ > 0) continue;
      found.index = k;
      found.code_a = of_a;
      found.code_b = of_b;
    }
    found.circumstances = circumstances_of(a, b);
    result.divergence = std::move(found);
    return result;
  }
  result.is_comparable = result.is_comparable || x.empty();
  return result;
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
    Judged pair;
    if (are_equal(operands_of(x), operands_of(y))) pair = judged(x, y);
    if (!pair.is_comparable) {
      ++result.with_other_operands;
    } else if (!pair.divergence) {
      ++result.equal;
    } else if (!result.first) {
      result.first = std::move(pair.divergence);
      result.first->call_a = i;
      result.first->call_b = j;
    }
    ++i;
    ++j;
  }
  return result;
}

}  // namespace guardbit::emulator::replay

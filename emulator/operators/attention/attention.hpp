#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/operators/machine.hpp"
#include "emulator/operators/operator_tensor.hpp"

// Attention: what is to be computed, whoever computes it.
namespace guardbit::emulator::attention {

/// Which keys a query sees: key j of query i if j <= i, or if j <= i + keys - queries.
enum class Causal : std::uint8_t { none, top_left, bottom_right };

/// Random numbers that decide which probabilities are dropped.
struct Dropout {
  double probability = 0;
  std::uint64_t seed = 0, offset = 0;
};

struct Problem {
  formats::Format type;
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0;
  /// of a head: of queries and keys, and of values
  std::int64_t width = 0, value_width = 0;
  /// [batch, heads, queries, width]; [batch, kv_heads, keys, width]; the same with value_width
  std::vector<float> q{}, k{}, v{};
  /// [batch, heads, queries, keys], or empty
  std::vector<float> bias{};
  double scale = 1;
  Causal causal = Causal::none;
  Dropout dropout{};
  int threads = 1;

  std::int64_t kv_head(std::int64_t head) const { return head / (heads / kv_heads); }
};

struct ForwardResult {
  /// [batch, heads, queries, value_width], not yet rounded to the type
  std::vector<float> out;
  /// [batch, heads, queries]
  std::vector<float> logsumexp;
};

struct BackwardProblem {
  const Problem& forward;
  /// [batch, heads, queries, value_width]
  std::vector<float> grad{}, out{};
  /// [batch, heads, queries]
  std::vector<float> logsumexp;
  bool wants_bias_gradient = false;
  /// dQ as a device gave it, like q: for kernels whose order of addition depends on timing, orders
  /// are tried until one gives these bits; may be empty
  std::vector<float> recorded_dq{};
  /// [batch, heads, queries], where another kernel adds dO * O; else empty
  std::vector<float> delta{};
};

/// More tiles of keys than these are not tried in every order.
inline constexpr std::size_t most_tried_tiles = 5;

/// Sums over key tiles whose order depends on timing, of one head: each tile's part, to be added in
/// any order, then multiplied.
struct OpenSum {
  std::int64_t head = 0;
  /// [queries, width] each
  std::vector<std::vector<float>> parts;
  float factor = 1;
};

struct BackwardResult {
  /// like q; like k and v, but of every query head; not yet rounded to the type
  std::vector<float> dq, dk, dv;
  /// like the bias, or empty
  std::vector<float> dbias;
  /// heads whose dq depends on timing; dq then holds the sums in ascending order
  std::vector<OpenSum> open;
  /// Chains of dq take tiles of keys in the order of arrival.
  bool is_open = false;
};

}  // namespace guardbit::emulator::attention

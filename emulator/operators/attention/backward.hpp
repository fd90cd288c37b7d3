#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "emulator/operators/attention/attention.hpp"
#include "emulator/operators/attention/dropout.hpp"

// Backward kernels of attention as data, and the one interpreter that computes them.
//
// A thread block takes a tile of keys and goes over tiles of queries: it computes the probabilities
// P again, adds P^T dO to dV, makes dP = dO V^T and dS = P (dP - delta) of them, and adds dS^T Q to
// dK and dS K to dQ. delta is the sum of dO * O of each query.
namespace guardbit::emulator::attention {

/// P of a score S.
enum class Probability : std::uint8_t {
  /// ex2(RN(S * sl2) - RN(logsumexp * log2(e)))
  two_products,
  /// expf(RN(S * scale) - logsumexp), with a bias added to the product
  exponential,
  /// ex2(RN(fma(S, scale, -logsumexp) * log2(e))), without subnormal numbers
  fused,
};
constexpr auto words(Probability) { return std::array{"two_products", "exponential", "fused"}; }

/// How the sum delta is added: threads take 8 columns after the other; a thread's columns are added
/// in order by FMAs, or as pairs; sums of threads meet in that order.
struct DeltaSum {
  int threads = 8;
  bool adds_pairs = false;
  /// distant threads meet first
  bool descends = true;
};

/// How parts of dQ, one from each tile of keys, are added.
enum class QueryGradient : std::uint8_t {
  /// each part is a chain from 0; parts are added in FP32, in the order in which they arrive
  added,
  /// one chain, which goes on from tile to tile in the order in which they arrive
  chained,
};
constexpr auto words(QueryGradient) { return std::array{"added", "chained"}; }

struct BackwardForm {
  std::string_view name;
  int query_tile = 0, key_tile = 0;
  /// products of a block of the unit
  int products = 16;
  Probability probability = Probability::two_products;
  DeltaSum delta{};
  /// dS takes P as it was rounded for dV
  bool uses_rounded_probability = false;
  /// dS is multiplied by scale before it is rounded; else dQ and dK at the end
  bool scales_early = false;
  bool queries_descend = false;
  /// Thread blocks s of `splits` take tiles of keys s, s + splits, ... and, unless causal, begin at
  /// query tile s.
  int splits = 1;
  QueryGradient query_gradient = QueryGradient::added;
  /// of dQ: tile n is added to sum n modulo this many; 0: one sum, in the order of arrival
  int query_sums = 0;
  DropoutOrder dropout = DropoutOrder::none;
  /// Scores are products of keys and queries in that order, as FP32 operands show, whose pieces are
  /// multiplied in turn.
  bool keys_come_first = false;
  /// dK and dV are sums in FP32 of what each tile of queries gives, which is a chain from 0.
  bool adds_tiles = false;
};

BackwardResult compute_backward(const BackwardForm& form, const BackwardProblem& problem);

}  // namespace guardbit::emulator::attention

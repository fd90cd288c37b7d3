#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

/// Who takes an element of K, counted out one by one from the words of plan.hpp.
namespace guardbit::tests {

/// The accumulator that takes k, as `Division` says.
inline std::int64_t owner(const emulator::Partition& p, std::int64_t k, std::int64_t length) {
  const std::int64_t tiles = (length + p.tile - 1) / p.tile, tile = k / p.tile;
  if (p.parts == 1) return 0;
  switch (p.division) {
    case emulator::Division::ceil: return tile / ((tiles + p.parts - 1) / p.parts);
    case emulator::Division::round_robin: return tile % p.parts;
    case emulator::Division::balanced:
    case emulator::Division::balanced_last: break;
  }
  const std::int64_t parts = std::min<std::int64_t>(p.parts, tiles);
  const std::int64_t longer = tiles % parts, each = tiles / parts;
  if (p.division == emulator::Division::balanced_last) {
    const std::int64_t shorter = parts - longer;
    return tile < shorter * each ? tile / each : shorter + (tile - shorter * each) / (each + 1);
  }
  return tile < longer * (each + 1) ? tile / (each + 1)
                                    : longer + (tile - longer * (each + 1)) / each;
}

/// The block that takes k of an output's tile: iterations are counted out to blocks one by one.
inline std::int64_t worker(const emulator::StreamK& s, const emulator::GemmProblem& x,
                           const emulator::Output& output, std::int64_t k) {
  const std::int64_t down = (x.m() + s.tile_m - 1) / s.tile_m;
  const std::int64_t across = (x.n() + s.tile_n - 1) / s.tile_n;
  const std::int64_t steps = (x.k() + s.tile_k - 1) / s.tile_k, tiles = x.a.batch * down * across;
  const std::int64_t row = output.row / s.tile_m, column = output.column / s.tile_n;
  const std::int64_t tile =
      output.batch * down * across + (s.along_m ? column * down + row : row * across + column);
  std::int64_t shared = tiles;
  if (s.tiles == emulator::StreamK::Tiles::one_tile) shared = tiles - tiles / s.blocks * s.blocks;
  if (s.tiles == emulator::StreamK::Tiles::two_tile) {
    const std::int64_t waves = tiles / s.blocks;
    shared =
        tiles == waves * s.blocks ? 0 : tiles - std::max<std::int64_t>(0, waves - 1) * s.blocks;
  }
  if (tile >= shared) return 0;
  const std::int64_t wanted = tile * steps + k / s.tile_k;
  const std::int64_t all = shared * steps;
  std::int64_t at = 0;
  for (std::int64_t block = 0;; ++block) {
    at += s.division == emulator::Division::ceil
              ? (all + s.blocks - 1) / s.blocks
              : all / s.blocks + (block < all % s.blocks ? 1 : 0);
    if (wanted < at) return block;
  }
}

/// The part of K (a block of a split or of stream-K) that takes k of an output.
inline std::int64_t part_of(const emulator::GemmPlan& plan, const emulator::GemmProblem& x,
                            const emulator::Output& output, std::int64_t k) {
  return plan.stream_k.none() ? owner(plan.split, k, x.k()) : worker(plan.stream_k, x, output, k);
}

/// Some elements of K, ascending.
using Ks = std::vector<std::int64_t>;

/// What each slice of the plan takes of a part.
inline std::vector<Ks> slices_of(const emulator::GemmPlan& plan, const Ks& part) {
  std::map<std::int64_t, Ks> own;
  for (std::size_t at = 0; at < part.size(); ++at)
    own[owner(plan.slices, static_cast<std::int64_t>(at), std::ssize(part))].push_back(part[at]);
  std::vector<Ks> result;
  for (auto& [slice, ks] : own) result.push_back(std::move(ks));
  return result;
}

/// The runs after which the plan's accumulators are promoted.
inline std::vector<Ks> intervals_of(const emulator::GemmPlan& plan, const Ks& ks) {
  std::vector<Ks> result;
  for (std::size_t at = 0; at < ks.size(); ++at) {
    if (at % static_cast<std::size_t>(plan.promotion.interval) == 0) result.emplace_back();
    result.back().push_back(ks[at]);
  }
  return result;
}

}  // namespace guardbit::tests

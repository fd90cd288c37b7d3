#include "emulator/operators/attention/forward.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "emulator/operators/attention/attention_arithmetic.hpp"
#include "emulator/operators/attention/dropout.hpp"
#include "emulator/operators/attention/unit.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::attention {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::int64_t tiles_of(std::int64_t length, std::int64_t tile) {
  return length <= 0 ? 0 : (length + tile - 1) / tile;
}

/// The largest score so far and the sum of exponentials, by thread.
struct RowState {
  float maximum = -infinity;
  std::array<float, 4> sums{};
  /// of the tile before this one
  float factor = 1;
};

/// One row of thread blocks: a tile of queries of a head.
class QueryTile {
 public:
  QueryTile(const ForwardForm& form, const Problem& problem, std::int64_t head, std::int64_t tile)
      : form_(form),
        x_(problem),
        unit_(problem.type, form.products),
        head_(head),
        first_(tile * form.query_tile),
        rows_(std::min<std::int64_t>(form.query_tile, problem.queries - first_)),
        states_(static_cast<std::size_t>(rows_)),
        out_(static_cast<std::size_t>(form.key_warps * rows_ * problem.value_width)),
        dropout_(form.dropout, problem, head) {
    const std::int64_t kv =
        head / problem.heads * problem.kv_heads + problem.kv_head(head % problem.heads);
    const std::int64_t width = problem.width, value_width = problem.value_width;
    q_ = unit_.pack(Side::a,
                    {problem.q.data() + (head * problem.queries + first_) * width, width, 1}, rows_,
                    width, true);
    k_ = unit_.pack(Side::b, {problem.k.data() + kv * problem.keys * width, width, 1}, problem.keys,
                    width, true);
    v_ = unit_.pack(Side::b, {problem.v.data() + kv * problem.keys * value_width, 1, value_width},
                    value_width, problem.keys);
  }

  /// Tiles of keys that this one needs.
  std::int64_t key_tiles() const {
    const std::int64_t offset =
        x_.causal == Causal::bottom_right ? x_.keys - x_.queries : std::int64_t{0};
    const std::int64_t seen =
        x_.causal == Causal::none ? x_.keys : first_ + form_.query_tile + offset;
    return tiles_of(std::min(x_.keys, seen), form_.key_tile);
  }

  void run(const KeyTiles& tiles) {
    const std::int64_t count = tiles.last - tiles.first;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t tile = form_.keys_descend ? tiles.last - 1 - i : tiles.first + i;
      add(tile, i == 0, i == count - 1);
    }
    finish(count);
  }

  void store(ForwardResult& result) const {
    std::copy(out_.begin(), out_.begin() + rows_ * x_.value_width,
              result.out.begin() + (head_ * x_.queries + first_) * x_.value_width);
    std::copy(log_sums_.begin(), log_sums_.end(),
              result.logsumexp.begin() + head_ * x_.queries + first_);
  }

 private:
  void add(std::int64_t tile, bool is_first, bool is_last) {
    key_ = tile * form_.key_tile;
    keys_ = std::min<std::int64_t>(form_.key_tile, x_.keys - key_);
    scores_.resize(static_cast<std::size_t>(rows_ * keys_));
    unit_.multiply({q_}, {k_, key_}, rows_, keys_, q_.k, scores_.data(), keys_, true);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::span row(scores_.data() + i * keys_, static_cast<std::size_t>(keys_));
      scale(row, i);
      hide(row, i);
      take_maximum(row, states_[i], is_first);
    }
    const Functions& f = functions();
    (form_.flushes_exponentials ? f.ex2_ftz : f.ex2).apply(scores_);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::span row(scores_.data() + i * keys_, static_cast<std::size_t>(keys_));
      add_up(row, states_[i], is_first);
      dropout_.drop(row, first_ + i, key_);
    }
    multiply_values(is_first, is_last);
  }

  void scale(std::span<float> row, std::int64_t i) const {
    if (form_.scores == Scores::after_maximum) return;
    if (form_.scores == Scores::before_maximum) {
      // The device multiplies the FP32 numbers.
      const float factor = static_cast<float>(x_.scale) * log2_e;
      if (x_.bias.empty()) {
        for (float& s : row) s *= factor;
        return;
      }
      const float* bias = x_.bias.data() + (head_ * x_.queries + first_ + i) * x_.keys + key_;
      for (float& s : row) s = std::fma(s, static_cast<float>(x_.scale), *bias++) * log2_e;
      return;
    }
    const auto factor = static_cast<float>(x_.scale);
    for (float& s : row) s *= factor;
    if (!x_.bias.empty()) {
      const float* bias = x_.bias.data() + (head_ * x_.queries + first_ + i) * x_.keys + key_;
      for (float& s : row) s += *bias++;
    }
    for (float& s : row) s *= log2_e;
  }

  /// Keys that the query does not see.
  void hide(std::span<float> row, std::int64_t i) const {
    if (x_.causal == Causal::none) return;
    const std::int64_t offset = x_.causal == Causal::bottom_right ? x_.keys - x_.queries : 0;
    const std::int64_t seen = std::clamp<std::int64_t>(first_ + i + offset + 1 - key_, 0, keys_);
    std::fill(row.begin() + seen, row.end(), -infinity);
  }

  /// The scores become exponents of 2; the state gets the new maximum and the factor by which what
  /// was added before is too large.
  void take_maximum(std::span<float> row, RowState& state, bool is_first) const {
    const Functions& f = functions();
    const UnaryFunction& ex2 = form_.flushes_exponentials ? f.ex2_ftz : f.ex2;
    float largest = state.maximum;
    for (const float s : row) largest = std::fmax(largest, s);
    const float base = largest == -infinity ? 0 : largest;
    const float before = state.maximum;
    state.maximum = largest;
    if (form_.scores == Scores::after_maximum) {
      const float factor = scale_of_exponents(x_.scale);
      if (!is_first) state.factor = ex2((before - base) * factor);
      const float scaled = base * factor;
      if (form_.fuses_exponent) {
        for (float& s : row) s = std::fma(s, factor, -scaled);
      } else {
        for (float& s : row) s = s * factor - scaled;
      }
      return;
    }
    if (!is_first) state.factor = before < largest ? ex2(before - base) : 1;
    for (float& s : row) s -= base;
  }

  void add_up(std::span<const float> p, RowState& state, bool is_first) const {
    const auto count = static_cast<std::int64_t>(p.size());
    auto& sums = state.sums;
    if (form_.row_sum == RowSum::warps) {
      float sum = is_first ? 0.0F : sums[0] * state.factor;
      for (std::int64_t warp = 0; warp < form_.key_tile; warp += 32) {
        std::array<float, 4> of_threads{};
        for (std::int64_t j = warp; j < std::min(warp + 32, count); ++j)
          of_threads[j % 8 / 2] += p[j];
        sum += (of_threads[0] + of_threads[1]) + (of_threads[2] + of_threads[3]);
      }
      sums[0] = sum;
      return;
    }
    for (std::int64_t t = 0; t < 4; ++t) {
      float sum = 0;
      bool is_begun = false;
      for (std::int64_t j = 2 * t; j < count; j += j % 2 == 0 ? 1 : 7) {
        if (is_begun) {
          sum += p[j];
        } else {
          sum = form_.row_sum == RowSum::fresh || is_first ? p[j]
                                                           : std::fma(sums[t], state.factor, p[j]);
        }
        is_begun = true;
      }
      if (!is_begun) sum = is_first || form_.row_sum == RowSum::fresh ? 0 : sums[t] * state.factor;
      if (form_.row_sum == RowSum::fresh && !is_first) sum = std::fma(sums[t], state.factor, sum);
      sums[t] = sum;
    }
  }

  void multiply_values(bool is_first, bool is_last) {
    const std::int64_t width = x_.value_width;
    if (form_.keeps_output_in_memory) {
      const Lines p = unit_.pack(Side::a, {scores_.data(), keys_, 1}, rows_, keys_);
      products_.resize(out_.size());
      unit_.multiply({p}, {v_, 0, key_}, rows_, width, keys_, products_.data(), width, true);
      // The last product is added at the end, with the sum's reciprocal.
      if (is_last) return;
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          float& o = out_[i * width + j];
          const float product = products_[i * width + j];
          o = is_first ? product : std::fma(states_[i].factor, o, product);
        }
      }
      return;
    }
    if (!is_first) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t w = 0; w < form_.key_warps; ++w)
          for (std::int64_t j = 0; j < width; ++j)
            out_[(w * rows_ + i) * width + j] *= states_[i].factor;
      }
    }
    const std::int64_t share = form_.key_tile / form_.key_warps, size = rows_ * width;
    for (std::int64_t warp = 0, key = 0; key < keys_; ++warp, key += share) {
      const std::int64_t keys = std::min(share, keys_ - key);
      const Lines own = unit_.pack(Side::a, {scores_.data() + key, keys_, 1}, rows_, keys);
      unit_.multiply({own}, {v_, 0, key_ + key}, rows_, width, keys, out_.data() + warp * size,
                     width, is_first);
    }
  }

  float reciprocal(float sum) const {
    if (form_.approximates_reciprocal) return functions().rcp(sum);
    return sum == 0 || std::isnan(sum) ? 1 : 1 / sum;
  }

  float log_sum(const RowState& state, float sum) const {
    const Functions& f = functions();
    switch (form_.log_sum) {
      case LogSum::fused_scale:
        if (sum == 0 || std::isnan(sum)) return form_.empty_log_sum;
        return std::fma(state.maximum, static_cast<float>(x_.scale), f.lg2(sum) * ln_2);
      case LogSum::fused_ln2: return std::fma(state.maximum, ln_2, f.lg2_ftz(sum) * ln_2);
      case LogSum::divided:
        // A row without keys has the sum 1 and the maximum 0.
        if (sum == 0) return 0;
        return state.maximum / log2_e + f.logf(sum);
    }
    return 0;
  }

  void add_warps() {
    const std::int64_t size = rows_ * x_.value_width;
    for (std::int64_t half = form_.key_warps / 2; half > 0; half /= 2)
      for (std::int64_t i = 0; i < half * size; ++i) out_[i] += out_[half * size + i];
  }

  void finish(std::int64_t tiles) {
    const std::int64_t width = x_.value_width;
    add_warps();
    log_sums_.resize(static_cast<std::size_t>(rows_));
    for (std::int64_t i = 0; i < rows_; ++i) {
      const RowState& state = states_[i];
      const auto& s = state.sums;
      const float sum = form_.row_sum == RowSum::warps ? s[0]
                        : form_.pairs_apart            ? (s[0] + s[2]) + (s[1] + s[3])
                                                       : (s[0] + s[1]) + (s[2] + s[3]);
      const float kept = form_.dropout == DropoutOrder::flash ? dropout_.kept_factor() : 1;
      const float factor = reciprocal(sum) * kept;
      log_sums_[i] = log_sum(state, sum);
      for (std::int64_t j = 0; j < width; ++j) {
        float& o = out_[i * width + j];
        if (tiles == 0) {
          o = 0;
        } else if (!form_.keeps_output_in_memory) {
          o *= factor;
        } else if (tiles == 1) {
          o = products_[i * width + j] * factor;
        } else {
          o = std::fma(products_[i * width + j], factor, (factor * state.factor) * o);
        }
      }
    }
  }

  const ForwardForm& form_;
  const Problem& x_;
  Unit unit_;
  std::int64_t head_, first_, rows_;
  Lines q_, k_, v_;
  std::vector<RowState> states_;
  std::vector<float> out_, log_sums_, products_;
  DroppedKeys dropout_;
  // the tile of keys at hand
  std::int64_t key_ = 0, keys_ = 0;
  std::vector<float> scores_;
};

ForwardResult empty_result(const Problem& problem) {
  const std::int64_t rows = problem.batch * problem.heads * problem.queries;
  return {std::vector<float>(static_cast<std::size_t>(rows * problem.value_width)),
          std::vector<float>(static_cast<std::size_t>(rows))};
}

/// Calls body(head, tile of queries) for all of them.
template <class Body>
void for_each_tile(const ForwardForm& form, const Problem& problem, const Body& body) {
  const std::int64_t tiles = tiles_of(problem.queries, form.query_tile);
  const auto count = static_cast<std::size_t>(problem.batch * problem.heads * tiles);
  formats::parallel_for(count, 1, problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      body(at / tiles, at % tiles);
    }
  });
}

/// The kernel that combines splits, of one row: their weights, in place of their logarithms.
float combine_log_sums(std::span<float> logs) {
  const Functions& f = functions();
  float largest = -infinity;
  for (const float x : logs) largest = std::fmax(largest, x);
  const float base = largest == -infinity ? 0 : largest;
  std::size_t lanes = 1;
  while (lanes < logs.size()) lanes *= 2;
  std::vector<float> sums(lanes);
  for (std::size_t i = 0; i < logs.size(); ++i) sums[i] = f.expf(logs[i] - base);
  for (std::size_t offset = lanes / 2; offset > 0; offset /= 2) {
    for (std::size_t i = 0; i < offset; ++i) sums[i] += sums[i + offset];
  }
  const float sum = sums[0];
  const float log = sum == 0 || std::isnan(sum) ? infinity : f.logf(sum) + base;
  for (float& x : logs) x = f.expf(x - log);
  return log;
}

}  // namespace

ForwardResult compute_forward(const ForwardForm& form, const Problem& problem) {
  ForwardResult result = empty_result(problem);
  for_each_tile(form, problem, [&](std::int64_t head, std::int64_t tile) {
    QueryTile block(form, problem, head, tile);
    block.run({0, block.key_tiles()});
    block.store(result);
  });
  return result;
}

ForwardResult compute_split_forward(const ForwardForm& form, const Problem& problem, int splits) {
  const std::int64_t each = tiles_of(tiles_of(problem.keys, form.key_tile), splits);
  ForwardForm part_form = form;
  part_form.empty_log_sum = -infinity;
  std::vector<ForwardResult> parts;
  for (int i = 0; i < splits; ++i) {
    parts.push_back(empty_result(problem));
    for_each_tile(part_form, problem, [&](std::int64_t head, std::int64_t tile) {
      QueryTile block(part_form, problem, head, tile);
      block.run({i * each, std::max(i * each, std::min(block.key_tiles(), (i + 1) * each))});
      block.store(parts.back());
    });
  }
  ForwardResult result = empty_result(problem);
  std::vector<float> logs(static_cast<std::size_t>(splits));
  for (std::size_t row = 0; row < result.logsumexp.size(); ++row) {
    for (int i = 0; i < splits; ++i) logs[i] = parts[i].logsumexp[row];
    result.logsumexp[row] = combine_log_sums(logs);
    for (std::int64_t j = 0; j < problem.value_width; ++j) {
      const std::size_t at = row * problem.value_width + j;
      float sum = 0;
      for (int i = 0; i < splits; ++i) sum = std::fma(logs[i], parts[i].out[at], sum);
      result.out[at] = sum;
    }
  }
  return result;
}

}  // namespace guardbit::emulator::attention

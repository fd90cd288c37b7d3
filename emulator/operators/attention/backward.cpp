#include "emulator/operators/attention/backward.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "emulator/operators/attention/attention_arithmetic.hpp"
#include "emulator/operators/attention/unit.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::attention {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The sum of one query's dO * O.
float delta_of(const DeltaSum& sum, const float* grad, const float* out, std::int64_t width) {
  std::vector<float> threads(static_cast<std::size_t>(sum.threads));
  for (std::int64_t column = 0; column < width; column += 8) {
    float& thread = threads[column / 8 % sum.threads];
    const std::int64_t count = std::min<std::int64_t>(8, width - column);
    const float *const x = grad + column, *const y = out + column;
    if (sum.adds_pairs) {
      float added = x[0] * y[0] + (count > 1 ? x[1] * y[1] : 0);
      for (std::int64_t i = 2; i < count; i += 2)
        added += x[i] * y[i] + (i + 1 < count ? x[i + 1] * y[i + 1] : 0);
      thread += added;
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) thread = std::fma(x[i], y[i], thread);
  }
  for (int i = 1; i < sum.threads; i *= 2) {
    const int offset = sum.descends ? sum.threads / 2 / i : i;
    const std::vector<float> before = threads;
    for (int t = 0; t < sum.threads; ++t) threads[t] = before[t] + before[t ^ offset];
  }
  return threads[0];
}

/// What a tile of keys makes of the queries from `first_query` on: [queries, keys] each.
struct ScoreTile {
  std::int64_t first_key = 0, keys = 0, first_query = 0, queries = 0;
  /// P for dV, and dS for dK and dQ, both rounded to the type
  std::vector<float> probabilities, gradients;
};

class Head {
 public:
  Head(const BackwardForm& form, const BackwardProblem& problem, std::int64_t head,
       BackwardResult& result)
      : form_(form),
        x_(problem.forward),
        problem_(problem),
        unit_(x_.type, form.products),
        head_(head),
        dropout_(form.dropout, x_, head),
        result_(result) {
    const std::int64_t kv = head / x_.heads * x_.kv_heads + x_.kv_head(head % x_.heads);
    const float* q = x_.q.data() + head * x_.queries * x_.width;
    const float* k = x_.k.data() + kv * x_.keys * x_.width;
    const float* v = x_.v.data() + kv * x_.keys * x_.value_width;
    const float* grad = problem.grad.data() + head * x_.queries * x_.value_width;
    const float* out = problem.out.data() + head * x_.queries * x_.value_width;
    const Side of_queries = form.keys_come_first ? Side::b : Side::a;
    const Side of_keys = form.keys_come_first ? Side::a : Side::b;
    q_rows_ = unit_.pack(of_queries, {q, x_.width}, x_.queries, x_.width, true);
    q_columns_ = unit_.pack(Side::b, {q, 1, x_.width}, x_.width, x_.queries);
    k_rows_ = unit_.pack(of_keys, {k, x_.width}, x_.keys, x_.width, true);
    k_columns_ = unit_.pack(Side::b, {k, 1, x_.width}, x_.width, x_.keys);
    v_rows_ = unit_.pack(Side::b, {v, x_.value_width}, x_.keys, x_.value_width, true);
    grad_rows_ = unit_.pack(Side::a, {grad, x_.value_width}, x_.queries, x_.value_width, true);
    grad_columns_ = unit_.pack(Side::b, {grad, 1, x_.value_width}, x_.value_width, x_.queries);
    if (!problem.delta.empty()) {
      const auto* own = problem.delta.data() + head * x_.queries;
      delta_.assign(own, own + x_.queries);
    }
    for (std::int64_t i = 0; problem.delta.empty() && i < x_.queries; ++i) {
      delta_.push_back(delta_of(form.delta, grad + i * x_.value_width, out + i * x_.value_width,
                                x_.value_width));
      if (form.dropout != DropoutOrder::efficient && dropout_.is_used())
        delta_.back() *= 1.0F - static_cast<float>(x_.dropout.probability);
    }
  }

  void run() {
    const std::int64_t tiles = formats::divided_up(x_.keys, form_.key_tile);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      ScoreTile scores = score(tile);
      add_key_gradients(scores, tile);
      if (form_.query_gradient == QueryGradient::added)
        add_part(scores, tile, tiles);
      else
        chained_.push_back(std::move(scores));
    }
    if (form_.query_gradient == QueryGradient::added)
      add_sums();
    else
      chain_parts();
    if (form_.scales_early) return;
    const float kept = form_.dropout == DropoutOrder::flash ? dropout_.kept_factor() : 1;
    const float factor = static_cast<float>(x_.scale) * kept;
    const std::int64_t queries = x_.queries * x_.width, keys = x_.keys * x_.width;
    for (std::int64_t i = 0; i < queries; ++i) result_.dq[head_ * queries + i] *= factor;
    for (std::int64_t i = 0; i < keys; ++i) result_.dk[head_ * keys + i] *= factor;
    const std::int64_t values = x_.keys * x_.value_width;
    if (kept != 1)
      for (std::int64_t i = 0; i < values; ++i) result_.dv[head_ * values + i] *= kept;
  }

 private:
  std::int64_t offset() const {
    return x_.causal == Causal::bottom_right ? x_.keys - x_.queries : 0;
  }

  ScoreTile score(std::int64_t tile) {
    ScoreTile s;
    s.first_key = tile * form_.key_tile;
    s.keys = std::min<std::int64_t>(form_.key_tile, x_.keys - s.first_key);
    if (x_.causal != Causal::none) {
      const std::int64_t first = std::max<std::int64_t>(0, s.first_key - offset());
      s.first_query = std::min(x_.queries, first / form_.query_tile * form_.query_tile);
    }
    s.queries = x_.queries - s.first_query;
    const auto size = static_cast<std::size_t>(s.queries * s.keys);
    std::vector<float> p(size);
    unit_.multiply({q_rows_, s.first_query}, {k_rows_, s.first_key}, s.queries, s.keys, q_rows_.k,
                   p.data(), s.keys, true);
    for (std::int64_t i = 0; i < s.queries; ++i) to_exponents(s, i, p.data() + i * s.keys);
    const Functions& f = functions();
    (form_.probability == Probability::exponential ? f.expf
     : form_.probability == Probability::fused     ? f.ex2_ftz
                                                   : f.ex2)
        .apply(p);
    s.gradients.resize(size);
    unit_.multiply({grad_rows_, s.first_query}, {v_rows_, s.first_key}, s.queries, s.keys,
                   grad_rows_.k, s.gradients.data(), s.keys, true);
    s.probabilities = p;
    for (float& x : s.probabilities) x = operators::rounded_to(x_.type, x);
    for (std::int64_t i = 0; i < s.queries; ++i) to_gradients(s, i, p.data() + i * s.keys);
    return s;
  }

  /// A row of scores becomes what the exponential function takes.
  void to_exponents(const ScoreTile& s, std::int64_t row, float* scores) const {
    const std::int64_t query = s.first_query + row;
    const float log = problem_.logsumexp[head_ * x_.queries + query];
    const float factor = scale_of_exponents(x_.scale);
    const auto scale = static_cast<float>(x_.scale);
    const float base = log == -infinity ? 0 : log * log2_e;
    const float* bias = x_.bias.empty()
                            ? nullptr
                            : x_.bias.data() + (head_ * x_.queries + query) * x_.keys + s.first_key;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      float& x = scores[j];
      const bool is_hidden = x_.causal != Causal::none && s.first_key + j > query + offset();
      if (is_hidden) {
        x = -infinity;
      } else if (form_.probability == Probability::two_products) {
        x = x * factor - base;
      } else if (form_.probability == Probability::exponential) {
        x = x * scale;
        if (bias != nullptr) x += bias[j];
        x -= log;
      } else {
        x = bias == nullptr ? std::fma(x, scale, -log) : std::fma(x, scale, bias[j]) - log;
        x *= log2_e;
      }
    }
  }

  /// A row of dP becomes dS.
  void to_gradients(ScoreTile& s, std::int64_t row, const float* p) const {
    const std::int64_t query = s.first_query + row;
    const auto scale = static_cast<float>(x_.scale);
    float* const gradients = s.gradients.data() + row * s.keys;
    float* const rounded = s.probabilities.data() + row * s.keys;
    float* const bias =
        result_.dbias.empty()
            ? nullptr
            : result_.dbias.data() + (head_ * x_.queries + query) * x_.keys + s.first_key;
    const bool drops = dropout_.is_used();
    const float factor = form_.dropout == DropoutOrder::efficient ? dropout_.kept_factor() : 1.0F;
    const bool is_cudnn = form_.dropout == DropoutOrder::cudnn && drops;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const bool is_kept = !drops || dropout_.is_kept(query, s.first_key + j);
      const float dp = is_kept ? gradients[j] * factor : 0;
      float g = (form_.uses_rounded_probability ? rounded[j] : p[j]) * (dp - delta_[query]);
      if (is_cudnn) g *= dropout_.kept_factor();
      if (bias != nullptr) bias[j] = g;
      if (form_.scales_early) g *= scale;
      gradients[j] = operators::rounded_to(x_.type, g);
      if (!drops) continue;
      if (is_cudnn) rounded[j] = p[j] * dropout_.kept_factor();
      rounded[j] = is_kept ? operators::rounded_to(
                                 x_.type, rounded[j] * operators::rounded_to(x_.type, factor))
                           : 0;
    }
  }

  /// Tiles of queries in the order in which the tile of keys takes them.
  std::vector<std::int64_t> query_tiles(const ScoreTile& s, std::int64_t key_tile) const {
    if (s.queries == 0) return {};
    const std::int64_t first = s.first_query / form_.query_tile;
    std::vector<std::int64_t> tiles(
        static_cast<std::size_t>(formats::divided_up(x_.queries, form_.query_tile) - first));
    std::iota(tiles.begin(), tiles.end(), first);
    if (form_.queries_descend) std::reverse(tiles.begin(), tiles.end());
    if (form_.splits > 1 && x_.causal == Causal::none && !tiles.empty()) {
      const auto start = key_tile % form_.splits % static_cast<std::int64_t>(tiles.size());
      std::rotate(tiles.begin(), tiles.begin() + start, tiles.end());
    }
    return tiles;
  }

  void add_key_gradients(const ScoreTile& s, std::int64_t key_tile) {
    const std::int64_t key = head_ * x_.keys + s.first_key;
    float* const dk = result_.dk.data() + key * x_.width;
    float* const dv = result_.dv.data() + key * x_.value_width;
    for (const std::int64_t tile : query_tiles(s, key_tile)) {
      const std::int64_t query = tile * form_.query_tile;
      const std::int64_t count = std::min<std::int64_t>(form_.query_tile, x_.queries - query);
      const std::int64_t at = (query - s.first_query) * s.keys;
      const Lines p = unit_.pack(Side::a, {s.probabilities.data() + at, 1, s.keys}, s.keys, count);
      add_product({p}, {grad_columns_, 0, query}, s.keys, x_.value_width, count, dv);
      const Lines ds = unit_.pack(Side::a, {s.gradients.data() + at, 1, s.keys}, s.keys, count);
      add_product({ds}, {q_columns_, 0, query}, s.keys, x_.width, count, dk);
    }
  }

  /// Goes on with the chains of d, or adds chains from 0 to it.
  void add_product(const Part& a, const Part& b, std::int64_t m, std::int64_t n, std::int64_t k,
                   float* d) const {
    if (!form_.adds_tiles) return unit_.multiply(a, b, m, n, k, d, n, false);
    std::vector<float> part(static_cast<std::size_t>(m * n));
    unit_.multiply(a, b, m, n, k, part.data(), n, true);
    for (std::size_t i = 0; i < part.size(); ++i) d[i] += part[i];
  }

  void add_part(const ScoreTile& s, std::int64_t tile, std::int64_t tiles) {
    const auto size = static_cast<std::size_t>(x_.queries * x_.width);
    std::vector<float> part(size);
    float* const from = part.data() + s.first_query * x_.width;
    const Lines ds = unit_.pack(Side::a, {s.gradients.data(), s.keys}, s.queries, s.keys);
    unit_.multiply({ds}, {k_columns_, 0, s.first_key}, s.queries, x_.width, s.keys, from, x_.width,
                   true);
    if (form_.query_sums == 0) {
      if (tiles > 2) open_.push_back(part);
      if (sums_.empty()) sums_.emplace_back(size);
    } else if (sums_.empty()) {
      sums_.assign(static_cast<std::size_t>(form_.query_sums), std::vector<float>(size));
    }
    std::vector<float>& sum = sums_[tile % static_cast<std::int64_t>(sums_.size())];
    for (std::size_t i = 0; i < size; ++i) sum[i] += part[i];
  }

  void add_sums() {
    float* const dq = result_.dq.data() + head_ * x_.queries * x_.width;
    for (const std::vector<float>& sum : sums_) {
      for (std::size_t i = 0; i < sum.size(); ++i) dq[i] += sum[i];
    }
    if (!open_.empty())
      result_.open[static_cast<std::size_t>(head_)] = {
          head_, std::move(open_),
          (form_.scales_early ? 1 : static_cast<float>(x_.scale)) *
              (form_.dropout == DropoutOrder::flash ? dropout_.kept_factor() : 1)};
  }

  /// Tiles of keys in the order in which one thread block each would reach a tile of queries, if
  /// all began at once and went on at the same speed.
  std::vector<std::size_t> arrivals(std::int64_t query_tile) const {
    const std::int64_t count = formats::divided_up(x_.queries, form_.query_tile);
    const auto time = [&](std::size_t tile) -> std::int64_t {
      const auto key_tile = static_cast<std::int64_t>(tile);
      const std::int64_t split = key_tile % form_.splits, round = key_tile / form_.splits;
      if (form_.splits == 1) return key_tile;
      const std::int64_t first = chained_[tile].first_query / form_.query_tile;
      const std::int64_t step = x_.causal == Causal::none
                                    ? (query_tile - split % count + count) % count
                                    : query_tile - first;
      return round * count + step;
    };
    std::vector<std::size_t> order;
    for (std::size_t tile = 0; tile < chained_.size(); ++tile) {
      if (chained_[tile].first_query <= query_tile * form_.query_tile) order.push_back(tile);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
    return order;
  }

  std::vector<float> chain(std::int64_t query, std::int64_t count,
                           const std::vector<std::size_t>& order) const {
    std::vector<float> dq(static_cast<std::size_t>(count * x_.width));
    for (const std::size_t tile : order) {
      const ScoreTile& s = chained_[tile];
      const Lines ds = unit_.pack(
          Side::a, {s.gradients.data() + (query - s.first_query) * s.keys, s.keys}, count, s.keys);
      unit_.multiply({ds}, {k_columns_, 0, s.first_key}, count, x_.width, s.keys, dq.data(),
                     x_.width, false);
    }
    return dq;
  }

  void chain_parts() {
    for (std::int64_t tile = 0; tile < formats::divided_up(x_.queries, form_.query_tile); ++tile) {
      const std::int64_t query = tile * form_.query_tile;
      const std::int64_t count = std::min<std::int64_t>(form_.query_tile, x_.queries - query);
      std::vector<std::size_t> order = arrivals(tile);
      std::vector<float> dq = chain(query, count, order);
      const std::int64_t at = (head_ * x_.queries + query) * x_.width;
      if (form_.splits > 1 && order.size() > 1 && order.size() <= most_tried_tiles &&
          !problem_.recorded_dq.empty() && !is_recorded(dq, at)) {
        std::sort(order.begin(), order.end());
        do {
          std::vector<float> tried = chain(query, count, order);
          if (!is_recorded(tried, at)) continue;
          dq = std::move(tried);
          break;
        } while (std::next_permutation(order.begin(), order.end()));
      }
      std::copy(dq.begin(), dq.end(), result_.dq.begin() + at);
    }
  }

  bool is_recorded(const std::vector<float>& dq, std::int64_t at) const {
    for (std::size_t i = 0; i < dq.size(); ++i) {
      const float recorded = problem_.recorded_dq[at + static_cast<std::int64_t>(i)];
      const float rounded = operators::rounded_to(x_.type, dq[i]);
      if (rounded != recorded && (rounded == rounded || recorded == recorded)) return false;
    }
    return true;
  }

  const BackwardForm& form_;
  const Problem& x_;
  const BackwardProblem& problem_;
  Unit unit_;
  std::int64_t head_;
  DroppedKeys dropout_;
  BackwardResult& result_;
  Lines q_rows_, q_columns_, k_rows_, k_columns_, v_rows_, grad_rows_, grad_columns_;
  std::vector<float> delta_;
  std::vector<std::vector<float>> sums_, open_;
  std::vector<ScoreTile> chained_;
};

}  // namespace

BackwardResult compute_backward(const BackwardForm& form, const BackwardProblem& problem) {
  const Problem& x = problem.forward;
  const std::int64_t heads = x.batch * x.heads;
  BackwardResult result;
  result.dq.resize(static_cast<std::size_t>(heads * x.queries * x.width));
  result.dk.resize(static_cast<std::size_t>(heads * x.keys * x.width));
  result.dv.resize(static_cast<std::size_t>(heads * x.keys * x.value_width));
  if (problem.wants_bias_gradient) result.dbias.resize(x.bias.size());
  result.open.resize(static_cast<std::size_t>(heads));
  formats::parallel_for(static_cast<std::size_t>(heads), 1, x.threads,
                        [&](std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i)
                            Head(form, problem, static_cast<std::int64_t>(i), result).run();
                        });
  result.is_open = form.query_gradient == QueryGradient::chained && form.splits > 1;
  std::erase_if(result.open, [](const OpenSum& sum) { return sum.parts.empty(); });
  return result;
}

}  // namespace guardbit::emulator::attention

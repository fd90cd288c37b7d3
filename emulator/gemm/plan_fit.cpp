#include "emulator/gemm/plan_fit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/engine/continuation.hpp"
#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/stream_k.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;

/// Neighbours in K that no cut may separate: so many elements, from a multiple of them on.
struct Unbroken {
  std::int64_t elements = 1;
  std::string_view what;
};

Unbroken unbroken_of(const GemmOperands& x) {
  const bool is_plain = x.expansion == 1 && x.places == x.run;
  if (!is_plain) return {x.run, "the products of pieces take turns in runs of "};
  const int group = x.instruction ? x.instruction->sparsity.group_elements : 0;
  if (group != 0) return {group, "a sparse A is stored in groups of "};
  return {};
}

/// Looks for the first place where a plan does not fit.
class Fit {
 public:
  Fit(const GemmPlan& plan, const GemmProblem& problem, const GemmOperands& x,
      std::string_view where)
      : plan_(plan), problem_(problem), k_(x.k()), unbroken_(unbroken_of(x)), where_(where) {}

  std::optional<Error> misfit() const {
    if (auto unread = unread_key()) return unread;
    if (unbroken_.elements == 1 && problem_.scale_k == 0) return {};
    const std::string_view key = plan_.stream_k.none() ? "split" : "stream_k";
    for (const KRanges& part : parts()) {
      if (auto error = cut_of(part, key)) return error;
      for (const KRanges& slice : divide(plan_.slices, part)) {
        if (auto error = cut_of(slice, "lanes")) return error;
        if (auto error = misfit_of_chain(slice)) return error;
      }
    }
    return {};
  }

 private:
  bool scales_promotion() const { return takes_scales(plan_.promotion); }

  /// "key=value" as the plan has it.
  std::string text_of(std::string_view key) const {
    for (const PlanField& field : fields_of(plan_))
      if (field.key == key) return field.key + "=" + field.value;
    return std::string(key);
  }

  Error error(const std::string& what, const std::string& valid) const {
    return {std::string(where_), what, valid};
  }

  /// A key beside which another one would not be read.
  std::optional<Error> unread_key() const {
    const bool promotes = plan_.promotion.interval != 0;
    const InputConversion& input = plan_.input;
    if (promotes && input.has_integer_slices())
      return error(text_of("promote") + " is not read beside " + text_of("input") +
                       ", whose products are exact",
                   "no promote");
    if (promotes && plan_.residue_first != 0)
      return error(text_of("residue_first") + " is not read beside " + text_of("promote"),
                   "one of them");
    if (scales_promotion() && input.cut == InputConversion::Cut::scaled_rest)
      return error(text_of("promote") + " scales the leading chain alone of " + text_of("input"),
                   "promote=" + std::to_string(plan_.promotion.interval));
    if (scales_promotion() && plan_.epilogue.scales != Epilogue::Scales::joint)
      return error(text_of("scales") + " is not read: scales enter by " + text_of("promote"),
                   "no scales");
    return unread_scales();
  }

  std::optional<Error> unread_scales() const {
    const std::int64_t block = problem_.scale_k;
    if (block == 0) return {};
    const std::string blocks = "scales of " + std::to_string(block) + " elements of K";
    if (!scales_promotion())
      return error(blocks + " enter by promote alone, with an adder that scales",
                   "promote=" + std::to_string(block) +
                       ":scaled_fma, or with scale_a_fma, scale_b_fma, scaled_add");
    const std::int64_t tile = std::int64_t{plan_.loads.lanes} * plan_.loads.run;
    if (tile != 0 && block % tile != 0 && block < problem_.k())
      return error(text_of("loads") + " mixes elements of different " + blocks,
                   "LANES x RUN that divides " + std::to_string(block));
    return {};
  }

  /// The k's of each part of K, as they differ.
  std::vector<KRanges> parts() const {
    if (plan_.stream_k.none()) return divide(plan_.split, {{0, k_}});
    const Origin whole = problem_.whole();
    const TileOrder order(plan_.stream_k, whole.batch, whole.m, whole.n);
    std::vector<KRanges> list;
    for (const KRange& range : stream_k_ranges(plan_.stream_k, order.count(), k_))
      list.push_back({range});
    return list;
  }

  std::optional<Error> cut_at(std::int64_t k, std::string_view key) const {
    const std::int64_t each = unbroken_.elements;
    if (k % each == 0 || k == k_) return {};
    return error(text_of(key) + " cuts K at k = " + std::to_string(k) + ", where " +
                     std::string(unbroken_.what) + std::to_string(each),
                 "cuts at multiples of " + std::to_string(each));
  }
  std::optional<Error> cut_of(const KRanges& ranges, std::string_view key) const {
    for (const KRange& range : ranges)
      for (const std::int64_t k : {range.begin, range.end})
        if (auto error = cut_at(k, key)) return error;
    return {};
  }

  std::optional<Error> misfit_of_chain(const KRanges& ranges) const {
    if (const std::int64_t tile = plan_.residue_first; tile != 0)
      for (const KRange& range : ranges)
        if (auto error = cut_at(range.begin + range.length() % tile, "residue_first")) return error;
    if (plan_.promotion.interval == 0) return {};
    for (const KRanges& interval : intervals_of(plan_.promotion, ranges)) {
      if (auto error = cut_of(interval, "promote")) return error;
      if (auto error = two_scales(interval)) return error;
    }
    return {};
  }

  std::optional<Error> two_scales(const KRanges& interval) const {
    const std::int64_t block = problem_.scale_k;
    if (block == 0 || interval.empty()) return {};
    const std::int64_t first = interval.front().begin;
    for (const KRange& range : interval)
      for (const std::int64_t k : {range.begin, std::min(range.end, problem_.k()) - 1})
        if (k / block != first / block)
          return error(text_of("promote") + " adds k = " + std::to_string(first) +
                           " and k = " + std::to_string(k) + " at once, whose scales differ",
                       "intervals within " + std::to_string(block) + " elements of K");
    return {};
  }

  const GemmPlan& plan_;
  const GemmProblem& problem_;
  std::int64_t k_;
  Unbroken unbroken_;
  std::string_view where_;
};

}  // namespace

bool chains_fit(const GemmPlan& plan, const GemmOperands& x) {
  if (!x.instruction || can_be_chained(*x.instruction)) return true;
  const std::int64_t most = x.instruction->shape.k;
  if (x.expansion != 1 || !x.apart.empty()) return false;
  if (!plan.stream_k.none()) return x.k() <= most;
  for (const KRanges& part : divide(plan.split, {{0, x.k()}})) {
    for (const KRanges& slice : divide(plan.slices, part)) {
      const std::int64_t length = length_of(slice), interval = plan.promotion.interval;
      if ((interval == 0 ? length : std::min(length, interval)) > most) return false;
    }
  }
  return true;
}

std::optional<Error> misfit(const GemmPlan& plan, const GemmProblem& problem, const GemmOperands& x,
                            std::string_view where) {
  return Fit(plan, problem, x, where).misfit();
}

}  // namespace guardbit::emulator

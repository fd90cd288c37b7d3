#include "emulator/replay/difference.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator::replay {
namespace {

/// aten._softmax.default: softmax
std::string name_of(const std::string& op) {
  std::string name = op.substr(op.find('.') + 1);
  name = name.substr(0, name.find('.'));
  name.erase(0, name.find_first_not_of('_'));
  return name;
}

/// Products say how they were computed by a plan, which a remark may follow.
std::optional<GemmPlan> plan_in(const std::string& words) {
  try {
    return parse_plan(words.substr(0, words.find(", ")), "plan");
  } catch (const formats::Error&) {
    return std::nullopt;
  }
}

std::string parts_text(const Partition& partition, const std::string& owner, std::int64_t k) {
  const auto ranges = divide(partition, {{0, k}});
  const std::string count = std::to_string(partition.parts) + " " + owner;
  if (partition.division == Division::round_robin)
    return count + " that take tiles of " + std::to_string(partition.tile) + " in turn";
  std::int64_t longest = 0;
  for (const KRanges& own : ranges) {
    std::int64_t length = 0;
    for (const KRange& range : own) length += range.length();
    longest = std::max(longest, length);
  }
  return count + " of " + std::to_string(longest);
}

/// "in one chain", "in 3 slices of 1408"
std::string cut_text(const GemmPlan& plan, std::int64_t k) {
  std::vector<std::string> cuts;
  if (!plan.split.whole()) cuts.push_back(parts_text(plan.split, "slices", k));
  if (!plan.stream_k.none())
    cuts.push_back("the shares of " + std::to_string(plan.stream_k.blocks) + " blocks");
  if (!plan.slices.whole()) {
    const bool is_part = !cuts.empty();
    cuts.push_back((is_part ? "each in " : "") +
                   parts_text(plan.slices, "lanes", is_part ? plan.slices.tile : k));
  }
  if (cuts.empty()) return "in one chain";
  std::string text = "in " + cuts.front();
  for (std::size_t i = 1; i < cuts.size(); ++i) text += ", " + cuts[i];
  return text;
}

/// Of the last two tensors of a product's call the first one's last dimension.
std::int64_t k_of(const Call& call) {
  std::vector<const Tensor*> tensors;
  for (const Value& value : call.args) {
    const auto own = tensors_of(value);
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  if (tensors.size() < 2 || tensors[tensors.size() - 2]->shape.empty()) return 0;
  return tensors[tensors.size() - 2]->shape.back();
}

/// The keys of two plans that are not equal, in words of the plans.
std::string fields_text(const GemmPlan& a, const GemmPlan& b) {
  const auto text = [](const GemmPlan& plan, const GemmPlan& other) {
    std::string words;
    const auto others = fields_of(other);
    for (const PlanField& field : fields_of(plan)) {
      const bool is_shared = std::ranges::any_of(
          others, [&](const PlanField& o) { return o.key == field.key && o.value == field.value; });
      if (is_shared) continue;
      words += (words.empty() ? "" : " ") +
               (field.key == "unit" ? field.value : field.key + "=" + field.value);
    }
    return words.empty() ? std::string("no such key") : words;
  };
  return text(a, b) + " here, " + text(b, a) + " there";
}

std::string product_rule(const Call& a, const Call& b, const GemmPlan& x, const GemmPlan& y) {
  const std::int64_t k = k_of(a), other_k = k_of(b);
  const std::string here = cut_text(x, k), there = cut_text(y, other_k);
  std::string rule;
  if (here != there) rule = "K = " + std::to_string(k) + " " + here + " here, " + there + " there";
  if (x.unit != y.unit)
    rule += (rule.empty() ? "multiplied by " : "; multiplied by ") + x.unit.instruction +
            " here, by " + y.unit.instruction + " there";
  return rule.empty() ? fields_text(x, y) : rule;
}

/// The sizes of the first operand, as "[8, 1024]".
std::string sizes_of(const Call& call) {
  for (const Value& value : call.args) {
    for (const Tensor* tensor : tensors_of(value)) {
      std::string text;
      for (const std::int64_t n : tensor->shape)
        text += (text.empty() ? "[" : ", ") + std::to_string(n);
      return text.empty() ? "a scalar" : text + "]";
    }
  }
  return "";
}

/// What a recording says of its machine and library, and of the settings when a call was made.
std::map<std::string, std::string> settings_at(const Recording& recording, std::size_t call) {
  std::map<std::string, std::string> settings = recording.metadata;
  for (std::size_t i = 0; i <= call; ++i)
    for (const auto& [name, value] : recording.calls[i].changed_flags) settings[name] = value;
  return settings;
}

/// Those that the recordings do not say alike.
std::string settings_that_differ(const Recording& a, const Recording& b, const Divergence& first) {
  std::string text;
  const auto there = settings_at(b, first.call_b);
  for (const auto& [key, value] : settings_at(a, first.call_a)) {
    const auto other = there.find(key);
    if (other == there.end() || other->second == value) continue;
    constexpr std::size_t most = 60;
    if (value.size() > most || other->second.size() > most) continue;
    text += (text.empty() ? "" : ", ") + key + " (" + value + " here, " + other->second + " there)";
  }
  return text;
}

bool is_known(const CallResult& call) { return call.status == Status::exact; }

std::string remedy_of(const Recording& a, const Recording& b, const Divergence& first,
                      bool is_product) {
  const std::string settings = settings_that_differ(a, b, first);
  if (!settings.empty()) return "equal settings: " + settings;
  if (first.is_of_other_size)
    return is_product ? "batches of one size (fill the smaller one up with rows), or products that "
                        "cut K alike for every size, as batch-invariant ones do"
                      : "batches of one size, or an operator that reduces each row by itself";
  if (first.circumstances.find("strides") != std::string::npos)
    return "operands with equal strides: contiguous() before the call";
  if (first.circumstances.find("offset") != std::string::npos)
    return "operands that begin at equal offsets: clone() before the call";
  return "not known: sizes, strides and settings are equal as far as they are recorded";
}

}  // namespace

Difference difference_of(const Recording& a, const Recording& b, const Divergence& first,
                         const CallResult& of_a, const CallResult& of_b) {
  const Call &x = a.calls[first.call_a], &y = b.calls[first.call_b];
  const auto plan_a = plan_in(of_a.plan), plan_b = plan_in(of_b.plan);
  const bool is_product = plan_a && plan_b;
  Difference difference;
  difference.remedy = remedy_of(a, b, first, is_product);
  if (of_a.status == Status::unordered && of_b.status == Status::unordered) {
    difference.rule = "no rule: the order of additions changes from run to run";
    difference.remedy = "a deterministic operator (torch.use_deterministic_algorithms)";
  } else if (!is_known(of_a) || !is_known(of_b)) {
    difference.rule = "not known: the replay does not give both results";
  } else if (is_product && *plan_a != *plan_b) {
    difference.rule = product_rule(x, y, *plan_a, *plan_b);
  } else if (of_a.plan != of_b.plan) {
    const std::string name = name_of(first.op);
    difference.rule = name + " of " + sizes_of(x) + " by " + of_a.plan + " here, of " +
                      sizes_of(y) + " by " + of_b.plan + " there";
  } else {
    difference.rule = "the same words for both: " + of_a.plan +
                      "; what differs lies in sizes, strides or offsets";
  }
  return difference;
}

}  // namespace guardbit::emulator::replay

#include "experiments/traces/trace_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <string>

#include "formats/support/printable.hpp"

namespace guardbit::experiments {

namespace {

struct RoleWord {
  std::string_view word, role;
};

constexpr std::array role_words = {
    RoleWord{"wgrad", "wgrad"},          RoleWord{"grad", "wgrad"},
    RoleWord{"weight_grad", "wgrad"},    RoleWord{"grad_out", "grad_out"},
    RoleWord{"gout", "grad_out"},        RoleWord{"ograd", "grad_out"},
    RoleWord{"agrad", "grad_out"},       RoleWord{"dgrad", "grad_out"},
    RoleWord{"grad_output", "grad_out"}, RoleWord{"grad_in", "grad_in"},
    RoleWord{"gin", "grad_in"},          RoleWord{"igrad", "grad_in"},
    RoleWord{"grad_input", "grad_in"},   RoleWord{"act", "act"},
    RoleWord{"activation", "act"},       RoleWord{"weight", "weight"},
    RoleWord{"bias", "weight"},          RoleWord{"param", "weight"},
    RoleWord{"update", "update"},        RoleWord{"delta", "update"},
    RoleWord{"grads", "wgrad"},          RoleWord{"gradients", "wgrad"},
    RoleWord{"updates", "update"},
};

/// The number of `prefix`, at most one _ or -, and digits alone.
std::optional<std::uint64_t> numbered(std::string_view part,
                                      std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (!part.starts_with(prefix)) continue;
    std::string_view digits = part.substr(prefix.size());
    if (digits.starts_with('_') || digits.starts_with('-')) digits.remove_prefix(1);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// The single letters come last: elsewhere than in front they may be anything.
constexpr std::array<std::string_view, 4> step_words = {"step", "iteration", "iter", "s"};
constexpr std::array<std::string_view, 2> rank_words = {"rank", "r"};

/// The number behind the last of `words` in `path` that no letter or digit touches:
/// `run/grads_step100_rank2`.
std::optional<std::uint64_t> last_numbered(std::string_view path,
                                           std::span<const std::string_view> words) {
  const auto is_word = [&](std::size_t at) {
    return at < path.size() && std::isalnum(static_cast<unsigned char>(path[at])) != 0;
  };
  for (std::size_t at = path.size(); at-- > 0;) {
    if (at > 0 && is_word(at - 1)) continue;
    std::size_t end = at;
    while (is_word(end)) ++end;
    // Separators other than _ and - end a part; behind a word without digits they join its number.
    if (end < path.size() && (path[end] == '_' || path[end] == '-') && is_word(end + 1))
      for (++end; is_word(end);) ++end;
    if (const auto whole = numbered(path.substr(at, end - at), words)) return whole;
    const std::size_t first = std::min(path.find_first_of("_-", at), end);
    if (const auto number = numbered(path.substr(at, first - at), words)) return number;
  }
  return std::nullopt;
}

/// Takes step and rank off the end of `name`: `fc1.weight.grad/step100`.
void take_trailing_places(TraceName& parsed, std::string_view& name) {
  for (;;) {
    const std::size_t at = name.find_last_of("./");
    if (at == std::string_view::npos || at == 0) return;
    const std::string_view part = name.substr(at + 1);
    const auto step = numbered(part, std::span(step_words).first(3));
    const auto rank = numbered(part, std::span(rank_words).first(1));
    if (step && !parsed.step)
      parsed.step = step;
    else if (rank && !parsed.rank)
      parsed.rank = rank;
    else
      return;
    name = name.substr(0, at);
  }
}

/// `grads.fc1.weight`: gradients and updates are called after their parameters. Layers have names
/// such as `act`, so that other roles are not looked for in front.
void take_leading_role(TraceName& parsed) {
  const std::size_t end = parsed.tensor.find_first_of("./");
  if (end == std::string::npos) return;
  const auto role = role_of(std::string_view(parsed.tensor).substr(0, end));
  if (!role || (*role != "wgrad" && *role != "update")) return;
  parsed.role = *role;
  parsed.tensor.erase(0, end + 1);
}

}  // namespace

std::optional<std::string_view> role_of(std::string_view word) {
  const auto found = std::ranges::find(role_words, word, &RoleWord::word);
  if (found == role_words.end()) return std::nullopt;
  return found->role;
}

std::string TraceName::place_text(const std::string& name) const {
  std::string text;
  if (step) text += "step " + std::to_string(*step) + ", ";
  if (rank) text += "rank " + std::to_string(*rank) + ", ";
  return text + formats::printable(name);
}

TraceName places_of_path(std::string_view path) {
  TraceName result = parse_trace_name(std::string(path) + "/.");
  result.tensor.clear(), result.role.clear();
  // Single letters are too little within a part.
  if (!result.step) result.step = last_numbered(path, std::span(step_words).first(3));
  if (!result.rank) result.rank = last_numbered(path, std::span(rank_words).first(1));
  return result;
}

TraceName parse_trace_name(std::string_view name) {
  TraceName parsed;
  take_trailing_places(parsed, name);
  char before = '\0';  // the separator before the part that is kept next
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", at), name.size());
    const std::string_view part = name.substr(at, end - at);
    const bool last = end == name.size();
    const std::size_t single = at == 0 ? 1 : 0;
    const auto step_prefixes = std::span(step_words).first(3 + single);
    const auto rank_prefixes = std::span(rank_words).first(1 + single);
    if (const auto step = numbered(part, step_prefixes); step && !parsed.step && !last) {
      parsed.step = step;
    } else if (const auto rank = numbered(part, rank_prefixes); rank && !parsed.rank && !last) {
      parsed.rank = rank;
    } else if (const auto role = role_of(part); role && last) {
      parsed.role = *role;
      // A weight's role is its name, too.
      if (parsed.role == "weight" || parsed.tensor.empty()) {
        if (!parsed.tensor.empty()) parsed.tensor += before;
        parsed.tensor += part;
      }
    } else {
      if (!parsed.tensor.empty()) parsed.tensor += before;
      parsed.tensor += part;
    }
    if (last) break;
    before = name[end];
    at = end + 1;
  }
  if (parsed.role.empty() || parsed.role == "weight") take_leading_role(parsed);
  return parsed;
}

}  // namespace guardbit::experiments

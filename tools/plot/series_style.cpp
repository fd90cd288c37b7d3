#include "tools/plot/series_style.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace guardbit::tools {

namespace {

using experiments::Curve;

// Black and Okabe and Ito's colours, which colour-blind readers can tell apart, without the yellow
// that white paper hides.
constexpr std::array<const char*, most_series> colours = {
    "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31"};
enum Colour : std::uint8_t { black, blue, vermilion, green, purple, orange, sky, brown };

struct Named {
  std::string_view word;
  std::uint8_t colour;
};

/// Of several words in a name the longest counts.
constexpr Named table[] = {
    // formats
    {"fp64", brown},
    {"fp32", black},
    {"tf32", purple},
    {"fp16", blue},
    {"f16", blue},
    {"bf16", vermilion},
    {"e4m3", green},
    {"e5m2", orange},
    {"fp8", green},
    {"mxfp8", orange},
    {"mxfp4", purple},
    {"int8", sky},
    {"mxfp4 floor", purple},
    {"mxfp4 rceil", brown},
    {"nvfp4", sky},
    {"tf32_inputs", brown},
    // units and machines
    {"simt_fp32", black},
    {"sm_70", blue},
    {"sm_75", sky},
    {"sm_80", green},
    {"sm_89", brown},
    {"sm_90", vermilion},
    {"sm_100", purple},
    {"sm_120", orange},
    {"cdna1", blue},
    {"cdna2", green},
    {"cdna3", vermilion},
    {"x86", black},
    {"sm_90_e4m3", orange},
    {"sm_80_int8", sky},
    {"hopper", vermilion},
    {"hopper fp16, split-k", orange},
    {"ampere", green},
    {"volta", blue},
    {"datasheet", brown},
    // numbers
    {"normal", blue},
    {"uniform", vermilion},
    {"laplace", green},
    {"outliers", purple},
    {"log_uniform", orange},
    {"codes", black},
    // roundings and rules of scales
    {"exact", black},
    {"to nearest", sky},
    {"stochastic", green},
    {"kahan", purple},
    {"master", brown},
    {"all fp32", black},
    {"floor", blue},
    {"ceil", vermilion},
    {"even", green},
    {"rceil", purple},
    {"delayed, max", blue},
    {"delayed, most recent", green},
    {"current", vermilion},
    // libraries
    {"pytorch", blue},
    {"modelopt", vermilion},
    {"apex", vermilion},
    {"keras2", green},
    {"keras3", sky},
    {"flax", purple},
    {"megatron", orange},
    {"deepspeed", black},
    // quantities
    {"bound", black},
    {"underflow", blue},
    {"overflow", vermilion},
    {"sum of |w|", blue},
    {"sum of w^2", vermilion},
    {"wgrad", blue},
    {"grad_out", vermilion},
    {"grad_in", green},
    {"act", purple},
    {"weight", black},
    {"update", orange},
};

std::optional<std::size_t> named_colour(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const Named* best = nullptr;
  for (const Named& entry : table) {
    const bool is_in = name.find(entry.word) != std::string::npos;
    if (is_in && (best == nullptr || entry.word.size() > best->word.size())) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional<std::size_t>(best->colour);
}

std::string first_part(const std::string& name) { return name.substr(0, name.find(", ")); }

/// The curve that a reference belongs to; nothing for one of its own.
std::optional<std::size_t> owner_of(const Curve& reference, const std::vector<Curve>& curves) {
  std::optional<std::size_t> owner;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& c = curves[i];
    if (!c.is_reference && reference.name.starts_with(c.name + ", ") &&
        (!owner || c.name.size() > curves[*owner].name.size()))
      owner = i;
  }
  return owner;
}

}  // namespace

std::vector<SeriesStyle> styles_of(const std::vector<Curve>& curves) {
  std::set<std::string> names, firsts;
  for (const Curve& c : curves) {
    if (c.is_reference) continue;
    names.insert(c.name);
    firsts.insert(first_part(c.name));
  }
  const bool by_first = firsts.size() < names.size();
  // What a colour stands for, and in what curves of one colour differ.
  std::map<std::string, std::size_t> colour_of;
  std::map<std::string, std::size_t> variant_of;
  std::set<std::size_t> taken;
  const auto key_of = [&](const Curve& c) {
    const std::optional<std::size_t> owner = c.is_reference ? owner_of(c, curves) : std::nullopt;
    const std::string& name = owner ? curves[*owner].name : c.name;
    return by_first ? first_part(name) : name;
  };
  for (const Curve& c : curves) {
    const std::string key = key_of(c);
    const auto wanted = named_colour(key);
    if (wanted && !colour_of.contains(key) && taken.insert(*wanted).second)
      colour_of[key] = *wanted;
  }
  // Black last, which the table gives to what all others are compared with.
  constexpr std::array<std::size_t, most_series> order = {blue,   vermilion, green, purple,
                                                          orange, sky,       brown, black};
  for (const Curve& c : curves) {
    const std::string key = key_of(c);
    if (colour_of.contains(key)) continue;
    const auto* const next =
        std::ranges::find_if(order, [&](std::size_t i) { return !taken.contains(i); });
    const std::size_t colour = next == order.end() ? colour_of.size() % most_series : *next;
    taken.insert(colour);
    colour_of[key] = colour;
  }
  constexpr std::array<const char*, 4> dashes = {"", "6 3", "2 2.5", "8 3 2 3"};
  std::vector<SeriesStyle> styles;
  for (const Curve& c : curves) {
    const std::optional<std::size_t> owner = c.is_reference ? owner_of(c, curves) : std::nullopt;
    if (owner && *owner < styles.size()) {
      styles.push_back(styles[*owner]);
    } else {
      const std::size_t colour = colour_of.at(key_of(c));
      const std::string rest = by_first ? c.name.substr(first_part(c.name).size()) : "";
      const std::size_t variant = variant_of.emplace(rest, variant_of.size()).first->second;
      styles.push_back({colours.at(colour),
                        static_cast<int>((colour + 3 * variant) % marker_shapes),
                        dashes.at(variant % dashes.size())});
    }
    if (!c.is_reference) continue;
    styles.back().is_open = true;
    styles.back().dashes = "3 3";
  }
  return styles;
}

}  // namespace guardbit::tools

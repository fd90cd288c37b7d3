#include "emulator/gemm/atlas/packed_trees.hpp"

#include <bit>

namespace guardbit::emulator::atlas {

namespace {

constexpr std::uint32_t is_leaf = 31;
/// Of 1000 recorded calls of a leaf at least so many agree.
constexpr std::array shares = {998, 995, 990, 980, 950, 900, 750, 0};

constexpr std::array<std::uint8_t, 128> digits = [] {
  std::array<std::uint8_t, 128> result{};
  std::uint8_t value = 0;
  for (const char c : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    if (c != 0) result.at(static_cast<std::size_t>(c)) = value++;
  return result;
}();

/// Of each feature its thresholds, as FP32 codes.
std::array<std::vector<std::uint32_t>, is_leaf> unpacked_thresholds(
    std::string_view text, std::span<const std::uint32_t> of_feature) {
  std::array<std::vector<std::uint32_t>, is_leaf> result;
  Digits packed(text);
  for (std::size_t feature = 0; feature < of_feature.size(); ++feature)
    for (std::uint32_t i = 0; i < of_feature[feature]; ++i)
      result.at(feature).push_back(packed.number(4) << 7);
  return result;
}

}  // namespace

std::uint32_t Digits::number(std::uint32_t count) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    result = result << 6 | digits[static_cast<unsigned char>(*next_++)];
  return result;
}

std::vector<PackedLabel> unpacked_labels(std::string_view text) {
  std::vector<PackedLabel> labels;
  for (Digits packed(text); !packed.at_end();) {
    PackedLabel label;
    label.kind = packed.number(1);
    label.tile = static_cast<int>(packed.number(2));
    label.rule = packed.number(2);
    label.columns = static_cast<int>(8 * packed.number(2));
    label.rows = static_cast<int>(8 * packed.number(1));
    label.agree = shares.at(packed.number(1));
    labels.push_back(label);
  }
  return labels;
}

PackedTrees::PackedTrees(std::string_view nodes, std::string_view thresholds,
                         std::span<const std::uint32_t> of_feature, std::string_view labels)
    : labels_(unpacked_labels(labels)) {
  const auto values = unpacked_thresholds(thresholds, of_feature);
  nodes_.reserve(nodes.size() / 3);
  // Inner nodes whose right subtree is still to come.
  std::vector<std::size_t> open;
  for (Digits packed(nodes); !packed.at_end();) {
    const std::uint32_t head = packed.number(1), number = packed.number(2 + head % 2);
    const std::uint32_t feature = head / 2;
    if (feature != is_leaf) {
      open.push_back(nodes_.size());
      nodes_.push_back({feature, values.at(feature).at(number)});
      continue;
    }
    nodes_.push_back({feature, number});
    if (open.empty()) continue;
    nodes_[open.back()].feature_and_right += 64 * static_cast<std::uint32_t>(nodes_.size());
    open.pop_back();
  }
}

const PackedLabel& PackedTrees::leaf(std::span<const double> features, std::size_t root) const {
  std::size_t at = root;
  while (nodes_[at].feature() != is_leaf) {
    const Node& node = nodes_[at];
    const double threshold{std::bit_cast<float>(node.value)};
    at = features[node.feature()] <= threshold ? at + 1 : node.right();
  }
  return labels_.at(nodes_[at].value);
}

}  // namespace guardbit::emulator::atlas

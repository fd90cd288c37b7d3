#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// Decision trees as tools/scripts/atlas/fit_atlas.py packs them: numbers of base 64, the highest
// digit first.
namespace guardbit::emulator::atlas {

/// What a leaf says; what its numbers mean is up to the trees' owner.
struct PackedLabel {
  std::uint32_t kind = 0;
  int tile = 0;
  std::uint32_t rule = 0;
  int columns = 0, rows = 0;
  /// Of 1000 recorded calls of the leaf at least so many agree; of few calls less is said.
  int agree = 0;
};

/// Reads numbers of base 64 one after the other.
class Digits {
 public:
  explicit Digits(std::string_view text) : next_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() const { return next_ == end_; }
  /// of so many digits
  std::uint32_t number(std::uint32_t count);

 private:
  const char *next_, *end_;
};

/// `text`: of each label kind, tile (2 digits), rule (2), columns / 8 (2), rows / 8, place among
/// the shares that agree.
std::vector<PackedLabel> unpacked_labels(std::string_view text);

class PackedTrees {
 public:
  /// `nodes`: of all trees, each before its left and then its right subtree, in three or four
  /// digits. The first one has a feature or 31, a leaf, and its lowest bit whether there are four;
  /// the others which of the feature's thresholds, or which label. `thresholds`: of feature 0, then
  /// of feature 1, ..., so many as `of_feature` says: the exponent and 16 bits of the fraction of
  /// an FP32 number, in four digits. `labels`: as unpacked_labels has them.
  PackedTrees(std::string_view nodes, std::string_view thresholds,
              std::span<const std::uint32_t> of_feature, std::string_view labels);

  /// The leaf of the tree that begins at node `root`.
  const PackedLabel& leaf(std::span<const double> features, std::size_t root) const;

 private:
  /// A feature no greater than the threshold leads to the next node, another to `right`. `value` is
  /// the threshold, an FP32 number, or the number of a leaf's label.
  struct Node {
    std::uint32_t feature() const { return feature_and_right % 64; }
    std::uint32_t right() const { return feature_and_right / 64; }

    std::uint32_t feature_and_right;
    std::uint32_t value;
  };

  std::vector<Node> nodes_;
  std::vector<PackedLabel> labels_;
};

}  // namespace guardbit::emulator::atlas

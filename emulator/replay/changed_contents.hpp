#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "emulator/replay/recording.hpp"

// What became of tensors that a call changed without giving them: later calls have them as
// arguments.
namespace guardbit::emulator::replay {

/// The contents of a recording by the call that has them first.
class ChangedContents {
 public:
  explicit ChangedContents(const Recording& recording);

  // What a tensor became that the call of that number changes, and that is expected to become
  // `computed`: a content of the same type and shape that a later call takes as an argument. Null
  // where there is none.

  /// The one that is equal bit for bit.
  const Tensor* find_equal(std::size_t call, const Tensor& computed);
  /// Of all results of a call, those that are equal bit for bit, and where there are none those of
  /// the next list that a call takes in which each tensor is alike, was given by no call and was
  /// found for no other. To be asked after all that have equal ones.
  std::vector<const Tensor*> find_others(std::size_t call,
                                         const std::vector<std::optional<Tensor>>& computed);

 private:
  struct Content {
    const Tensor* tensor;
    /// the last call that takes it as an argument
    std::size_t last_use;
    /// the call that has it first, and whether as an argument
    std::size_t first_seen;
    bool came_as_argument;
    std::uint64_t digest = 0;
    bool was_found = false;
  };

  bool is_fresh(const Tensor& tensor, std::size_t call) const;
  void make_digests();
  const std::vector<std::size_t>& alike(const Tensor& tensor) const;

  const Recording& recording_;
  std::vector<Content> contents_;
  /// by the place of their bytes
  std::unordered_map<const std::byte*, std::size_t> places_;
  /// by type and shape
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> alike_;
  bool has_digests_ = false;
};

}  // namespace guardbit::emulator::replay

#include "emulator/replay/changed_contents.hpp"

#include <algorithm>
#include <cstring>

namespace guardbit::emulator::replay {
namespace {

std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9E3779B97F4A7C15;
  return digest ^ digest >> 29;
}

std::uint64_t kind_of(const Tensor& tensor) {
  std::uint64_t digest = mixed(static_cast<std::uint64_t>(tensor.type.exponent_bits) << 8,
                               static_cast<std::uint64_t>(tensor.type.fraction_bits));
  for (const std::int64_t size : tensor.shape)
    digest = mixed(digest, static_cast<std::uint64_t>(size) + 1);
  return digest;
}

bool is_alike(const Tensor& x, const Tensor& y) { return x.type == y.type && x.shape == y.shape; }

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = bytes.size();
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    digest = mixed(digest, word);
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) digest = mixed(digest, static_cast<std::uint64_t>(byte));
  return digest;
}

}  // namespace

ChangedContents::ChangedContents(const Recording& recording) : recording_(recording) {
  const auto see = [&](const Tensor& tensor, std::size_t call, bool as_argument) {
    // Tensors without elements all lie at one place.
    if (tensor.bytes.empty()) return;
    const auto [place, is_new] = places_.emplace(tensor.bytes.data(), contents_.size());
    if (is_new) {
      contents_.push_back({&tensor, call, call, as_argument, 0, false});
      alike_[kind_of(tensor)].push_back(place->second);
    } else if (as_argument) {
      contents_[place->second].last_use = call;
    }
  };
  for (std::size_t i = 0; i < recording.calls.size(); ++i) {
    const Call& call = recording.calls[i];
    for (const Value& value : call.args) {
      for (const Tensor* tensor : tensors_of(value)) see(*tensor, i, true);
    }
    for (const auto& [name, value] : call.kwargs) {
      for (const Tensor* tensor : tensors_of(value)) see(*tensor, i, true);
    }
    for (const Tensor* tensor : tensors_of(call.out)) see(*tensor, i, false);
  }
}

void ChangedContents::make_digests() {
  if (has_digests_) return;
  for (Content& content : contents_) content.digest = digest_of(content.tensor->bytes);
  has_digests_ = true;
}

const std::vector<std::size_t>& ChangedContents::alike(const Tensor& tensor) const {
  static const std::vector<std::size_t> none;
  const auto found = alike_.find(kind_of(tensor));
  return found == alike_.end() ? none : found->second;
}

const Tensor* ChangedContents::find_equal(std::size_t call, const Tensor& computed) {
  make_digests();
  const std::uint64_t digest = digest_of(computed.bytes);
  for (const std::size_t index : alike(computed)) {
    Content& content = contents_[index];
    const bool is_equal = content.last_use > call && content.digest == digest &&
                          is_alike(*content.tensor, computed) &&
                          std::ranges::equal(content.tensor->bytes, computed.bytes);
    if (!is_equal) continue;
    content.was_found = true;
    return content.tensor;
  }
  return nullptr;
}

bool ChangedContents::is_fresh(const Tensor& tensor, std::size_t call) const {
  const auto place = places_.find(tensor.bytes.data());
  if (place == places_.end()) return false;
  const Content& content = contents_[place->second];
  return content.came_as_argument && content.first_seen > call && !content.was_found;
}

std::vector<const Tensor*> ChangedContents::find_others(
    std::size_t call, const std::vector<std::optional<Tensor>>& computed) {
  std::vector<const Tensor*> found(computed.size());
  for (std::size_t i = 0; i < computed.size(); ++i)
    found[i] = computed[i] ? find_equal(call, *computed[i]) : nullptr;
  if (std::ranges::find(found, nullptr) == found.end()) return found;
  for (std::size_t later = call + 1; later < recording_.calls.size(); ++later) {
    for (const Value& argument : recording_.calls[later].args) {
      const std::vector<const Tensor*> list = tensors_of(argument);
      bool fits = list.size() == computed.size();
      for (std::size_t i = 0; fits && i < list.size(); ++i)
        fits = computed[i] && is_alike(*list[i], *computed[i]) &&
               (is_fresh(*list[i], call) || list[i] == found[i]);
      if (!fits) continue;
      for (const Tensor* tensor : list)
        contents_[places_.at(tensor->bytes.data())].was_found = true;
      return list;
    }
  }
  return found;
}

}  // namespace guardbit::emulator::replay

#include "emulator/operators/tensor_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace guardbit::emulator::operators {
namespace {

/// Blocks that no tensor has, the ones kept longest first.
class FreeBlocks {
 public:
  std::unique_ptr<std::byte[]> take(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(blocks_, size, &Block::size);
    if (found == blocks_.end()) return nullptr;
    auto memory = std::move(found->memory);
    blocks_.erase(found);
    kept_ -= size;
    return memory;
  }

  void keep(std::unique_ptr<std::byte[]> memory, std::size_t size) {
    constexpr std::size_t most_kept = std::size_t{128} << 20;
    if (size > most_kept) return;
    const std::scoped_lock lock(mutex_);
    while (kept_ + size > most_kept) {
      kept_ -= blocks_.front().size;
      blocks_.erase(blocks_.begin());
    }
    blocks_.push_back({size, std::move(memory)});
    kept_ += size;
  }

 private:
  struct Block {
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> memory;
  };
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t kept_ = 0;
};

/// Never destroyed: tensors may outlive what ends with the program.
FreeBlocks& free_blocks() {
  static auto* const blocks = new FreeBlocks;
  return *blocks;
}

}  // namespace

std::shared_ptr<std::byte[]> tensor_memory(std::size_t size) {
  constexpr std::size_t least_kept = std::size_t{1} << 20;
  if (size < least_kept) return std::shared_ptr<std::byte[]>(new std::byte[size]);
  std::unique_ptr<std::byte[]> memory = free_blocks().take(size);
  if (memory == nullptr) memory.reset(new std::byte[size]);
  return {memory.release(), [size](std::byte* block) {
            free_blocks().keep(std::unique_ptr<std::byte[]>(block), size);
          }};
}

}  // namespace guardbit::emulator::operators

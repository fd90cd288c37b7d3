#include "formats/files/memory_files.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace guardbit::formats {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, TensorFile> files;
  std::size_t made = 0;
};

Registry& registry() {
  static Registry only;
  return only;
}

}  // namespace

MemoryFile::MemoryFile(TensorFile content) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  name_ = "<arrays " + std::to_string(++all.made) + ">";
  all.files.emplace(name_, std::move(content));
}

MemoryFile::~MemoryFile() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.files.erase(name_);
}

std::optional<TensorFile> find_memory_file(const std::string& name) {
  if (!name.starts_with('<')) return std::nullopt;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.files.find(name);
  return found == all.files.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace guardbit::formats

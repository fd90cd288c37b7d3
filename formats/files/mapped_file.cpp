#include "formats/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Error(printable(path), "cannot be read: " + std::generic_category().message(error));
}

struct Descriptor {
  int value;
  explicit Descriptor(int opened) : value(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

MappedFile map_file(const std::string& path) {
  // Non-blocking, so that a pipe without a writer is refused below instead of waited for.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (descriptor.value < 0 || ::fstat(descriptor.value, &status) != 0) refuse(path, errno);
  if (S_ISDIR(status.st_mode)) refuse(path, EISDIR);
  if (!S_ISREG(status.st_mode)) throw Error(printable(path), "cannot be read: not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {path, {}, nullptr};  // mmap refuses length 0
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED) refuse(path, errno);
  std::shared_ptr<const void> owner(
      address, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
  return {path, {static_cast<const std::byte*>(address), size}, std::move(owner)};
}

}  // namespace guardbit::formats

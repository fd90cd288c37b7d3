#include "formats/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  std::string why = "cannot be read: " + std::generic_category().message(error);
  // FILE:TENSOR, where a whole file is read.
  const std::string file = path.substr(0, path.find(':'));
  if (error == ENOENT && file != path && ::access(file.c_str(), F_OK) == 0)
    why += " (" + printable(file) + " is one, of which no tensor can be named here)";
  throw Error(printable(path), why);
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

/// A file without a name that holds what standard input gave.
int spooled_input() {
  const int spool = ::memfd_create("standard input", MFD_CLOEXEC);
  if (spool < 0) refuse("-", errno);
  std::array<std::byte, 65536> part{};
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("-", errno);
    if (count == 0) return spool;
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          ::write(spool, part.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse("-", errno);
      done += written;
    }
  }
}

}  // namespace

std::string openable_path(const std::string& path) {
  if (path != "-") return path;
  static const int spool = spooled_input();
  return "/proc/self/fd/" + std::to_string(spool);
}

MappedFile map_file(const std::string& path) {
  // Non-blocking, so that a pipe without a writer is refused below instead of waited for.
  const Descriptor descriptor(
      ::open(openable_path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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

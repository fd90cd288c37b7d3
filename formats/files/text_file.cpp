#include "formats/files/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {

std::string read_text(const std::string& path) {
  const auto refuse = [&](int error) {
    throw Error(printable(path), "cannot be read: " + std::generic_category().message(error));
  };
  const int descriptor = ::open(openable_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(errno);
  std::string text;
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    const int error = errno;
    if (count <= 0) ::close(descriptor);
    if (count < 0) refuse(error);
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace guardbit::formats

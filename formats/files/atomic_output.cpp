#include "formats/files/atomic_output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {

void AtomicOutput::refuse(int error) const {
  throw Error(printable(path_), "cannot be written: " + std::generic_category().message(error));
}

AtomicOutput::AtomicOutput(const std::string& path)
    : path_(path), target_(path), is_standard_output_(path == "-") {
  struct stat existing {};
  if (is_standard_output_)
    target_ = (std::filesystem::temp_directory_path() / "guardbit.standard_output").string();
  const bool exists = !is_standard_output_ && ::stat(path.c_str(), &existing) == 0;
  if (exists) {
    if (S_ISDIR(existing.st_mode)) refuse(EISDIR);
    // Renaming over a device or a pipe would remove it.
    if (!S_ISREG(existing.st_mode))
      throw Error(printable(path), "cannot be written: not a regular file");
    if (::access(path.c_str(), W_OK) != 0) refuse(errno);
    std::error_code failure;
    const std::filesystem::path resolved = std::filesystem::canonical(path, failure);
    if (failure) refuse(failure.value());
    target_ = resolved.string();
  } else if (!is_standard_output_ && errno != ENOENT) {
    refuse(errno);
  }
  if (path.empty() || path.back() == '/') refuse(path.empty() ? ENOENT : EISDIR);

  static std::atomic<unsigned> serial = 0;
  const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  do {
    const std::string name =
        ".guardbit." + std::to_string(::getpid()) + "." + std::to_string(serial++) + ".tmp";
    temporary_ = (folder / name).string();
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) refuse(errno);
  if (exists) static_cast<void>(::fchmod(descriptor_, existing.st_mode & 07777U));
}

AtomicOutput::~AtomicOutput() {
  for (const std::span<std::byte> pages : maps_) ::munmap(pages.data(), pages.size());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

template <class Write>
void AtomicOutput::write_all(std::span<const std::byte> bytes, const Write& write) {
  // Linux writes at most 2^31 - 4096 bytes a call.
  constexpr std::size_t largest = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = write(bytes.first(std::min(bytes.size(), largest)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicOutput::write(std::span<const std::byte> bytes) {
  write_all(bytes, [&](std::span<const std::byte> some) {
    return ::write(descriptor_, some.data(), some.size());
  });
}

void AtomicOutput::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::byte* const begin = bytes.data();
  write_all(bytes, [&](std::span<const std::byte> some) {
    const auto at = offset + static_cast<std::uint64_t>(some.data() - begin);
    return ::pwrite(descriptor_, some.data(), some.size(), static_cast<off_t>(at));
  });
}

std::span<std::byte> AtomicOutput::map(std::uint64_t offset, std::size_t size) {
  if (size == 0) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto before = static_cast<std::size_t>(offset % page);
  int refused = 0;
  do {
    refused = ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (refused == EINTR);
  if (refused != 0) refuse(refused);
  void* const pages = ::mmap(nullptr, before + size, PROT_READ | PROT_WRITE, MAP_SHARED,
                             descriptor_, static_cast<off_t>(offset - before));
  if (pages == MAP_FAILED) refuse(errno);
  maps_.emplace_back(static_cast<std::byte*>(pages), before + size);
  return maps_.back().subspan(before);
}

void AtomicOutput::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicOutput::copy_to_standard_output() {
  const MappedFile whole = map_file(temporary_);
  write_all(whole.bytes, [](std::span<const std::byte> some) {
    return ::write(STDOUT_FILENO, some.data(), some.size());
  });
}

void AtomicOutput::commit() {
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) refuse(errno);
  if (is_standard_output_) return copy_to_standard_output();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) refuse(errno);
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view text) {
  AtomicOutput file(path);
  file.write(text);
  file.commit();
}

}  // namespace guardbit::formats

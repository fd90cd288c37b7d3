#include "formats/support/child_process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <system_error>
#include <vector>

#include "formats/support/error.hpp"

namespace guardbit::formats {

namespace {

/// What stands before each piece in the pipe.
struct Piece {
  enum class Kind : std::uint64_t { data = 1, error, done };
  Kind kind = Kind::data;
  std::uint64_t size = 0;
};

bool write_all(int to, const void* from, std::size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t some = write(to, at, size);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    at += some;
    size -= static_cast<std::size_t>(some);
  }
  return true;
}

bool read_all(int from, void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t some = read(from, at, size);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    at += some;
    size -= static_cast<std::size_t>(some);
  }
  return true;
}

bool send_piece(int to, Piece::Kind kind, std::span<const std::byte> bytes) {
  const Piece piece{kind, bytes.size()};
  return write_all(to, &piece, sizeof piece) && write_all(to, bytes.data(), bytes.size());
}

/// From now on this process may use `seconds` of the processor.
void limit_processor(unsigned seconds) {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(used.tv_sec) + seconds + 1);
  setrlimit(RLIMIT_CPU, &limit);
}

[[noreturn]] void be_the_child(int to, unsigned seconds,
                               const std::function<void(const BytesVisitor& send)>& work) {
  // A crash is expected here: it leaves no core, and libraries' last words are not ours.
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) signal(crash, SIG_DFL);
  signal(SIGXCPU, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  limit_processor(seconds);
  try {
    work([to, seconds](std::span<const std::byte> bytes) {
      if (!send_piece(to, Piece::Kind::data, bytes)) _exit(1);  // nobody listens
      limit_processor(seconds);
    });
    send_piece(to, Piece::Kind::done, {});
  } catch (const std::exception& error) {
    const std::string text = error.what();
    send_piece(to, Piece::Kind::error, std::as_bytes(std::span(text)));
  }
  _exit(0);
}

/// The child and the end of the pipe that is read here; neither outlives it.
class Child {
 public:
  Child(pid_t id, int from) : id_(id), from_(from) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    close(from_);
    kill(id_, SIGKILL);
    while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  int from() const { return from_; }

 private:
  pid_t id_;
  int from_;
};

}  // namespace

void run_in_child(const std::string& where, const std::string& what, unsigned seconds,
                  const std::function<void(const BytesVisitor& send)>& work,
                  const BytesVisitor& receive) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(where, std::generic_category().message(errno));
  const pid_t id = fork();
  if (id < 0) {
    const int failure = errno;
    close(ends[0]);
    close(ends[1]);
    throw Error(where, std::generic_category().message(failure));
  }
  if (id == 0) {
    close(ends[0]);
    be_the_child(ends[1], seconds, work);
  }
  close(ends[1]);
  const Child child(id, ends[0]);
  std::vector<std::byte> bytes;
  for (;;) {
    Piece piece;
    if (!read_all(child.from(), &piece, sizeof piece)) throw Error(where, what);
    bytes.resize(static_cast<std::size_t>(piece.size));
    if (!read_all(child.from(), bytes.data(), bytes.size())) throw Error(where, what);
    if (piece.kind == Piece::Kind::done) return;
    if (piece.kind == Piece::Kind::error)
      throw Error(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    receive(bytes);
  }
}

}  // namespace guardbit::formats

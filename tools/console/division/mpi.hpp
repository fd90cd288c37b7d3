#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// Messages between the processes that mpirun started, by Open MPI: compiled where its header is
// found, loaded where a launcher started the program.
namespace guardbit::tools {

/// Is Open MPI compiled in?
bool knows_mpi();

class Mpi {
 public:
  /// formats::Error where the library cannot be loaded.
  Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(int to, const std::vector<std::uint8_t>& bytes) const;
  struct Message {
    int from = 0;
    std::vector<std::uint8_t> bytes;
  };
  /// One that has come; never waits.
  std::optional<Message> receive() const;

  /// Waits for all others to do the same; no messages after it.
  void finish() const;
  /// Ends all processes.
  [[noreturn]] void abort(int status) const;

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace guardbit::tools

#pragma once

#include <optional>

#include "tools/console/division/part.hpp"

// What a launcher of several processes, mpirun or srun, says to each in its environment.
namespace guardbit::tools {

struct Launch {
  /// from 0 on
  int rank = 0, ranks = 1;
  /// of them on this host
  int local_ranks = 1;
};

/// Nothing where no launcher that is known started this process.
std::optional<Launch> find_launch();

/// Did Open MPI's mpirun, or srun with PMIx, start more than this process?
bool is_launched_for_mpi();

/// Threads that a request means in one of several processes on a host: itself, or for 0 its share.
int threads_of_process(int requested);

}  // namespace guardbit::tools

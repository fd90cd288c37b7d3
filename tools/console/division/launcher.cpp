#include "tools/console/division/launcher.hpp"

#include <algorithm>
#include <cstdlib>

#include "formats/support/parallel.hpp"

namespace guardbit::tools {

namespace {

std::optional<int> number_of_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : whole_number(text);
}

}  // namespace

std::optional<Launch> find_launch() {
  struct Names {
    const char *rank, *ranks, *local_ranks;
  };
  // Open MPI; srun; MPICH and Intel MPI.
  constexpr Names launchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const Names& names : launchers) {
    const auto rank = number_of_environment(names.rank), ranks = number_of_environment(names.ranks);
    if (!rank || !ranks || *rank >= *ranks) continue;
    return Launch{*rank, *ranks, std::max(1, number_of_environment(names.local_ranks).value_or(1))};
  }
  return std::nullopt;
}

bool is_launched_for_mpi() {
  const bool by_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr,
             by_srun = std::getenv("PMIX_RANK") != nullptr;
  const auto launch = find_launch();
  return (by_mpirun || by_srun) && launch && launch->ranks > 1;
}

int threads_of_process(int requested) {
  const auto launch = find_launch();
  if (requested != 0 || !launch) return requested;
  return std::max(1, formats::thread_count(0) / launch->local_ranks);
}

}  // namespace guardbit::tools

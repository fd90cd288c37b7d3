#pragma once

#include <string>

#include "tools/console/division/divided_files.hpp"
#include "tools/console/division/mpi.hpp"
#include "tools/console/interruption.hpp"

// The processes of a launcher at work: rank 0 gives a piece to whoever is free, itself included,
// and takes the results.
namespace guardbit::tools {

/// Rank 0: adds to `results` what is not there. A rank that says nothing for some seconds ends all,
/// with one line, as the launcher's signal does; results that have come are in the file then.
/// formats::Error of a piece, when all before it are done.
void lead_ranks(const Mpi& mpi, const DividedFiles& files, PieceResults& results, ResultsFile* file,
                const Interruption& interruption, const std::string& path);
/// Rank 0, which has no work for the others.
void end_ranks(const Mpi& mpi);

/// Any other rank: until rank 0 has no more work.
void work_as_rank(const Mpi& mpi, const DividedFiles& files, const Interruption& interruption);

}  // namespace guardbit::tools

#include "tools/console/division/division.hpp"

#include <iostream>
#include <memory>
#include <utility>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/division/launcher.hpp"
#include "tools/console/division/ranks.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;
using Json = nlohmann::ordered_json;

Part asked_part(const DivisionOptions& options) {
  if (options.part.empty()) return {};
  if (options.part != "auto") return part_of(options.part);
  const auto launch = find_launch();
  if (!launch)
    throw Error("--part auto",
                "no launcher says which process this is (mpirun, srun and mpiexec do)");
  return {launch->rank + 1, launch->ranks};
}

/// %p is the number of the part.
std::string results_path(std::string path, const Part& part) {
  for (std::size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at))
    path.replace(at, 2, std::to_string(part.part));
  return path;
}

/// One piece after the other, but for those that are known.
void work_alone(const DividedFiles& files, const Part& part, PieceResults& results,
                ResultsFile* file, const Interruption& interruption, const std::string& path) {
  const std::size_t pieces = files.description.pieces.size();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    if (!part.takes(piece) || results.contains(piece)) continue;
    const std::string remark = kept_text(results.size(), pieces, path);
    interruption.check(remark);
    try {
      results[piece] = files.work(piece);
    } catch (const Interrupted& interrupted) {
      throw Interrupted{interrupted.exit_status, remark};
    }
    if (file != nullptr) file->add(piece, 0, results[piece]);
  }
}

}  // namespace

void add_division_options(CLI::App& command, DivisionOptions& options) {
  command
      .add_option(
          "--part", options.part,
          "Do only this part of the files, as 3/8, into --results; auto: the one that srun or mpirun gives this process")
      ->type_name("I/N");
  command
      .add_option(
          "--results", options.results,
          "Keep the result of each file here when it is there, and go on with what is kept; %p is the part's number")
      ->type_name("FILE");
}

bool is_divided(const DivisionOptions& options, std::size_t pieces) {
  return !options.part.empty() || !options.results.empty() || (pieces > 1 && is_launched_for_mpi());
}

std::optional<std::vector<Json>> divide(const DivisionOptions& options, const DividedFiles& files,
                                        const Interruption& interruption) {
  const Part part = asked_part(options);
  const bool is_part = !options.part.empty();
  if (is_part && options.results.empty())
    throw Error("--part", "needs --results, the file that 'guardbit " + files.description.command +
                              " merge' takes");
  const std::string path = results_path(options.results, part);
  const std::size_t pieces = files.description.pieces.size();
  never_colour();  // results are the same wherever they go; mpirun makes standard output a terminal
  const bool by_mpi = !is_part && pieces > 1 && is_launched_for_mpi();
  std::unique_ptr<Mpi> mpi = by_mpi ? std::make_unique<Mpi>() : nullptr;
  if (mpi && mpi->rank() != 0) {
    work_as_rank(*mpi, files, interruption);
    return std::nullopt;
  }
  std::unique_ptr<ResultsFile> file;
  try {
    if (!path.empty()) file = std::make_unique<ResultsFile>(path, files.description, part);
  } catch (const Error& error) {
    if (!mpi) throw;
    end_ranks(*mpi);
    throw;
  }
  PieceResults results;
  if (file) results = file->take_known();
  if (mpi)
    lead_ranks(*mpi, files, results, file.get(), interruption, path);
  else
    work_alone(files, part, results, file.get(), interruption, path);
  if (is_part) {
    std::cout << "part " << text_of(part) << ": " << counted(results.size(), "result") << " in "
              << formats::printable(path) << "; 'guardbit " << files.description.command
              << " merge' puts the parts together\n";
    return std::nullopt;
  }
  std::vector<Json> list;
  for (auto& [piece, result] : results) list.push_back(std::move(result));
  return list;
}

}  // namespace guardbit::tools

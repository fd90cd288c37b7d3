#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "tools/console/division/part.hpp"

// Results of pieces of work, kept in a file as soon as each is there: a line of JSON that says what
// the work is, and one for each piece.
namespace guardbit::tools {

/// What a file of results answers.
struct WorkDescription {
  /// of guardbit, as "trace"
  std::string command;
  /// names of all pieces, as files
  std::vector<std::string> pieces;
  /// what else the results depend on
  nlohmann::ordered_json question;

  bool operator==(const WorkDescription&) const = default;
};

using PieceResults = std::map<std::size_t, nlohmann::ordered_json>;

/// JSON of one line; bytes that are no UTF-8, as names of files may have, are replaced.
std::string line_of(const nlohmann::ordered_json& json);

/// A file that grows by a line whenever a piece is finished. A process that is killed leaves all
/// lines but the one that it was writing, which is removed when the file is used again.
class ResultsFile {
 public:
  /// Makes the file, or goes on with it. formats::Error where it holds other work or another part,
  /// and where another process has it.
  ResultsFile(const std::string& path, const WorkDescription& work, const Part& part);
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;
  ~ResultsFile();

  /// What was there.
  PieceResults take_known() { return std::move(known_); }
  /// `rank`: which process of a launcher's made it.
  void add(std::size_t piece, int rank, const nlohmann::ordered_json& result);

 private:
  void write(const std::string& line);

  std::string path_;
  int descriptor_ = -1;
  PieceResults known_;
};

/// Is that what ResultsFile writes?
bool is_results_file(const std::string& path);

/// What `use` makes of kept results. formats::Error of the command where they have another shape.
template <class Use>
auto of_kept_results(const std::string& command, const Use& use) {
  try {
    return use();
  } catch (const nlohmann::json::exception&) {
    throw formats::Error(command, "a kept result is not what guardbit writes");
  }
}

/// The results of every piece that files of one work hold together, in whatever order the files
/// come. formats::Error where they are of different work, differ in the result of a piece, or leave
/// pieces out, whose parts it names.
std::vector<nlohmann::ordered_json> merged_results_of(const std::string& command,
                                                      std::span<const std::string> files);

}  // namespace guardbit::tools

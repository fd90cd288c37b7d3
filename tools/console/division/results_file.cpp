#include "tools/console/division/results_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "formats/files/text_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/joined.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/read_json.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;
using Json = nlohmann::ordered_json;

constexpr const char* kind = "results";

/// What a file of results holds.
struct Content {
  WorkDescription work;
  Part part;
  PieceResults results;
  /// of the complete lines
  std::size_t bytes = 0;
};

Error no_results(const std::string& path, const std::string& why) {
  return {formats::printable(path), "no file of results: " + why};
}

Json header_of(const WorkDescription& work, const Part& part) {
  return {{"kind", kind},        {"command", work.command},   {"part", part.part},
          {"parts", part.parts}, {"question", work.question}, {"pieces", work.pieces}};
}

/// Nothing where the text has no complete line.
std::optional<Content> parsed(const std::string& path, const std::string& text) {
  Content content;
  bool is_first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const auto line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end),
                                  limited_depth(formats::printable(path)));
    if (is_first) {
      if (line.at("kind") != kind) throw no_results(path, "it is of another kind");
      content.work = {line.at("command").get<std::string>(),
                      line.at("pieces").get<std::vector<std::string>>(), line.at("question")};
      content.part = {line.at("part").get<int>(), line.at("parts").get<int>()};
      if (content.part.part < 1 || content.part.part > content.part.parts)
        throw no_results(path, text_of(content.part) + " is no part");
    } else {
      const Json& piece = line.at("piece");
      if (!piece.is_number_unsigned() || piece >= content.work.pieces.size())
        throw no_results(path, "it has no piece " + line_of(piece));
      content.results[piece.get<std::size_t>()] = line.at("result");
    }
    is_first = false;
    begin = content.bytes = end + 1;
  }
  if (is_first) return std::nullopt;
  return content;
}

std::optional<Content> content_of(const std::string& path) {
  const std::string text = formats::read_text(path);
  try {
    return parsed(path, text);
  } catch (const nlohmann::json::exception&) {
    throw no_results(path, "a line of it is not what guardbit writes");
  }
}

/// As JSON keeps it.
WorkDescription as_written(const WorkDescription& work) {
  const Json header = Json::parse(line_of(header_of(work, {})));
  return {work.command, header["pieces"].get<std::vector<std::string>>(), header["question"]};
}

std::string difference_of(const WorkDescription& a, const WorkDescription& b) {
  if (a.command != b.command) return "it is of guardbit " + a.command;
  if (a.pieces != b.pieces) return "it is of other files";
  return "its options are others";
}

}  // namespace

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ResultsFile::ResultsFile(const std::string& path, const WorkDescription& work, const Part& part)
    : path_(path) {
  const auto refuse = [&](const std::string& what) {
    if (descriptor_ >= 0) close(descriptor_);
    throw Error(formats::printable(path), what);
  };
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse("another process writes it");
  std::optional<Content> content;
  try {
    content = content_of(path);
  } catch (const Error&) {
    close(descriptor_);
    throw;
  }
  if (!content) {
    if (ftruncate(descriptor_, 0) != 0) refuse(std::strerror(errno));
    write(line_of(header_of(work, part)));
    return;
  }
  const WorkDescription wanted = as_written(work);
  if (content->work != wanted)
    refuse("has results of another work: " + difference_of(content->work, wanted));
  if (content->part != part)
    refuse("has results of part " + text_of(content->part) + ", not " + text_of(part));
  if (ftruncate(descriptor_, static_cast<off_t>(content->bytes)) != 0) refuse(std::strerror(errno));
  known_ = std::move(content->results);
}

ResultsFile::~ResultsFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ResultsFile::write(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error(formats::printable(path_), std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
}

void ResultsFile::add(std::size_t piece, int rank, const Json& result) {
  write(line_of({{"piece", piece}, {"rank", rank}, {"result", result}}));
}

bool is_results_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Long enough for what comes before the names of files.
  std::string begin(256, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.starts_with(std::string("{\"kind\":\"") + kind + "\",\"command\":");
}

std::vector<Json> merged_results_of(const std::string& command,
                                    std::span<const std::string> files) {
  const std::string where = command + " merge";
  if (files.empty()) throw Error(where, "no files");
  WorkDescription work;
  PieceResults results;
  std::map<std::size_t, std::string> file_of;
  Part part;
  for (const std::string& file : files) {
    std::optional<Content> content = content_of(file);
    if (!content) throw no_results(file, "it has no complete line");
    if (content->work.command != command)
      throw Error(formats::printable(file), "has results of guardbit " + content->work.command);
    if (work.command.empty()) {
      work = content->work;
      part = content->part;
    } else if (content->work != work) {
      throw Error(formats::printable(file), "has results of another work than " +
                                                formats::printable(files.front()) + ": " +
                                                difference_of(content->work, work));
    }
    part.parts = std::max(part.parts, content->part.parts);
    for (auto& [piece, result] : content->results) {
      const auto [at, is_new] = results.emplace(piece, result);
      if (is_new)
        file_of[piece] = file;
      else if (at->second != result)
        throw Error(formats::printable(file),
                    "its result of " + formats::printable(work.pieces[piece]) +
                        " differs from that of " + formats::printable(file_of[piece]));
    }
  }
  std::set<int> missing;
  for (std::size_t piece = 0; piece < work.pieces.size(); ++piece)
    if (!results.contains(piece))
      missing.insert(static_cast<int>(piece % static_cast<std::size_t>(part.parts)) + 1);
  if (!missing.empty()) {
    const auto part_text = [&](int number) { return text_of({number, part.parts}); };
    throw Error(where, std::to_string(work.pieces.size() - results.size()) + " of " +
                           counted(work.pieces.size(), "result") + " missing: run --part " +
                           formats::joined(missing, ", ", part_text) +
                           " again (with its --results it goes on)");
  }
  std::vector<Json> list;
  for (auto& [piece, result] : results) list.push_back(std::move(result));
  return list;
}

}  // namespace guardbit::tools

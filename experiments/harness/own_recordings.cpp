#include "experiments/harness/own_recordings.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "formats/support/own_file.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::experiments {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::vector<std::string> recording_folders() {
  std::vector<std::string> folders;
  if (const char* const told = std::getenv("GUARDBIT_DATA"); told != nullptr && *told != '\0')
    folders.emplace_back(told);
  folders.emplace_back(own_recordings);
  const fs::path program = formats::own_file();
  if (program.empty()) return folders;
  constexpr const char* share = "share/guardbit/golden";
  folders.push_back((program.parent_path() / share).string());
  folders.push_back((program.parent_path().parent_path() / share).string());
  return folders;
}

std::optional<std::string> find_recording(const std::string& name) {
  const bool is_own = name == own_recordings || name.starts_with(std::string(own_recordings) + "/");
  if (!is_own || is_there(name)) return name;
  const fs::path below = fs::path(name).lexically_relative(own_recordings);
  for (const std::string& folder : recording_folders())
    if (const fs::path path = folder / below; is_there(path)) return path.string();
  return std::nullopt;
}

std::string missing_recording(const std::string& name, std::string_view parameter) {
  std::string looked;
  for (const std::string& folder : recording_folders())
    looked += (looked.empty() ? "" : ", ") + formats::printable(folder);
  return "Not there, so not asked: " + name + " (looked for below " + looked +
         "; GUARDBIT_DATA names another folder, --set " + std::string(parameter) +
         "= another recording).";
}

}  // namespace guardbit::experiments

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The project's own recordings, which experiments ask unless they are told of others.
namespace guardbit::experiments {

/// How parameters name them: the folder in the repository.
inline constexpr std::string_view own_recordings = "tests/golden";

/// Folders that may hold them, in the order in which they are looked for: $GUARDBIT_DATA, the
/// repository as the current folder, share/guardbit/golden beside the program or of its
/// installation.
std::vector<std::string> recording_folders();

/// The file or folder of this name. A name below `own_recordings` is looked for in all these
/// folders, any other one is what it says; nothing if it is one of ours and in none of them.
std::optional<std::string> find_recording(const std::string& name);

/// One sentence for what was not found; `parameter` is the one that names another place.
std::string missing_recording(const std::string& name, std::string_view parameter);

}  // namespace guardbit::experiments

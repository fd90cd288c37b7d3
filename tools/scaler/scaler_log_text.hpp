#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Logs of other programs, as rows.
namespace guardbit::tools {

/// The loss scale that a line of a log states, and what it says of the steps since the last one.
struct ScaleMark {
  std::uint64_t step = 0;
  double scale = 0;
  std::optional<std::uint64_t> skipped;
};

/// The lines "iteration N/M | … | loss scale: S | … | number of skipped iterations: K |" of
/// Megatron-LM; empty where there are none.
std::vector<ScaleMark> megatron_marks(std::string_view text);

/// Cells of a line: words in double quotes hold separators, too.
std::vector<std::string> cells_of_line(std::string_view line, char separator);

/// Whether these bytes begin as TensorBoard's event files do.
bool is_event_file(std::string_view bytes);

/// The scalars of an event file: an object {"step": N, TAG: VALUE, …} for each step, with null
/// where a tag has no value. Throws Error, which names the file, for what is cut or damaged.
nlohmann::json event_rows(const std::string& file, std::string_view bytes);

}  // namespace guardbit::tools

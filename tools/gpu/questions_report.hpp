#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/questions/questionnaire.hpp"

namespace guardbit::tools {

/// "f16 results …" and below it inputs, words, conclusion and instructions, for a terminal.
void print_sections(const std::vector<gpu::Section>& sections);

/// The sections, what other commands answer and what other machines would (docs/hardware).
nlohmann::ordered_json sections_json(const std::vector<gpu::Section>& sections);

}  // namespace guardbit::tools

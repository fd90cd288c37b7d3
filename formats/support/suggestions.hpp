#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace guardbit::formats {

/// ASCII letters in lower case; names are compared that way.
std::string lower_case(std::string_view text);

/// The candidates that a misspelt `name` most likely meant, nearest first, at most `count`; empty
/// when none is near. Near: an edit distance (insertions, deletions, substitutions, swaps of
/// neighbours) of up to a third of the name, or the name as a prefix or a part of the candidate.
std::vector<std::string_view> nearest_names(std::string_view name,
                                            const std::vector<std::string_view>& candidates,
                                            std::size_t count = 3);

/// "unknown KIND 'NAME'; did you mean A or B?"; the question only when something is near.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string_view>& candidates);

}  // namespace guardbit::formats

#include "emulator/faults/fault.hpp"

#include <array>
#include <cstdio>

#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// In the order of FaultKind.
constexpr std::array meanings = {
    std::string_view("the products of these k are not in the sum"),
    std::string_view("the products of these k are in the sum twice"),
    std::string_view("the products of these k are subtracted"),
    std::string_view("the products of this k have another factor"),
    std::string_view("for these k an operand holds what belongs to other k"),
    std::string_view("one operand's k are in another order than the other's"),
    std::string_view("elements behind the end of K are added"),
    std::string_view("rows of D hold what belongs to other rows"),
    std::string_view("columns of D hold what belongs to other columns"),
    std::string_view("an operand, C, D or tiles of one are transposed"),
    std::string_view("a tile of D or of an operand holds what belongs to another place"),
    std::string_view("elements of an operand or of D stand in other places of their fragments"),
    std::string_view("a tile of D holds another tile's sum besides its own"),
    std::string_view("a tile of an operand holds other numbers"),
    std::string_view("another matrix stands in the place of an operand"),
    std::string_view("elements of an operand have lost their sign or have the other one"),
    std::string_view("elements of an operand or of D are zero here and there"),
    std::string_view("a matrix was read or written with another leading dimension or start"),
    std::string_view("elements of an operand were read as numbers of another format"),
    std::string_view("scales of an operand are those of other places, or other numbers"),
    std::string_view("C or the bias was read from other rows or columns"),
    std::string_view("elements of D are zero, or all one other number, that should not be"),
    std::string_view(
        "elements of D are NaN or infinite where the operands give numbers, or the other way round"),
    std::string_view("one element of A, B or D has another value"),
    std::string_view("the product has another factor"),
    std::string_view("C has another factor"),
    std::string_view("C is not added"),
    std::string_view("a constant is added to every element"),
    std::string_view("a number for each row or for each column is added"),
    std::string_view("rows or columns of D have factors of their own"),
    std::string_view("D went through a function, or not through the one that was asked for"),
    std::string_view("D is limited to a range"),
    std::string_view("integers are right only modulo a power of two"),
    std::string_view("operands were converted to a narrower format"),
    std::string_view("D went through a narrower format"),
    std::string_view("sums, or products before they are added, were kept in a narrower format"),
    std::string_view("D is wrong in a way that has no name here"),
};
static_assert(meanings.size() == formats::words_of<FaultKind>.size());

}  // namespace

std::string_view meaning_of(FaultKind kind) { return meanings[static_cast<std::size_t>(kind)]; }

bool is_conversion(FaultKind kind) {
  return kind == FaultKind::converted_input || kind == FaultKind::converted_output ||
         kind == FaultKind::narrow_accumulator;
}

std::vector<Places> places_of(const std::vector<std::int64_t>& numbers) {
  std::vector<Places> result;
  for (const std::int64_t i : numbers) {
    if (!result.empty() && result.back().end == i)
      ++result.back().end;
    else
      result.push_back({i, i + 1});
  }
  return result;
}

std::vector<std::int64_t> numbers_in(const std::vector<Places>& places) {
  std::vector<std::int64_t> numbers;
  for (const Places& range : places)
    for (std::int64_t i = range.begin; i < range.end; ++i) numbers.push_back(i);
  return numbers;
}

std::string text_of(const std::vector<Places>& places) {
  const auto range = [](const Places& x) {
    return std::to_string(x.begin) +
           (x.end == x.begin + 1 ? "" : " to " + std::to_string(x.end - 1));
  };
  constexpr std::size_t most = 4;
  if (places.size() > 2) {
    const std::int64_t step = places[1].begin - places[0].begin;
    bool is_regular = true;
    for (std::size_t i = 1; i < places.size(); ++i)
      is_regular = is_regular && places[i].begin == places[i - 1].begin + step &&
                   (places[i].end - places[i].begin == places[0].end - places[0].begin ||
                    i + 1 == places.size());
    if (is_regular)
      return range(places[0]) + " and the same every " + std::to_string(step) + " further, up to " +
             std::to_string(places.back().end - 1);
  }
  std::string text;
  for (std::size_t i = 0; i < places.size() && i < most; ++i)
    text += (text.empty() ? "" : ", ") + range(places[i]);
  if (places.size() > most)
    text += " and " + std::to_string(places.size() - most) +
            (places.size() == most + 1 ? " further range" : " further ranges");
  return text;
}

bool is_one(const std::vector<Places>& places) {
  return places.size() == 1 && places[0].end == places[0].begin + 1;
}

std::string lines_of(const std::string& noun, const std::vector<Places>& places) {
  return noun + (is_one(places) ? " " : "s ") + text_of(places);
}

std::string k_text(const std::vector<Places>& ranges, std::int64_t k) {
  std::string text = text_of(ranges);
  if (ranges.size() != 1) return text;
  const std::int64_t length = ranges[0].end - ranges[0].begin;
  if (length == k) return text + ", all of them,";
  const bool is_tile = length >= 8 && (length & (length - 1)) == 0 && ranges[0].begin % length == 0;
  if (ranges[0].end == k)
    return text + ", the last " + std::to_string(length) + " of " + std::to_string(k) + ",";
  if (is_tile && length < k)
    text += " (tile " + std::to_string(ranges[0].begin / length) + " of " +
            std::to_string((k + length - 1) / length) + " tiles of " + std::to_string(length) + ")";
  return text;
}

std::string text_of(double number, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return text.data();
}

Fault wrong_element(std::int64_t row, std::int64_t column, double value) {
  return {.kind = FaultKind::wrong_element,
          .rows = {{row, row + 1}},
          .columns = {{column, column + 1}},
          .value = value,
          .operand = "d",
          .text = "element [" + std::to_string(row) + ", " + std::to_string(column) +
                  "] of D is wrong by itself: " + text_of(value, 9)};
}

}  // namespace guardbit::emulator

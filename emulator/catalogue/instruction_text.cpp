#include "emulator/catalogue/instruction_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;

constexpr std::array<std::string_view, 9> keys = {
    "name", "arch", "family", "shape", "formats", "scale", "sparsity", "toolkit", "evidence"};

std::string number(long x) { return std::to_string(x); }

std::string selection_text(const Selection& selection) {
  std::string text;
  for (int r = 0; r < selection.modulus; ++r)
    if (selection.contains(r)) text += (text.empty() ? "" : ",") + number(r);
  return number(selection.modulus) + ":" + text;
}

std::string step_text(const Step& step) {
  std::string text = "step     " + std::string(formats::word_of(step.operation));
  const Step plain;
  if (step.selection != plain.selection) text += " k=" + selection_text(step.selection);
  text += " addend=" + source_text(step.addend);
  if (step.other != plain.other) text += " other=" + source_text(step.other);
  text += " into=" + formats::name_of(step.result);
  if (step.widened) text += " widened=" + formats::name_of(*step.widened);
  for (const AccumulatorField& field : accumulator_fields()) {
    const long value = field.get(step.spec);
    const bool always = field.name == "summation" && step.operation == Operation::dot;
    if (always || value != field.get(plain.spec))
      text += " " + std::string(field.name) + "=" + field.text(value);
  }
  return text + "\n";
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

/// Texts that instructions point to; they live as long as the program.
std::string_view kept(std::string_view text) {
  static std::set<std::string, std::less<>> texts;
  return *texts.emplace(text).first;
}

/// The first word, and the rest without blanks on either side.
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
  const std::size_t rest = std::min(text.find_first_not_of(blanks, end), text.size());
  const std::size_t last = text.find_last_not_of(blanks);
  return {text.substr(begin, end - begin),
          rest == text.size() ? std::string_view{} : text.substr(rest, last + 1 - rest)};
}

/// The lines of one text.
class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  MatrixInstruction parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    line_ = 0;
    for (const std::string_view key : {"name", "arch", "shape", "formats"})
      if (seen_.count(std::string(key)) == 0) refuse("no line '" + std::string(key) + "'");
    check_instruction();
    return instruction_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& valid = {}) const {
    const std::string where = where_ + (line_ == 0 ? "" : ": line " + number(line_));
    if (valid.empty()) throw Error(where, what);
    throw Error(where, what, valid);
  }

  long read_number(std::string_view text, long least, long most) const {
    long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
      refuse(formats::in_quotes(text) + " is not valid", number(least) + " to " + number(most));
    return value;
  }

  Format read_format(std::string_view text) const {
    return formats::require_format(text, where_ + ": line " + number(line_));
  }

  template <class Names>
  std::size_t read_word(std::string_view text, const Names& names) const {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    std::string list;
    for (const std::string_view name : names)
      list += (list.empty() ? "" : ", ") + std::string(name);
    refuse(formats::in_quotes(text) + " is not valid", list);
  }

  template <class Enum>
  Enum read_enumerator(std::string_view text) const {
    return static_cast<Enum>(read_word(text, formats::words_of<Enum>));
  }

  std::vector<std::string_view> words_of(std::string_view text, std::size_t count) const {
    std::vector<std::string_view> words;
    while (!text.empty()) {
      const auto [word, rest] = split_word(text);
      words.push_back(word);
      text = rest;
    }
    if (count != 0 && words.size() != count)
      refuse(number(static_cast<long>(words.size())) + " words where " +
             number(static_cast<long>(count)) + " belong");
    return words;
  }

  void read_line(std::string_view line) {
    const auto [key, rest] = split_word(line);
    if (key.empty() || key.starts_with('#')) return;
    if (key == "step") return read_step(rest);
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      refuse(formats::unknown_name("key", key, {keys.begin(), keys.end()}));
    if (!seen_.emplace(key).second) refuse("a second line '" + std::string(key) + "'");
    if (rest.empty()) refuse("nothing after '" + std::string(key) + "'");
    read_value(key, rest);
  }

  void read_value(std::string_view key, std::string_view rest) {
    if (key == "name") {
      if (rest.size() > instruction_.name.text.size()) refuse("the name is too long");
      instruction_.name = Name(words_of(rest, 1)[0]);
    } else if (key == "arch") {
      instruction_.arch = kept(words_of(rest, 1)[0]);
    } else if (key == "family") {
      instruction_.family = read_enumerator<Family>(rest);
    } else if (key == "shape") {
      read_shape(rest);
    } else if (key == "formats") {
      const auto words = words_of(rest, 4);
      instruction_.a = read_format(words[0]), instruction_.b = read_format(words[1]);
      instruction_.c = read_format(words[2]), instruction_.d = read_format(words[3]);
    } else if (key == "scale") {
      const auto words = words_of(rest, 2);
      instruction_.scale = {read_format(words[0]),
                            static_cast<int>(read_number(words[1], 1, max_k))};
    } else if (key == "sparsity") {
      const auto words = words_of(rest, 3);
      instruction_.sparsity = {static_cast<int>(read_number(words[0], 2, 16)),
                               static_cast<int>(read_number(words[1], 1, 8)),
                               static_cast<int>(read_number(words[2], 1, 8))};
    } else if (key == "toolkit") {
      const auto words = words_of(rest, 2);
      instruction_.toolkit = {static_cast<int>(read_number(words[0], 0, 99999)),
                              static_cast<int>(read_number(words[1], 0, 99999))};
    } else {
      const auto [basis, source] = split_word(rest);
      instruction_.evidence = {read_enumerator<Basis>(basis), kept(source)};
    }
  }

  /// m16n8k16
  void read_shape(std::string_view text) {
    const std::size_t n = text.find('n'), k = text.find('k');
    if (!text.starts_with('m') || n == std::string_view::npos || k == std::string_view::npos ||
        k < n)
      refuse(formats::in_quotes(text) + " is not a shape", "such as m16n8k16, m0n0k16");
    instruction_.shape.m = static_cast<int>(read_number(text.substr(1, n - 1), 0, 4096));
    instruction_.shape.n = static_cast<int>(read_number(text.substr(n + 1, k - n - 1), 0, 4096));
    instruction_.shape.k = static_cast<int>(read_number(text.substr(k + 1), 1, max_k));
  }

  Source read_source(std::string_view text) const {
    std::string valid;
    for (const Source source : {Source::c, Source::positive_zero, Source::negative_zero,
                                Source::step_0, Source::step_1, Source::step_2, Source::step_3}) {
      if (static_cast<int>(source) >= instruction_.steps.count) break;
      const std::string word = source_text(source);
      if (text == word) return source;
      valid += (valid.empty() ? "" : ", ") + word;
    }
    refuse(formats::in_quotes(text) + " is nothing to add", valid);
  }

  Selection read_selection(std::string_view text) const {
    const std::size_t colon = std::min(text.find(':'), text.size());
    Selection selection{static_cast<int>(read_number(text.substr(0, colon), 1, 32)), 0};
    text.remove_prefix(std::min(colon + 1, text.size()));
    while (!text.empty()) {
      const std::size_t comma = std::min(text.find(','), text.size());
      selection.residues |= 1U << read_number(text.substr(0, comma), 0, selection.modulus - 1);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    if (selection.residues == 0) refuse("a selection of no k");
    return selection;
  }

  void read_field(Step& step, std::string_view key, std::string_view value) const {
    const auto fields = accumulator_fields();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const AccumulatorField& f) { return f.name == key; });
    if (field == fields.end()) {
      std::vector<std::string_view> names = {"k", "addend", "other", "into", "widened"};
      for (const AccumulatorField& f : fields) names.push_back(f.name);
      refuse(formats::unknown_name("field", key, names));
    }
    const long given = field->words.empty()
                           ? read_number(value, field->least, field->greatest)
                           : static_cast<long>(read_word(value, field->accepted_words()));
    field->set(step.spec, given);
  }

  void read_step(std::string_view text) {
    if (instruction_.steps.count == static_cast<int>(instruction_.steps.list.size()))
      refuse("more than " + number(instruction_.steps.count) + " steps");
    const auto words = words_of(text, 0);
    Step step;
    step.operation = read_enumerator<Operation>(words.empty() ? std::string_view{} : words[0]);
    bool has_result = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      if (equals == std::string_view::npos)
        refuse(formats::in_quotes(words[i]) + " is not KEY=VALUE");
      const std::string_view key = words[i].substr(0, equals), value = words[i].substr(equals + 1);
      if (key == "k") {
        step.selection = read_selection(value);
      } else if (key == "addend") {
        step.addend = read_source(value);
      } else if (key == "other") {
        step.other = read_source(value);
      } else if (key == "into") {
        step.result = read_format(value);
        has_result = true;
      } else if (key == "widened") {
        step.widened = read_format(value);
      } else {
        read_field(step, key, value);
      }
    }
    if (!has_result) refuse("a step needs into=FORMAT");
    instruction_.steps.list[static_cast<std::size_t>(instruction_.steps.count++)] = step;
  }

  /// What the model's accumulators have no room for, or its steps no meaning.
  void check_instruction() const {
    if (instruction_.steps.count == 0) refuse("no line 'step'");
    const Step& last =
        instruction_.steps.list[static_cast<std::size_t>(instruction_.steps.count - 1)];
    if (last.result != instruction_.d)
      refuse("the last step gives " + formats::name_of(last.result) + ", not D's " +
             formats::name_of(instruction_.d));
    const bool whole = formats::is_integer(instruction_.a);
    if (formats::is_integer(instruction_.b) != whole ||
        formats::is_integer(instruction_.c) != whole ||
        formats::is_integer(instruction_.d) != whole)
      refuse("A, B, C and D must all be integers, or none of them");
    const Sparsity& s = instruction_.sparsity;
    if (s.group_elements != 0 &&
        (instruction_.shape.k % s.group_elements != 0 || s.stored_per_group > s.group_elements ||
         s.stored_per_group % s.chunk != 0 || s.group_elements % s.chunk != 0))
      refuse("the sparse groups do not divide K");
    if (instruction_.scale.count != 0 && instruction_.shape.k % instruction_.scale.count != 0)
      refuse("the scales do not divide K");
    for (const Step& step : instruction_.steps) check_step(step, whole);
  }

  void check_step(const Step& step, bool whole) const {
    const Summation sum = step.spec.summation;
    if (step.operation == Operation::dot && (sum == Summation::integer) != whole)
      refuse("integers are summed by summation=integer, and nothing else is");
    if (formats::is_integer(step.result) != whole) refuse("integers and numbers are mixed");
    const bool cuts = step.operation == Operation::dot &&
                      (sum == Summation::two_grids || sum == Summation::two_stage);
    if (step.spec.result_fraction_bits >= std::max(1, step.result.fraction_bits) && !cuts)
      refuse("result_fraction_bits are not fewer than the format has");
    if (step.spec.result_fraction_bits > std::max(30, step.result.fraction_bits))
      refuse("result_fraction_bits are more than 30");
    if (step.operation != Operation::dot) return;
    const bool aligned = cuts || sum == Summation::fused || sum == Summation::exact;
    for (const Format& f : {instruction_.a, instruction_.b, step.widened.value_or(instruction_.a)})
      if (aligned && (f.exponent_bits > 8 || f.fraction_bits > 10))
        refuse("the factors are too wide for summation=" + std::string(formats::word_of(sum)));
  }

  std::string where_;
  long line_ = 0;
  std::set<std::string, std::less<>> seen_;
  MatrixInstruction instruction_;
};

}  // namespace

std::string source_text(Source source) {
  switch (source) {
    case Source::positive_zero: return "0";
    case Source::negative_zero: return "-0";
    case Source::c: return "c";
    default: return "s" + number(static_cast<int>(source) + 1);
  }
}

std::string instruction_text(const MatrixInstruction& instruction) {
  const Shape& s = instruction.shape;
  std::string text = "name     " + std::string(std::string_view(instruction.name)) + "\narch     " +
                     std::string(instruction.arch) + "\nfamily   " +
                     std::string(formats::word_of(instruction.family)) + "\nshape    m" +
                     number(s.m) + "n" + number(s.n) + "k" + number(s.k) + "\nformats  " +
                     formats::name_of(instruction.a) + " " + formats::name_of(instruction.b) + " " +
                     formats::name_of(instruction.c) + " " + formats::name_of(instruction.d) + "\n";
  if (instruction.scale.count != 0)
    text += "scale    " + formats::name_of(instruction.scale.format) + " " +
            number(instruction.scale.count) + "\n";
  if (instruction.sparsity.group_elements != 0)
    text += "sparsity " + number(instruction.sparsity.group_elements) + " " +
            number(instruction.sparsity.stored_per_group) + " " +
            number(instruction.sparsity.chunk) + "\n";
  if (instruction.toolkit.from != 0 || instruction.toolkit.until != 0)
    text += "toolkit  " + number(instruction.toolkit.from) + " " +
            number(instruction.toolkit.until) + "\n";
  text += "evidence " + std::string(formats::word_of(instruction.evidence.basis)) + " " +
          one_line(instruction.evidence.source) + "\n";
  for (const Step& step : instruction.steps) text += step_text(step);
  return text;
}

MatrixInstruction parse_instruction(std::string_view text, std::string_view where) {
  return Parser(where).parse(text);
}

}  // namespace guardbit::emulator

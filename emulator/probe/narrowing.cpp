#include "emulator/probe/narrowing.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::array candidates = {formats::bf16, formats::fp16, formats::tf32, formats::fp32};

bool is_narrower(const Format& f, const Format& than) {
  return f.fraction_bits < than.fraction_bits && f.exponent_bits <= than.exponent_bits;
}

std::vector<std::uint64_t> converted(const Format& from, std::vector<std::uint64_t> codes,
                                     const Format& to, Rounding rounding = Rounding::nearest_even) {
  for (std::uint64_t& code : codes) code = formats::convert(from, code, to, rounding);
  return codes;
}

std::string in_words(Rounding rounding) {
  std::string text(formats::word_of(rounding));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::optional<Narrowed> with_narrower_result(const BlackBox& unit,
                                             std::span<const Answered> answers) {
  constexpr std::size_t fewest = 50;
  if (formats::is_integer(unit.d)) return {};
  for (const Format& f : candidates) {
    if (!is_narrower(f, unit.d)) continue;
    std::set<std::uint64_t> numbers;
    const bool all = std::all_of(answers.begin(), answers.end(), [&](const Answered& x) {
      if (formats::decode(unit.d, x.d).kind != formats::Kind::finite) return true;
      numbers.insert(x.d);
      return formats::convert(f, formats::convert(unit.d, x.d, f), unit.d) == x.d;
    });
    if (!all || numbers.size() < fewest) continue;
    BlackBox box = unit;
    box.d = f;
    if (!unit.has_addend) box.c = f;
    box.answer = [&unit, f](std::span<const Question> questions) {
      std::vector<Question> list(questions.begin(), questions.end());
      if (!unit.has_addend)
        for (Question& q : list) q.c = 0;
      return converted(unit.d, unit.answer(list), f);
    };
    return Narrowed{std::move(box), "every answer is a number of " + formats::name_of(f) +
                                        ": D is taken as " + formats::name_of(f) + ", widened to " +
                                        formats::name_of(unit.d) + " at the end"};
  }
  return {};
}

std::optional<Narrowed> with_narrower_operands(const BlackBox& unit,
                                               std::span<const Answered> answers) {
  constexpr std::size_t most_asked = 300;
  if (formats::is_integer(unit.a) || unit.a != unit.b) return {};
  answers = answers.first(std::min(answers.size(), most_asked));
  for (const Format& f : candidates) {
    if (!is_narrower(f, unit.a)) continue;
    for (const Rounding rounding :
         {Rounding::toward_zero, Rounding::nearest_even, Rounding::nearest_away}) {
      std::vector<Question> list;
      bool changed = false;
      for (const Answered& x : answers) {
        Question q = x.question;
        q.a = converted(f, converted(unit.a, q.a, f, rounding), unit.a);
        q.b = converted(f, converted(unit.b, q.b, f, rounding), unit.b);
        changed = changed || q.a != x.question.a;
        list.push_back(std::move(q));
      }
      if (!changed) return {};
      const Answers again = ask(unit, std::move(list));
      const bool alike = std::equal(
          again.begin(), again.end(), answers.begin(), [&](const Answered& x, const Answered& y) {
            return x.d == y.d || (is_nan(unit.d, x.d) && is_nan(unit.d, y.d));
          });
      if (!alike) continue;
      BlackBox box = unit;
      box.a = box.b = f;
      box.answer = [&unit, f](std::span<const Question> questions) {
        std::vector<Question> widened(questions.begin(), questions.end());
        for (Question& q : widened) {
          q.a = converted(f, std::move(q.a), unit.a);
          q.b = converted(f, std::move(q.b), unit.b);
        }
        return unit.answer(widened);
      };
      return Narrowed{std::move(box), "of A and B only what " + formats::name_of(f) +
                                          " holds counts, rounded " + in_words(rounding) +
                                          ": they are taken as " + formats::name_of(f)};
    }
  }
  return {};
}

}  // namespace guardbit::emulator

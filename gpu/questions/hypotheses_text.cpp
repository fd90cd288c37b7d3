// Text of hypothesis tests: inputs as exact numbers, and as words in hexadecimal.

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

#include "formats/codec.hpp"
#include "gpu/questions/hypotheses.hpp"

namespace guardbit::gpu {

namespace {

/// The exact magnitude: "2^-13", "31*2^-78", "1+2^-23", "127".
std::string magnitude_text(std::uint64_t significand, int exponent) {
  while (significand % 2 == 0) significand /= 2, ++exponent;
  const auto power = [](int e) { return e == 0 ? "1" : "2^" + std::to_string(e); };
  const int top = formats::leading_bit(significand) + exponent;
  if (exponent >= 0 && (top < 10 || (top < 32 && significand > 1)))
    return std::to_string(significand << exponent);
  if (significand == 1) return power(exponent);
  if (significand < 256) return std::to_string(significand) + "*" + power(exponent);
  std::string text;
  for (int bit = 63; bit >= 0; --bit)
    if ((significand >> bit & 1U) != 0) text += (text.empty() ? "" : "+") + power(bit + exponent);
  return text;
}

std::string value_text(const Format& f, std::uint64_t word) {
  const formats::Value v = formats::decode(f, word >> ignored_bits(f));
  const bool cut = (word & formats::low_bits(ignored_bits(f))) != 0;
  if (cut || v.kind == formats::Kind::nan) return "[" + hexadecimal(f, word) + "]";
  const char* const sign = v.negative ? "-" : "";
  if (v.kind == formats::Kind::infinity) return std::string(sign) + "Inf";
  if (v.kind == formats::Kind::zero) return is_integer(f) ? "0" : v.negative ? "-0" : "+0";
  return sign + magnitude_text(v.significand, v.exponent);
}

std::string range_text(const char* prefix, int first, int last) {
  std::string text = prefix + std::to_string(first);
  return last == first ? text : text + ".." + std::to_string(last);
}

/// Visits the terms in order of k; neighbours with equal operands are one visit(first, last, term).
template <class Visit>
void for_each_run(const Trial& trial, Visit visit) {
  std::vector<Term> terms = trial.terms;
  std::ranges::sort(terms, {}, &Term::k);
  for (std::size_t i = 0; i < terms.size();) {
    std::size_t end = i + 1;
    while (end < terms.size() && terms[end].k == terms[end - 1].k + 1 &&
           terms[end].a == terms[i].a && terms[end].b == terms[i].b)
      ++end;
    visit(terms[i].k, terms[end - 1].k, terms[i]);
    i = end;
  }
}

using Part = std::pair<std::string, std::string>;

bool same_operands(const Term& x, const Term& y) { return x.a == y.a && x.b == y.b; }

/// The length r of runs in which two different products alternate over all of K; 0 if they do not.
int alternation(const std::vector<Term>& terms, int k) {
  if (static_cast<int>(terms.size()) != k) return 0;
  for (int run = 1; run < k; run *= 2) {
    const auto first_of_turn = [&](std::size_t i) -> const Term& {
      return terms[i / static_cast<std::size_t>(run) % 2 == 0 ? 0 : static_cast<std::size_t>(run)];
    };
    bool alternates = !same_operands(terms[0], terms[static_cast<std::size_t>(run)]);
    for (std::size_t i = 0; i < terms.size(); ++i)
      alternates = alternates && same_operands(terms[i], first_of_turn(i));
    if (alternates) return run;
  }
  return 0;
}

/// The parts of a trial by name: "c", "p0", "p4..7", and "other p" for what most places hold.
std::vector<Part> parts(const TensorCoreInstruction& instruction, const Trial& trial) {
  const auto product = [&instruction](const Term& t) {
    return value_text(instruction.a, t.a) + " * " + value_text(instruction.b, t.b);
  };
  std::vector<Part> list = {{"c", value_text(instruction.c, trial.c)}};
  Trial rest = trial;
  std::ranges::sort(rest.terms, {}, &Term::k);
  if (const int run = alternation(rest.terms, instruction.stored_k()); run != 0) {
    const Term &first = rest.terms[0], &second = rest.terms[static_cast<std::size_t>(run)];
    list.emplace_back(
        "p", product(first) + " and " + product(second) + ", in turns of " + std::to_string(run));
    return list;
  }
  std::optional<Term> other;
  for (const Term& t : rest.terms) {
    const auto count =
        std::ranges::count_if(rest.terms, [&t](const Term& x) { return same_operands(x, t); });
    if (count < instruction.stored_k() && 2 * count > instruction.stored_k()) other = t;
  }
  if (other) std::erase_if(rest.terms, [&](const Term& t) { return same_operands(t, *other); });
  for_each_run(rest, [&](int first, int last, const Term& t) {
    list.emplace_back(range_text("p", first, last), product(t));
  });
  if (other) list.emplace_back("other p", product(*other));
  return list;
}

}  // namespace

std::string hexadecimal(const Format& format, std::uint64_t word) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llx", (word_bits(format) + 3) / 4,
                static_cast<unsigned long long>(word));
  return text;
}

std::string describe_codes(const TensorCoreInstruction& instruction, const Trial& trial) {
  std::string text = "c=" + hexadecimal(instruction.c, trial.c);
  for_each_run(trial, [&](int first, int last, const Term& t) {
    text += " " + range_text("", first, last) + ":" + hexadecimal(instruction.a, t.a) + "*" +
            hexadecimal(instruction.b, t.b);
  });
  return text;
}

std::string describe_inputs(const HypothesisTest& test) {
  std::vector<std::vector<Part>> all;
  std::map<Part, std::size_t> count;
  for (const Trial& trial : test.trials()) {
    all.push_back(parts(test.instruction, trial));
    for (const auto& part : all.back()) ++count[part];
  }
  std::string shared, varying;
  for (const auto& part : all.front())
    if (count[part] == all.size())
      shared += (shared.empty() ? "" : ", ") + part.first + " = " + part.second;
  if (all.size() == 1) return shared;
  for (const auto& list : all) {
    std::string text;
    for (const auto& part : list)
      if (count[part] != all.size())
        text += (text.empty() ? "" : ", ") + part.first + " = " + part.second;
    varying += (varying.empty() ? "" : " | ") + (text.empty() ? "nothing else" : text);
  }
  return shared.empty() ? varying : shared + "; " + varying;
}

}  // namespace guardbit::gpu

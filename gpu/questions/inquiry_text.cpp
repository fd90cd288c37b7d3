#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

#include "formats/codec.hpp"
#include "gpu/questions/inquiry.hpp"

namespace guardbit::gpu {

namespace {

/// "2^-13", "31*2^-78", "1+2^-23", "127": a magnitude, exactly.
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

/// The terms in order of k, runs of equal ones together: visit(first, last, term).
template <class Visit>
void for_each_run(const Probe& probe, Visit visit) {
  std::vector<Term> terms = probe.terms;
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

/// 0, or the r for which two products fill K in turns of r places.
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

/// The parts of a probe by name: "c", "p0", "p4..7", and "other p" for what most places hold.
std::vector<Part> parts(const TensorCoreInstruction& row, const Probe& probe) {
  const auto product = [&row](const Term& t) {
    return value_text(row.a, t.a) + " * " + value_text(row.b, t.b);
  };
  std::vector<Part> list = {{"c", value_text(row.c, probe.c)}};
  Probe rest = probe;
  std::ranges::sort(rest.terms, {}, &Term::k);
  if (const int run = alternation(rest.terms, row.stored_k()); run != 0) {
    const Term &first = rest.terms[0], &second = rest.terms[static_cast<std::size_t>(run)];
    list.emplace_back(
        "p", product(first) + " and " + product(second) + ", in turns of " + std::to_string(run));
    return list;
  }
  std::optional<Term> other;
  for (const Term& t : rest.terms) {
    const auto count =
        std::ranges::count_if(rest.terms, [&t](const Term& x) { return same_operands(x, t); });
    if (count < row.stored_k() && 2 * count > row.stored_k()) other = t;
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

std::string describe_codes(const TensorCoreInstruction& row, const Probe& probe) {
  std::string text = "c=" + hexadecimal(row.c, probe.c);
  for_each_run(probe, [&](int first, int last, const Term& t) {
    text += " " + range_text("", first, last) + ":" + hexadecimal(row.a, t.a) + "*" +
            hexadecimal(row.b, t.b);
  });
  return text;
}

std::string describe_inputs(const Inquiry& inquiry) {
  std::vector<std::vector<Part>> all;
  std::map<Part, std::size_t> count;
  for (const Probe& probe : inquiry.probes()) {
    all.push_back(parts(inquiry.row, probe));
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

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

#include "formats/codec.hpp"
#include "gpu/inquiry.hpp"

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

/// The parts of a probe by name: "c" and "p0", "p4..7".
std::vector<std::pair<std::string, std::string>> parts(const TensorCoreInstruction& row,
                                                       const Probe& probe) {
  std::vector<std::pair<std::string, std::string>> list = {{"c", value_text(row.c, probe.c)}};
  for_each_run(probe, [&](int first, int last, const Term& t) {
    list.emplace_back(range_text("p", first, last),
                      value_text(row.a, t.a) + " * " + value_text(row.b, t.b));
  });
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
  std::vector<std::vector<std::pair<std::string, std::string>>> all;
  std::map<std::pair<std::string, std::string>, std::size_t> count;
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

#include "tests/mutation/vectors.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/mma.hpp"
#include "formats/codec.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

using Codes = std::vector<std::uint64_t>;
using formats::Format;

emulator::ConstCodes view_of(const Codes& codes) {
  return {reinterpret_cast<const std::byte*>(codes.data()), sizeof(std::uint64_t)};
}

Codes padded(Codes codes, std::size_t size) {
  codes.resize(std::max(size, codes.size()), 0);
  return codes;
}

/// Exponents of the units and leading bits of the products, over all pairs.
struct ProductRange {
  int lowest_unit = 0, highest_bit = 0;
};

ProductRange product_range(const MatrixInstruction& instruction, const DotInputs& x) {
  ProductRange range;
  for (std::size_t i = 0; i < x.a.size() && i < x.b.size(); ++i) {
    const formats::Unrounded product = formats::multiply(formats::decode(instruction.a, x.a[i]),
                                                         formats::decode(instruction.b, x.b[i]));
    if (product.kind != formats::Kind::finite) continue;
    range.lowest_unit = std::min(range.lowest_unit, product.exponent);
    range.highest_bit =
        std::max(range.highest_bit, product.exponent + formats::leading_bit(product.significand));
  }
  return range;
}

/// Products of significands that 64 bits hold with room for their sum; only FP64's can be larger.
bool small_significands(const MatrixInstruction& instruction, const DotInputs& x) {
  for (std::size_t i = 0; i < x.a.size() && i < x.b.size(); ++i) {
    const formats::uint128 product =
        formats::uint128{formats::decode(instruction.a, x.a[i]).significand} *
        formats::decode(instruction.b, x.b[i]).significand;
    if (formats::leading_bit(product) > 52) return false;
  }
  return true;
}

/// The exact sum has 640 bits from 2^-320 on, the sum of a group and of integers 64 bits.
bool within_widths(const MatrixInstruction& instruction, const DotInputs& x) {
  for (const emulator::Step& step : instruction.steps) {
    if (step.operation != emulator::Operation::dot) continue;
    if (step.spec.summation == emulator::Summation::exact) {
      const ProductRange range = product_range(instruction, x);
      const formats::Value c = formats::decode(instruction.c, x.c);
      if (range.lowest_unit < -320 || range.highest_bit > 300) return false;
      if (c.kind == formats::Kind::finite && (c.exponent < -320 || c.exponent > 200)) return false;
    }
    if (step.spec.summation == emulator::Summation::integer &&
        !small_significands(instruction, x)) {
      return false;
    }
    if (step.spec.exact_group > 1) {
      const int unit = formats::min_exponent(instruction.a) - instruction.a.fraction_bits +
                       formats::min_exponent(instruction.b) - instruction.b.fraction_bits;
      if (product_range(instruction, x).highest_bit - unit > 48) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> computed(const MatrixInstruction& instruction, const TestVector& v) {
  if (!within_widths(instruction, v.x)) return {};
  const auto room = static_cast<std::size_t>(emulator::max_k);
  const auto scales = static_cast<std::size_t>(instruction.scale.count);
  const Codes a = padded(v.x.a, room), b = padded(v.x.b, 2 * room), e = padded(v.e, room);
  const Codes a_scale = padded(v.x.a_scale, scales);
  const Codes b_scale = padded(v.x.b_scale, scales);
  const Codes c = {v.x.c};
  emulator::MatrixBatch batch;
  batch.count = 1;
  batch.shape = {1, 1, static_cast<int>(v.x.b.size())};
  batch.a = view_of(a);
  batch.b = view_of(b);
  batch.c = view_of(c);
  batch.e = view_of(e);
  batch.a_scale = view_of(a_scale);
  batch.b_scale = view_of(b_scale);
  MatrixInstruction as_long =
      instruction;  // a vector has the products it lists and no zeros after them
  as_long.shape.k = batch.shape.k;
  return emulator::dot(as_long, emulator::gather(as_long, batch, 0, 0, 0).view());
}

// ---- The file ----------------------------------------------------------------------------------

namespace {

int digits(const Format& f) { return (formats::bits(f) + 3) / 4; }

std::string hex(std::uint64_t code, int width) {
  std::string text(static_cast<std::size_t>(width), '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, code >>= 4) {
    *digit = "0123456789abcdef"[code & 15];
  }
  return text;
}

std::string hex(const Codes& codes, int width) {
  auto end = codes.size();
  while (end > 0 && codes[end - 1] == 0) --end;
  std::string text;
  for (std::size_t i = 0; i < end; ++i) text += hex(codes[i], width);
  return text;
}

Codes codes_from(const std::string& text, int width, std::size_t size) {
  Codes codes;
  const auto step = static_cast<std::size_t>(width);
  for (std::size_t at = 0; at < text.size(); at += step) {
    codes.push_back(std::stoull(text.substr(at, step), nullptr, 16));
  }
  if (codes.size() > size) throw std::runtime_error("more codes than products");
  codes.resize(size, 0);
  return codes;
}

std::string header_of(const MatrixInstruction& instruction) {
  return std::string(instruction.arch) + " " + std::to_string(toolkit_of(instruction)) + " " +
         std::to_string(instruction.shape.k) + " " +
         std::string(std::string_view(instruction.name));
}

MatrixInstruction instruction_from(const std::string& line) {
  std::istringstream words(line);
  std::string arch, name;
  int toolkit = 0, products = 0;
  words >> arch >> toolkit >> products >> name;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != arch || std::string_view(instruction.name) != name ||
        !instruction.toolkit.includes(toolkit)) {
      continue;
    }
    MatrixInstruction found = instruction;
    found.shape.k = products;
    return found;
  }
  throw std::runtime_error("not an instruction of the catalogue");
}

TestVector vector_from(const std::string& line, MatrixInstruction& instruction) {
  TestVector v;
  std::istringstream words(line);
  std::map<std::string, std::string> values;
  words >> v.purpose;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error("no '=' in '" + word + "'");
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const bool sparse = values.count("e") != 0;
  if (!sparse) instruction.sparsity = {};
  const auto k = static_cast<std::size_t>(instruction.shape.k);
  const auto stored =
      static_cast<std::size_t>(emulator::stored_k(instruction, instruction.shape.k));
  const auto scales = static_cast<std::size_t>(instruction.scale.count);
  v.x.a = codes_from(values.at("a"), digits(instruction.a), stored);
  v.x.b = codes_from(values.at("b"), digits(instruction.b), k);
  v.x.c = codes_from(values.at("c"), digits(instruction.c), 1).front();
  v.d = codes_from(values.at("d"), digits(instruction.d), 1).front();
  v.x.a_scale = codes_from(values["sa"], 2, scales);
  v.x.b_scale = codes_from(values["sb"], 2, scales);
  if (sparse) v.e = codes_from(values["e"], 1, stored);
  return v;
}

}  // namespace

std::vector<InstructionVectors> read_vectors(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  std::vector<InstructionVectors> all;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    try {
      if (line.front() != ' ') {
        all.push_back({instruction_from(line), {}});
      } else {
        all.back().list.push_back(vector_from(line, all.back().instruction));
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(file.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return all;
}

void write_vectors(std::ostream& out, const std::vector<InstructionVectors>& all) {
  out << "# Vectors of the mutation test: operands chosen by a search, answers by the oracle.\n"
         "# ARCH TOOLKIT PRODUCTS NAME, then PURPOSE and codes in hexadecimal; zeros at the end are left out.\n";
  for (const auto& [instruction, list] : all) {
    out << header_of(instruction) << "\n";
    for (const TestVector& v : list) {
      out << " " << v.purpose << " a=" << hex(v.x.a, digits(instruction.a))
          << " b=" << hex(v.x.b, digits(instruction.b))
          << " c=" << hex(v.x.c, digits(instruction.c));
      if (!v.x.a_scale.empty())
        out << " sa=" << hex(v.x.a_scale, 2) << " sb=" << hex(v.x.b_scale, 2);
      if (!v.e.empty()) out << " e=" << hex(v.e, 1);
      out << " d=" << hex(v.d, digits(instruction.d)) << "\n";
    }
  }
}

std::filesystem::path vectors_file() { return tests::in_source("tests/mutation/vectors.txt"); }

}  // namespace guardbit::tests

#include "gpu/screening/function_case.hpp"

#include <cstring>

#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "formats/support/parallel.hpp"
#include "formats/text.hpp"
#include "gpu/screening/integer_rounds.hpp"

namespace guardbit::gpu {

namespace {

using emulator::Function;

std::vector<std::byte> bytes_of(const std::vector<std::uint64_t>& codes, int bits) {
  const auto width = static_cast<std::size_t>(bits / 8);
  std::vector<std::byte> bytes(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i)
    std::memcpy(bytes.data() + i * width, &codes[i], width);  // little-endian: low bytes first
  return bytes;
}

/// Every upper half once, with lower halves from all over.
std::uint32_t spread_code(std::uint32_t number) {
  return number << 16 | static_cast<std::uint32_t>(emulator::inputs::mixed(number) >> 48);
}

std::vector<std::vector<std::uint64_t>> operands_of(const Function& function) {
  const formats::Format& format = function.formats.operands[0];
  const int bits = formats::bits(format);
  std::vector<std::vector<std::uint64_t>> operands(function.operands);
  for (std::uint32_t n = 0; n < screened_inputs; ++n) {
    std::array<std::uint64_t, 4> codes = emulator::drawn_operands(format, n);
    if (function.operands == 1 && bits == 16) codes[0] = n;
    if (function.operands == 1 && bits == 32) codes[0] = spread_code(n);
    // The unit's own forms of FP64 read the upper word alone.
    if (function.formatted_form != nullptr && bits == 64)
      codes[0] = std::uint64_t{spread_code(n)} << 32;
    for (std::size_t i = 0; i < operands.size(); ++i) operands[i].push_back(codes[i]);
  }
  return operands;
}

}  // namespace

FunctionCase make_function_case(const std::string& name, int threads) {
  const Function& function = emulator::require_function("sm_90", name, "gpu screen");
  FunctionCase x;
  x.name = name;
  x.bits = formats::bits(function.formats.operands[0]);
  x.is_proven = function.evidence.basis == emulator::Basis::measured;
  const std::vector<std::vector<std::uint64_t>> operands = operands_of(function);
  for (const std::vector<std::uint64_t>& codes : operands)
    x.operands.push_back(bytes_of(codes, x.bits));
  x.expected = bytes_of(emulator::function_results(function, operands, threads)[0], x.bits);
  return x;
}

std::vector<FunctionCase> make_function_cases(std::span<const std::string> names, int threads) {
  std::vector<FunctionCase> cases(names.size());
  formats::parallel_for(names.size(), 1, threads, [&](std::size_t at, std::size_t) {
    cases[at] = make_function_case(names[at], 1);
  });
  return cases;
}

FunctionCase make_integer_case() {
  std::vector<std::uint64_t> operands(screened_inputs), results(screened_inputs);
  for (std::uint32_t n = 0; n < screened_inputs; ++n) {
    operands[n] = emulator::inputs::mixed(n);
    results[n] = integer_rounds(operands[n]);
  }
  return {integer_operations, 64, {bytes_of(operands, 64)}, bytes_of(results, 64), true};
}

std::string operands_text(const FunctionCase& x, std::uint32_t input) {
  const formats::Format word = x.bits == 16   ? formats::uint16
                               : x.bits == 32 ? formats::uint32
                                              : formats::uint64;
  std::string text;
  for (std::size_t i = 0; i < x.operands.size(); ++i) {
    std::uint64_t code = 0;
    const auto width = static_cast<std::size_t>(x.bits / 8);
    std::memcpy(&code, x.operands[i].data() + input * width, width);
    text += (i == 0 ? "" : " ") + std::string(emulator::operand_names.at(i)) + "=" +
            formats::hex_text(word, code);
  }
  return text;
}

}  // namespace guardbit::gpu

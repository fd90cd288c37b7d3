#include "gpu/cuda/injection/fault_draw.hpp"

#include <vector>

#include "formats/format_catalogue.hpp"
#include "gpu/inputs/input_shape.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

using Place = Fault::Place;

/// Where launch.cuh can put a fault.
std::vector<Place> places_of(const TensorCoreInstruction& instruction) {
  switch (instruction.unit) {
    case Unit::mma: return {Place::a, Place::b, Place::product, Place::addend, Place::result};
    case Unit::wmma: return {Place::result};
    default: break;
  }
  if (instruction.ignore_c) return {Place::a, Place::b, Place::result};
  return {Place::a, Place::b, Place::addend, Place::result};
}

const Format& format_at(const TensorCoreInstruction& instruction, Place place) {
  switch (place) {
    case Place::b: return instruction.b;
    case Place::addend: return instruction.c;
    case Place::result: return instruction.d;
    default: return instruction.a;
  }
}

}  // namespace

DrawnFault draw_fault(const ScreenSet& set, int processors, std::uint64_t number) {
  Random random(mixed(number));
  const auto below = [&](std::size_t count) {
    return random.between(0, static_cast<int>(count) - 1);
  };
  DrawnFault drawn;
  drawn.instruction = static_cast<std::size_t>(below(set.cases.size()));
  const TensorCoreInstruction& instruction = *set.cases[drawn.instruction].instruction;
  const std::vector<Place> places = places_of(instruction);
  Fault& fault = drawn.fault;
  fault.place = places[static_cast<std::size_t>(below(places.size()))];
  fault.effect = static_cast<Fault::Effect>(below(3));
  fault.processor = below(static_cast<std::size_t>(processors));
  fault.block = below(processor_blocks);
  fault.lane = below(32);
  // The kernels take it modulo the number of words.
  fault.word = below(1 << 12);
  const Format& format = format_at(instruction, fault.place);
  const int width = word_bits(format), register_bits = width == 64 ? 64 : 32;
  do {
    fault.bit = below(static_cast<std::size_t>(register_bits));
  } while (fault.bit % width < ignored_bits(format));
  return drawn;
}

std::string name_of(Place place) {
  switch (place) {
    case Place::a: return "operand A";
    case Place::b: return "operand B";
    case Place::product: return "multiplier";
    case Place::addend: return "addend";
    case Place::result: return "result";
    case Place::none: break;
  }
  return "none";
}

std::string name_of(Fault::Effect effect) {
  switch (effect) {
    case Fault::Effect::stuck_at_0: return "stuck at 0";
    case Fault::Effect::stuck_at_1: return "stuck at 1";
    case Fault::Effect::flip: break;
  }
  return "flipped";
}

}  // namespace guardbit::gpu

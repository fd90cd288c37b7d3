#include "gpu/operands/ptx_kernel.hpp"

#include "formats/support/error.hpp"
#include "gpu/operands/image_layout.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

std::string list_of(const std::string& prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + prefix + std::to_string(i);
  return "{" + text + "}";
}

/// The lane's address of operand `name` in %p<name>, its registers declared as %<name>0, ….
std::string address_of(const std::string& name, int registers) {
  const std::string pointer = "%p" + name;
  return "  .reg .b32 %" + name + "<" + std::to_string(registers) + ">;\n  .reg .b64 " + pointer +
         ";\n  ld.param.u64 " + pointer + ", [" + name + "];\n  cvta.to.global.u64 " + pointer +
         ", " + pointer + ";\n  mad.wide.u32 " + pointer + ", %lane, " +
         std::to_string(registers * 4) + ", " + pointer + ";\n";
}

std::string load(const std::string& name, int registers) {
  std::string text = address_of(name, registers);
  for (int i = 0; i < registers; ++i)
    text += "  ld.global.b32 %" + name + std::to_string(i) + ", [%p" + name + "+" +
            std::to_string(4 * i) + "];\n";
  return text;
}

std::string store(const std::string& name, int registers) {
  std::string text;
  for (int i = 0; i < registers; ++i)
    text += "  st.global.b32 [%p" + name + "+" + std::to_string(4 * i) + "], %" + name +
            std::to_string(i) + ";\n";
  return text;
}

}  // namespace

std::string ptx_kernel(const TensorCoreInstruction& instruction) {
  if (instruction.unit != Unit::mma || word_bits(instruction.a) == 64)
    throw formats::Error(std::string(instruction.name), "is not handed to the driver's compiler",
                         "mma.sync and mma.sp of up to 32 bits");
  const ImageLayout layout = layout_images(instruction);
  const auto registers = [](int image_bytes) { return image_bytes / (32 * 4); };
  const int a = registers(layout.a_bytes), b = registers(layout.b_bytes),
            c = registers(layout.c_bytes), d = registers(layout.d_bytes);
  // The lowest version of the ISA that has every form (FP8 with f16 results).
  std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry ";
  text += ptx_kernel_entry;
  text +=
      "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 e, .param .u64 d)\n{\n"
      "  .reg .b32 %lane, %block;\n  mov.u32 %lane, %tid.x;\n  mov.u32 %block, %ctaid.x;\n"
      "  mad.lo.u32 %lane, %block, 32, %lane;\n";
  text += load("a", a) + load("b", b) + load("c", c) + (instruction.sparse ? load("e", 1) : "");
  text += address_of("d", d);
  text += "  " + std::string(instruction.name) + " " + list_of("%d", d) + ", " + list_of("%a", a) +
          ", " + list_of("%b", b) + ", " + list_of("%c", c);
  if (instruction.sparse) text += ", %e0, " + std::to_string(instruction.selector);
  return text + ";\n" + store("d", d) + "  ret;\n}\n";
}

}  // namespace guardbit::gpu

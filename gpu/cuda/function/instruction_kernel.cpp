#include "gpu/cuda/function/instruction_kernel.hpp"

#include <array>

namespace guardbit::gpu {

std::string instruction_kernel(const FunctionInstruction& instruction) {
  const bool is_half = instruction.bits == 16;
  const std::string type = is_half                  ? (instruction.is_packed ? "b32" : "b16")
                           : instruction.bits == 64 ? "f64"
                                                    : "f32";
  const std::string bytes =
      std::to_string(is_half ? (instruction.is_packed ? 4 : 2) : instruction.bits / 8);
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry compute(.param .u64 d, "
      ".param .u64 x, .param .u64 y, .param .u64 z, .param .u32 count, .param .u32 first, "
      ".param .u32 mask, .param .u64 places)\n{\n.reg .pred %p<2>;\n"
      ".reg .b32 %r<8>;\n.reg .b64 %a<10>;\n.reg ." +
      type + " %v<4>;\n" +
      "mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\n"
      "mad.lo.u32 %r0, %r0, %r1, %r2;\nld.param.u32 %r3, [count];\nsetp.ge.u32 %p0, %r0, %r3;\n"
      "@%p0 ret;\nld.param.u32 %r4, [first];\nadd.u32 %r4, %r4, %r0;\n"
      "ld.param.u32 %r5, [mask];\nand.b32 %r4, %r4, %r5;\nmul.wide.u32 %a7, %r4, " +
      bytes + ";\n";
  const std::array<std::string, 3> parameters = {"x", "y", "z"};
  std::string operands;
  for (int i = 0; i < instruction.operands; ++i) {
    const std::string n = std::to_string(i + 1), pointer = "%a" + n, value = "%v" + n;
    text += "ld.param.u64 " + pointer + ", [" + parameters[static_cast<std::size_t>(i)] +
            "];\nadd.u64 " + pointer + ", " + pointer + ", %a7;\nld.global." + type + " " + value +
            ", [" + pointer + "];\n";
    operands += ", " + value;
  }
  return text + instruction.name + " %v0" + operands +
         ";\nld.param.u64 %a0, [d];\nmul.wide.u32 %a8, %r0, " + bytes +
         ";\nadd.u64 %a0, %a0, %a8;\nst.global." + type +
         " [%a0], %v0;\n"
         "ld.param.u64 %a9, [places];\nand.b32 %r6, %r0, 31;\nsetp.eq.u64 %p0, %a9, 0;\n"
         "setp.ne.or.u32 %p1, %r6, 0, %p0;\n@%p1 ret;\n"
         "mov.u32 %r6, %smid;\nmov.u32 %r7, %warpid;\nmad.lo.u32 %r7, %r6, 256, %r7;\n"
         "shr.u32 %r6, %r0, 5;\nmul.wide.u32 %a8, %r6, 4;\nadd.u64 %a9, %a9, %a8;\n"
         "st.global.u32 [%a9], %r7;\nret;\n}\n";
}

}  // namespace guardbit::gpu

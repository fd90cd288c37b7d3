#include "gpu/cuda/tensor_core/tensor_core.hpp"

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/operands/packing.hpp"

namespace guardbit::gpu {

void run_images(const TensorCoreInstruction& instruction, Batch& batch,
                const std::function<void(const DeviceImages&)>& launch) {
  const ImageLayout layout = layout_images(instruction);
  const PackedOperands packed = pack(instruction, layout, batch);
  const DeviceBuffer a(packed.a, instruction.name), b(packed.b, instruction.name),
      c(packed.c, instruction.name), e(packed.e, instruction.name),
      a_scale(packed.a_scale, instruction.name), b_scale(packed.b_scale, instruction.name);
  const DeviceBuffer d(
      static_cast<std::size_t>(layout.d_bytes) * static_cast<std::size_t>(packed.images),
      instruction.name);
  launch({.a = a.as(),
          .b = b.as(),
          .c = c.as(),
          .e = instruction.sparse ? e.as() : nullptr,
          .a_scale = instruction.scale.count != 0 ? a_scale.as() : nullptr,
          .b_scale = instruction.scale.count != 0 ? b_scale.as() : nullptr,
          .d = d.as(),
          .images = packed.images,
          .a_bytes = layout.a_bytes,
          .b_bytes = layout.b_bytes,
          .c_bytes = layout.c_bytes,
          .d_bytes = layout.d_bytes});
  check_cuda(cudaGetLastError(), instruction.name);
  check_cuda(cudaDeviceSynchronize(), instruction.name);
  unpack_results(instruction, layout, d.read(), batch);
}

void run_on_tensor_core(const TensorCoreInstruction& instruction, Batch& batch) {
  run_images(instruction, batch, kernel_of(instruction));
}

}  // namespace guardbit::gpu

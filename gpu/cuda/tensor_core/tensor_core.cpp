#include "gpu/cuda/tensor_core/tensor_core.hpp"

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/operands/packing.hpp"

namespace guardbit::gpu {

void run_images(const TensorCoreInstruction& row, Batch& batch,
                const std::function<void(const DeviceImages&)>& launch) {
  const ImageLayout layout = layout_images(row);
  const PackedOperands packed = pack(row, layout, batch);
  const DeviceBuffer a(packed.a, row.name), b(packed.b, row.name), c(packed.c, row.name),
      e(packed.e, row.name), a_scale(packed.a_scale, row.name), b_scale(packed.b_scale, row.name);
  const DeviceBuffer d(
      static_cast<std::size_t>(layout.d_bytes) * static_cast<std::size_t>(packed.images), row.name);
  launch({.a = a.as(),
          .b = b.as(),
          .c = c.as(),
          .e = row.sparse ? e.as() : nullptr,
          .a_scale = row.scale.count != 0 ? a_scale.as() : nullptr,
          .b_scale = row.scale.count != 0 ? b_scale.as() : nullptr,
          .d = d.as(),
          .images = packed.images,
          .a_bytes = layout.a_bytes,
          .b_bytes = layout.b_bytes,
          .c_bytes = layout.c_bytes,
          .d_bytes = layout.d_bytes});
  check_cuda(cudaGetLastError(), row.name);
  check_cuda(cudaDeviceSynchronize(), row.name);
  unpack_results(row, layout, d.read(), batch);
}

void run_on_tensor_core(const TensorCoreInstruction& row, Batch& batch) {
  run_images(row, batch, kernel_of(row));
}

}  // namespace guardbit::gpu

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "formats/format.hpp"
#include "gpu/cuda/device/device_operands.cuh"
#include "gpu/cuda/tensor_core/device_staging.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "gpu/operands/packing.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& list) {
  return std::as_bytes(std::span(list));
}

int container_bytes(const Format& type) { return std::max(8, word_bits(type)) / 8; }

struct PackJob {
  DeviceElements elements;
  std::uint32_t* images;
  const std::int32_t* table;
  /// words of all images
  std::int64_t count;
  std::int64_t per_image;
  int words, per_word, element_bits, padding;
};

__global__ void __launch_bounds__(threads) pack_kernel(PackJob job) {
  const std::int64_t index = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (index >= job.count) return;
  const std::int64_t image = index / job.words;
  const int word = static_cast<int>(index % job.words);
  const std::int32_t* const in_word = job.table + word * job.per_word;
  std::uint64_t bits = 0;
  for (int place = 0; place < job.per_word; ++place) {
    if (in_word[place] < 0) continue;
    const std::uint64_t element = load_element(
        job.elements, static_cast<std::size_t>(image * job.per_image + in_word[place]));
    bits |= job.element_bits == 64 ? element >> (word % 2 * 32)
                                   : element << (place * job.element_bits + job.padding);
  }
  job.images[index] = static_cast<std::uint32_t>(bits);
}

struct MetadataJob {
  const std::uint8_t* positions;
  std::uint32_t* images;
  /// group of each four bits
  const std::int32_t* table;
  std::int64_t count;
  /// of an image
  int words, groups;
  SparseGroup group;
};

__global__ void __launch_bounds__(threads) pack_metadata_kernel(MetadataJob job) {
  const std::int64_t index = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (index >= job.count) return;
  const std::int64_t image = index / job.words;
  const int word = static_cast<int>(index % job.words);
  unsigned bits = 0;
  for (int place = 0; place < 8; ++place) {
    const std::int32_t group = job.table[word * 8 + place];
    unsigned four = unused_metadata;
    if (group >= 0)
      four =
          metadata_bits(job.group, job.positions + (image * job.groups + group) * job.group.stored);
    bits |= four << (4 * place);
  }
  job.images[index] = bits;
}

enum class Operand : std::uint8_t { a, b, c, positions, a_scale, b_scale };

struct GenerateJob {
  InputShape shape;
  InputFamily family;
  std::uint64_t seed;
  /// execution
  std::int64_t first;
  /// elements
  std::int64_t count;
  int columns, per_execution;
};

template <Operand Which>
__global__ void __launch_bounds__(threads)
    generate_kernel(const __grid_constant__ GenerateJob job, DeviceElements out) {
  const std::int64_t index = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (index >= job.count) return;
  const std::int64_t t = job.first + index / job.per_execution;
  const auto place = static_cast<int>(index % job.per_execution);
  const int row = place / job.columns, column = place % job.columns;
  const InputShape& x = job.shape;
  std::uint64_t word = 0;
  if constexpr (Which == Operand::a) word = a_word(x, job.family, job.seed, t, row, column);
  if constexpr (Which == Operand::b) word = b_word(x, job.family, job.seed, t, row, column);
  if constexpr (Which == Operand::c) word = c_word(x, job.family, job.seed, t, row, column);
  if constexpr (Which == Operand::positions)
    word = static_cast<std::uint64_t>(e_position(x, job.family, job.seed, t, row, column));
  if constexpr (Which == Operand::a_scale)
    word = scale_word(x, job.family, job.seed, t, Place::a_scale, place);
  if constexpr (Which == Operand::b_scale)
    word = scale_word(x, job.family, job.seed, t, Place::b_scale, place);
  store_element(out, static_cast<std::size_t>(index), word);
}

}  // namespace

void Staging::generate(InputFamily family, std::uint64_t seed, std::int64_t first) {
  const auto launch = [&](auto kernel, int rows, int columns, const DeviceElements& out) {
    const GenerateJob job{shape_,  family,        seed, first, executions_ * rows * columns,
                          columns, rows * columns};
    kernel<<<blocks_for(job.count), threads>>>(job, out);
    check_cuda(cudaGetLastError(), instruction_.name);
  };
  const DeviceOperands all = operands();
  const int stored = instruction_.stored_k();
  launch(generate_kernel<Operand::a>, instruction_.m, stored, all.a);
  launch(generate_kernel<Operand::b>, instruction_.k, instruction_.n, all.b);
  launch(generate_kernel<Operand::c>, instruction_.m, instruction_.n, all.c);
  if (instruction_.sparse)
    launch(generate_kernel<Operand::positions>, instruction_.m, stored, all.e);
  if (const int scales = instruction_.scale.count; scales != 0) {
    launch(generate_kernel<Operand::a_scale>, instruction_.m, scales, all.a_scale);
    launch(generate_kernel<Operand::b_scale>, scales, instruction_.n, all.b_scale);
  }
}

Staging::StagedOperand Staging::staged(WordTable words, int container, int bytes,
                                       std::size_t elements) const {
  DeviceBuffer table(bytes_of(words.elements), instruction_.name);
  const auto images = static_cast<std::size_t>(images_);
  return {DeviceBuffer(images * elements * static_cast<std::size_t>(container), instruction_.name),
          DeviceBuffer(images * static_cast<std::size_t>(bytes), instruction_.name),
          std::move(table),
          std::move(words),
          container,
          static_cast<std::int64_t>(elements)};
}

Staging::StagedOperand Staging::make_operand(const Format& type,
                                             const std::vector<std::int64_t>& offsets,
                                             int bytes) const {
  return staged(
      invert(offsets, bytes, operand_bits(instruction_, type), padding_below(instruction_, type)),
      container_bytes(type), bytes, offsets.size());
}

Staging::StagedOperand Staging::make_scales(const std::vector<std::int64_t>& offsets,
                                            int bytes) const {
  if (instruction_.scale.count == 0) return staged(WordTable{}, 1, 0, 0);
  return staged(invert(offsets, bytes, 8), 1, bytes, offsets.size());
}

bool Staging::accepts(const TensorCoreInstruction& instruction) {
  const ImageLayout layout = layout_images(instruction);
  return lies_in_words(layout.a, operand_bits(instruction, instruction.a),
                       padding_below(instruction, instruction.a)) &&
         lies_in_words(layout.b, operand_bits(instruction, instruction.b),
                       padding_below(instruction, instruction.b));
}

Staging::Staging(const TensorCoreInstruction& instruction, const emulator::MatrixInstruction& model,
                 std::int64_t executions)
    : instruction_(instruction),
      shape_(input_shape(instruction, model)),
      executions_(executions),
      layout_(layout_images(instruction)),
      images_((executions + layout_.executions_per_image - 1) / layout_.executions_per_image),
      a_(make_operand(instruction.a, layout_.a, layout_.a_bytes)),
      b_(make_operand(instruction.b, layout_.b, layout_.b_bytes)),
      c_(make_operand(instruction.c, layout_.c, layout_.c_bytes)),
      a_scale_(make_scales(layout_.a_scale, layout_.a_scale_bytes)),
      b_scale_(make_scales(layout_.b_scale, layout_.b_scale_bytes)),
      positions_(instruction.sparse
                     ? static_cast<std::size_t>(executions * instruction.m * instruction.stored_k())
                     : 0,
                 instruction.name),
      metadata_(instruction.sparse ? static_cast<std::size_t>(images_ * layout_.e_bytes) : 0,
                instruction.name),
      metadata_words_(instruction.sparse ? invert(layout_.e, layout_.e_bytes, 4) : WordTable{}),
      metadata_table_(bytes_of(metadata_words_.elements), instruction.name),
      results_(static_cast<std::size_t>(images_ * layout_.d_bytes), instruction.name),
      result_offsets_(bytes_of(layout_.d), instruction.name) {}

void Staging::write(const Batch& batch) {
  const auto copy = [](const std::vector<std::uint64_t>& words, const StagedOperand& operand) {
    const auto width = static_cast<std::size_t>(operand.container_bytes);
    std::vector<std::byte> bytes(words.size() * width);
    for (std::size_t i = 0; i < words.size(); ++i)
      std::memcpy(bytes.data() + i * width, &words[i], width);
    operand.elements.write(bytes);
  };
  copy(batch.a, a_);
  copy(batch.b, b_);
  copy(batch.c, c_);
  if (instruction_.sparse) positions_.write(bytes_of(batch.e));
  if (instruction_.scale.count == 0) return;
  copy(batch.a_scale, a_scale_);
  copy(batch.b_scale, b_scale_);
}

void Staging::pack(const StagedOperand& operand) const {
  const PackJob job{{operand.elements.as(), operand.container_bytes},
                    operand.images.as<std::uint32_t>(),
                    operand.table.as<const std::int32_t>(),
                    images_ * operand.words.words,
                    operand.per_image,
                    operand.words.words,
                    operand.words.per_word,
                    operand.words.element_bits,
                    operand.words.padding};
  pack_kernel<<<blocks_for(job.count), threads>>>(job);
  check_cuda(cudaGetLastError(), instruction_.name);
}

void Staging::pack() {
  pack(a_);
  pack(b_);
  pack(c_);
  if (instruction_.scale.count != 0) {
    pack(a_scale_);
    pack(b_scale_);
  }
  if (!instruction_.sparse) return;
  const SparseGroup group = sparse_group(instruction_);
  const MetadataJob job{positions_.as<const std::uint8_t>(),
                        metadata_.as<std::uint32_t>(),
                        metadata_table_.as<const std::int32_t>(),
                        images_ * metadata_words_.words,
                        metadata_words_.words,
                        static_cast<int>(layout_.e.size()),
                        group};
  pack_metadata_kernel<<<blocks_for(job.count), threads>>>(job);
  check_cuda(cudaGetLastError(), instruction_.name);
}

void Staging::execute() {
  kernel_of(instruction_)(
      {.a = a_.images.as(),
       .b = b_.images.as(),
       .c = c_.images.as(),
       .e = instruction_.sparse ? metadata_.as() : nullptr,
       .a_scale = instruction_.scale.count != 0 ? a_scale_.images.as() : nullptr,
       .b_scale = instruction_.scale.count != 0 ? b_scale_.images.as() : nullptr,
       .d = results_.as(),
       .images = static_cast<int>(images_),
       .a_bytes = layout_.a_bytes,
       .b_bytes = layout_.b_bytes,
       .c_bytes = layout_.c_bytes,
       .d_bytes = layout_.d_bytes});
  check_cuda(cudaGetLastError(), instruction_.name);
}

DeviceOperands Staging::operands() const {
  const auto elements = [](const StagedOperand& operand) {
    return DeviceElements{operand.elements.as(), operand.container_bytes};
  };
  return {executions_,          elements(a_),       elements(b_),      elements(c_),
          {positions_.as(), 1}, elements(a_scale_), elements(b_scale_)};
}

DeviceResults Staging::results() const {
  return {results_.as(), result_offsets_.as<const std::int64_t>(), layout_.d_bytes,
          layout_.executions_per_image};
}

Batch Staging::read(std::int64_t execution) const {
  Batch batch(instruction_, 1);
  const auto copy = [&](std::vector<std::uint64_t>& words, const StagedOperand& operand) {
    const auto width = static_cast<std::size_t>(operand.container_bytes);
    std::vector<std::byte> bytes(words.size() * width);
    const std::size_t begin = static_cast<std::size_t>(execution) * bytes.size();
    check_cuda(cudaMemcpy(bytes.data(), operand.elements.as<const std::byte>() + begin,
                          bytes.size(), cudaMemcpyDeviceToHost),
               instruction_.name);
    for (std::size_t i = 0; i < words.size(); ++i)
      std::memcpy(&words[i], bytes.data() + i * width, width);
  };
  copy(batch.a, a_);
  copy(batch.b, b_);
  copy(batch.c, c_);
  if (instruction_.scale.count != 0) {
    copy(batch.a_scale, a_scale_);
    copy(batch.b_scale, b_scale_);
  }
  if (instruction_.sparse)
    check_cuda(cudaMemcpy(batch.e.data(),
                          positions_.as<const std::byte>() +
                              static_cast<std::size_t>(execution) * batch.e.size(),
                          batch.e.size(), cudaMemcpyDeviceToHost),
               instruction_.name);
  std::vector<std::byte> image(static_cast<std::size_t>(layout_.d_bytes));
  const auto per_image = layout_.executions_per_image;
  check_cuda(cudaMemcpy(image.data(),
                        results_.as<const std::byte>() +
                            static_cast<std::size_t>(execution / per_image) * image.size(),
                        image.size(), cudaMemcpyDeviceToHost),
             instruction_.name);
  const std::size_t slot = static_cast<std::size_t>(execution % per_image) * batch.d.size();
  for (std::size_t i = 0; i < batch.d.size(); ++i)
    std::memcpy(&batch.d[i], image.data() + layout_.d[slot + i] / 8,
                static_cast<std::size_t>(word_bits(instruction_.d) / 8));
  return batch;
}

}  // namespace guardbit::gpu

#pragma once

#include <cstddef>
#include <span>

#include "formats/files/mapped_file.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_stream.hpp"

namespace guardbit::formats {

/// Whether the bytes begin as what torch.save wrote before PyTorch 1.6.
bool is_legacy_torch(std::span<const std::byte> bytes);

/// The tensors of what torch.save wrote (PyTorch 1.6 and later: a zip archive), read as data:
/// nothing is imported or called. A tensor is named by the keys and indices that lead to it, with
/// dots between; one that stands alone by the file. Numbers under the keys step, rank and
/// loss_scale become metadata. Error for anything but tensors, parameters, plain values and
/// containers of them, by name; and for tensors that go past their storage or whose repeated
/// elements exceed largest_unpacked(). The form before PyTorch 1.6 is refused.
TensorStreams open_torch(const MappedFile& file, const FormatOverrides& overrides = {});

}  // namespace guardbit::formats

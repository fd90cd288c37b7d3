#include "formats/conversion/counted_conversion.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/code_table.hpp"
#include "formats/conversion/conversion_outcome.hpp"
#include "formats/conversion/dense_codes.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

// A whole number of bytes in every packing.
constexpr std::size_t counted_grain = std::size_t{1} << 16;

using Bytes = std::unique_ptr<std::byte[]>;

Bytes bytes(std::size_t size) { return std::make_unique_for_overwrite<std::byte[]>(size); }

bool shares_bytes(const Format& f, Packing packing) {
  return packing == Packing::dense && bits(f) != container_bits(f);
}

/// Where an array goes and how.
struct Destination {
  Format format;
  Packing packing;
  const ByteWriter& write;
  const ConversionOptions& options;
};

/// Converts ranges of elements on several threads. `convert` makes the bytes of [begin, end) and
/// says what happened to those elements that no table counts.
template <class Convert>
ConversionSummary convert_ranges(const Destination& to, std::size_t count, const CodeTable* table,
                                 const Convert& convert) {
  const auto width = static_cast<std::size_t>(storage_bits(to.format, to.packing));
  Tally total;
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(count, counted_grain, to.options.threads, [&](std::size_t begin, std::size_t end) {
    const std::size_t size = byte_size(to.format, to.packing, end - begin).value();
    const Bytes output = bytes(size);
    const Tally tally = convert(begin, end, std::span(output.get(), size));
    to.write(begin * width / 8, {output.get(), size});
    const std::lock_guard lock(mutex);
    total.add(tally);
    done += end - begin;
    if (to.options.progress) to.options.progress(done);
  });
  if (table != nullptr) total.add(table->tally());
  return total.summary();
}

/// Is a table of that width worth its making, and are the results in whole bytes, or made so?
bool table_serves(int width, const Destination& to, std::size_t count) {
  return width <= CodeTable::most_bits && count >> width > 0 &&
         to.options.rounding != Rounding::stochastic &&
         (!shares_bytes(to.format, to.packing) || bits(to.format) < 8);
}

Tally by_table(CodeTable& table, const std::byte* codes, const Destination& to, std::size_t count,
               std::span<std::byte> output) {
  if (shares_bytes(to.format, to.packing)) {
    const Bytes results = bytes(count);
    table.convert(codes, results.get(), count);
    pack_dense(bits(to.format), results.get(), output.data(), count);
  } else {
    table.convert(codes, output.data(), count);
  }
  return {};
}

/// The rule itself, for what nothing quicker takes. `value` gives the elements' from `begin` on.
template <class ValueOf>
Tally by_rule(const ElementConversion& element, const ValueOf& value, const Destination& to,
              std::size_t begin, std::size_t end, std::span<std::byte> output) {
  Tally tally;
  output.back() = std::byte{0};
  for (std::size_t i = begin; i < end; ++i) {
    const Outcome outcome = element(value(i), element.random(i));
    store_code(output, to.format, to.packing, i - begin, outcome.code);
    tally.add(outcome, 1);
  }
  return tally;
}

}  // namespace

ConversionSummary convert_codes(const Format& from, Packing from_packing,
                                std::span<const std::byte> input, const Format& to,
                                Packing to_packing, const ByteWriter& write, std::size_t count,
                                const ConversionOptions& options) {
  const Destination destination{to, to_packing, write, options};
  const ArrayConversion conversion(from, from_packing, to, to_packing, options);
  if (conversion.counts()) {
    return convert_ranges(destination, count, nullptr,
                          [&](std::size_t begin, std::size_t end, std::span<std::byte> output) {
                            Tally tally;
                            conversion.convert_and_count(input, begin, end, output.data(), tally);
                            return tally;
                          });
  }
  const ElementConversion element(from, to, options);
  const bool unpacks = shares_bytes(from, from_packing);
  if (table_serves(bits(from), destination, count) && (!unpacks || bits(from) < 8)) {
    CodeTable table(bits(from), to,
                    [&](std::uint64_t code) { return element(decode(from, code), {}); });
    const auto width = static_cast<std::size_t>(storage_bits(from, from_packing));
    return convert_ranges(destination, count, &table,
                          [&](std::size_t begin, std::size_t end, std::span<std::byte> output) {
                            const std::byte* codes = input.data() + begin * width / 8;
                            const Bytes unpacked = bytes(unpacks ? end - begin : 0);
                            if (unpacks) {
                              unpack_dense(bits(from), codes, unpacked.get(), end - begin);
                              codes = unpacked.get();
                            }
                            return by_table(table, codes, destination, end - begin, output);
                          });
  }
  const auto value = [&](std::size_t i) {
    return decode(from, load_code(input, from, from_packing, i));
  };
  return convert_ranges(destination, count, nullptr,
                        [&](std::size_t begin, std::size_t end, std::span<std::byte> output) {
                          return by_rule(element, value, destination, begin, end, output);
                        });
}

ConversionSummary convert_codes(const Format& from, Packing from_packing,
                                std::span<const std::byte> input, const Format& to,
                                Packing to_packing, std::span<std::byte> output, std::size_t count,
                                const ConversionOptions& options) {
  return convert_codes(from, from_packing, input, to, to_packing, writer_to(output), count,
                       options);
}

ConversionSummary convert_values(const IndexedValues& values, const Format& to, Packing to_packing,
                                 const ByteWriter& write, std::size_t count,
                                 const ConversionOptions& options) {
  check(options);
  const Destination destination{to, to_packing, write, options};
  const ElementConversion element({}, to, options);
  const int width = std::max(values.width, 9);  // the table reads pairs of bytes
  std::optional<CodeTable> table;
  if (table_serves(width, destination, count)) {
    table.emplace(width, to, [&](std::uint64_t index) {
      return element(values.value(index & low_bits(values.width)), {});
    });
  }
  return convert_ranges(destination, count, table ? &*table : nullptr,
                        [&](std::size_t begin, std::size_t end, std::span<std::byte> output) {
                          std::vector<std::uint16_t> indices(end - begin);
                          values.indices(begin, end, indices.data());
                          if (table)
                            return by_table(*table, std::as_bytes(std::span(indices)).data(),
                                            destination, end - begin, output);
                          const auto value = [&](std::size_t i) {
                            return values.value(indices[i - begin]);
                          };
                          return by_rule(element, value, destination, begin, end, output);
                        });
}

Tensor convert_tensor(const Tensor& tensor, const Format& to, Packing packing,
                      const ConversionOptions& options, ConversionSummary& summary) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  std::vector<std::byte> output(byte_size(to, packing, count).value());
  summary = convert_codes(tensor.format, tensor.packing, tensor.bytes, to, packing, output, count,
                          options);
  return owning_tensor(tensor.name, to, packing, tensor.shape, std::move(output));
}

}  // namespace guardbit::formats

#include "experiments/training/context.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments::training {

namespace {

/// What the largest number of the operands' format is to a scale.
float largest_of(const Format& f) { return f == formats::e5m2 ? 57344.0F : 448.0F; }

bool is_wider(const Format& a, const Format& b) { return formats::bits(a) > formats::bits(b); }

}  // namespace

Context::Context(PrecisionRecipe recipe, int threads, std::string_view where)
    : recipe_(std::move(recipe)),
      threads_(threads),
      products_{Product(recipe_, Pass::forward, where),
                Product(recipe_, Pass::input_gradient, where),
                Product(recipe_, Pass::weight_gradient, where)} {}

Format Context::format_for(Operation operation, const Format& input) const {
  return format_for(operation, input, input);
}

Format Context::format_for(Operation operation, const Format& first, const Format& second) const {
  const Format widest = is_wider(second, first) ? second : first;
  if (!recipe_.autocast) return widest;
  switch (rule_of(operation).cast) {
    case Cast::low_precision: return recipe_.low;
    case Cast::fp32: return formats::fp32;
    case Cast::as_it_is: return first;
    case Cast::widest: return widest;
  }
  return widest;
}

Tensor Context::cast(Tensor tensor, const Format& format, Role role) {
  const bool narrows = format != tensor.format && format != formats::fp32;
  tensor.format = format;
  if (narrows) store(tensor, role);
  return tensor;
}

void Context::store(Tensor& tensor, Role role) {
  if (tensor.format == formats::fp32) return;
  constexpr auto container = formats::Packing::container;
  formats::ConversionOptions options;
  options.threads = 1;
  const formats::ArrayConversion narrow(formats::fp32, container, tensor.format, container,
                                        options);
  const formats::ArrayConversion widen(tensor.format, container, formats::fp32, container, options);
  const auto width = static_cast<std::size_t>(formats::container_bits(tensor.format) / 8);
  std::atomic<std::int64_t> numbers = 0, underflow = 0, overflow = 0;
  for_ranges(tensor.size(), [&](std::int64_t begin, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - begin);
    float* const values = tensor.values.data() + begin;
    std::vector<std::byte> codes(count * width);
    Values stored(count);
    narrow(std::as_bytes(std::span(values, count)), codes, count);
    widen(codes, std::as_writable_bytes(std::span(stored)), count);
    std::int32_t nonzero = 0, lost = 0, infinite = 0;  // 32 bits, as the numbers: for vectors
    for (std::size_t i = 0; i < count; ++i) {
      nonzero += values[i] != 0 ? 1 : 0;
      lost += stored[i] == 0 ? 1 : 0;
      infinite += is_finite(stored[i]) ? 0 : 1;
      infinite -= is_finite(values[i]) ? 0 : 1;
    }
    std::copy(stored.begin(), stored.end(), values);
    numbers += nonzero;
    underflow += lost - (static_cast<std::int32_t>(count) - nonzero);
    overflow += infinite;
  });
  StoreCounts& counts = counts_.at(static_cast<std::size_t>(role));
  counts.numbers += numbers;
  counts.underflow += underflow;
  counts.overflow += overflow;
}

DelayedScale& Context::delayed_scale(const std::string& key) {
  DelayedRules rules = recipe_.delayed;
  rules.largest = largest_of(key.ends_with(formats::word_of(Role::gradient)) ? recipe_.gradient
                                                                             : recipe_.operand);
  return delayed_.try_emplace(key, rules).first->second;
}

void Context::restore_delayed(const std::string& key, std::vector<float> history, float scale) {
  delayed_scale(key).restore(std::move(history), scale);
}

Encoding Context::encoding_of(const std::string& name, Role role, const Tensor& tensor) {
  Encoding e;
  e.format = role == Role::gradient ? recipe_.gradient : recipe_.operand;
  e.scaling = recipe_.scaling;
  if (e.scaling == OperandScaling::none || e.scaling == OperandScaling::mx) return e;
  const float amax = amax_of(tensor.values.data(), tensor.values.size());
  if (e.scaling == OperandScaling::nvfp4) {
    e.tensor_amax = amax;
    e.square_blocks = role == Role::weight;
    e.stochastic = role == Role::gradient;
    e.random_seed = Draws(step_seed_, name).word(0);
    return e;
  }
  if (e.scaling == OperandScaling::current) {
    e.encode = te_current_scale(amax, largest_of(e.format), false).encode;
  } else {
    DelayedScale& scale = delayed_scale(name + "." + std::string(formats::word_of(role)));
    scale.observe(amax);
    e.encode = scale.scale();
  }
  e.decode = 1.0F / e.encode;
  return e;
}

CodedMatrix Context::encode(const std::string& name, Role role, const Tensor& tensor,
                            std::int64_t rows, std::int64_t columns) {
  CodedMatrix coded(encoding_of(name, role, tensor), tensor.values.data(), rows, columns, threads_);
  if (trace) trace(name, formats::word_of(role), tensor);
  if (role != Role::gradient) operand_bits_ += rows * columns * formats::bits(recipe_.operand);
  StoreCounts& counts = counts_.at(static_cast<std::size_t>(role));
  if (recipe_.scaling != OperandScaling::none) {
    counts.numbers +=
        std::count_if(tensor.values.begin(), tensor.values.end(), [](float x) { return x != 0; });
    counts.underflow += coded.underflow();
  }
  return coded;
}

Tensor Context::multiply(Pass pass, const Operand& a, const Operand& b, Dimensions shape,
                         const Format& format, Role role, const Tensor* bias) {
  Tensor d = zeros(std::move(shape), format);
  product_of(pass)(a, b, d.values.data(), threads_);
  const float scale = a.scale * b.scale;
  if (scale != 1.0F || bias != nullptr) {
    const std::int64_t columns = b.lines;
    for_ranges(
        a.lines,
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            float* const row = d.values.data() + i * columns;
            if (bias == nullptr) {
              for (std::int64_t j = 0; j < columns; ++j) row[j] = product_result(row[j], scale);
            } else {
              for (std::int64_t j = 0; j < columns; ++j)
                row[j] = product_result(row[j], scale, (*bias)[j]);
            }
          }
        },
        std::max<std::int64_t>(1, (std::int64_t{1} << 14) / columns));
  }
  store(d, role);
  return d;
}

Tensor Context::sum_of_rows(const Tensor& tensor, const Format& format, Role role) {
  const std::int64_t rows = tensor.rows(), columns = tensor.columns();
  const std::int64_t runs = (rows + sum_run - 1) / sum_run;
  Values parts(static_cast<std::size_t>(runs * columns), 0.0F);
  for_ranges(
      runs,
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t run = first; run < last; ++run) {
          float* const part = parts.data() + run * columns;
          for (std::int64_t i = run * sum_run; i < std::min(rows, (run + 1) * sum_run); ++i)
            for (std::int64_t j = 0; j < columns; ++j) part[j] += tensor[i * columns + j];
        }
      },
      1);
  Tensor sum = zeros({columns}, format);
  for (std::int64_t run = 0; run < runs; ++run)
    for (std::int64_t j = 0; j < columns; ++j)
      sum[j] += parts[static_cast<std::size_t>(run * columns + j)];
  store(sum, role);
  return sum;
}

std::array<StoreCounts, 3> Context::end_step() {
  for (auto& [name, scale] : delayed_) scale.update();
  last_operand_bits_ = std::exchange(operand_bits_, 0);
  return std::exchange(counts_, {});
}

void Context::for_ranges(std::int64_t count,
                         const std::function<void(std::int64_t, std::int64_t)>& body,
                         std::int64_t grain) const {
  formats::parallel_for(static_cast<std::size_t>(count), static_cast<std::size_t>(grain), threads_,
                        [&](std::size_t begin, std::size_t end) {
                          body(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
                        });
}

}  // namespace guardbit::experiments::training

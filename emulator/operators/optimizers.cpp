#include "emulator/operators/optimizers.hpp"

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/operators/kernels/adam_kernel.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/kernels/vectorised.hpp"
#include "emulator/operators/memory_order.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

/// of a parameter that are taken together
constexpr std::size_t most_elements = 4096;

/// Elements of one parameter as FP32.
struct Elements {
  std::span<float> parameter, gradient, first, second, greatest;
  /// of the first one in its tensor
  std::int64_t begin = 0;
};

using ElementStep = void (*)(const Elements&, const void* constants);

/// Gives the tensor memory of its own, with nothing in it yet.
void renew(Tensor& tensor) {
  const Dimensions stride = tensor.stride;
  tensor = uninitialised_tensor(tensor.type, tensor.shape);
  tensor.stride = stride;
}

/// `step` over all elements of a state, in chunks.
OptimizerState each_element(const OptimizerState& before, bool stores_gradient, ElementStep step,
                            const void* constants, int threads) {
  OptimizerState after = before;
  const auto count = static_cast<std::size_t>(before.parameter.count());
  renew(after.parameter);
  if (stores_gradient) renew(after.gradient);
  for (auto* tensor : {&after.first, &after.second, &after.greatest}) {
    if (*tensor) renew(**tensor);
  }
  constexpr std::size_t grain = most_elements;
  formats::parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::array<std::array<float, grain>, 5> memory;
    const auto at = static_cast<std::int64_t>(begin);
    // FP32 numbers are changed where they are stored.
    const auto read = [&](std::size_t place, const Tensor& from, const Tensor& to, bool is_stored) {
      auto numbers = std::span(memory[place]).first(end - begin);
      if (is_stored && to.type == formats::fp32)
        numbers = {reinterpret_cast<float*>(writable_bytes(to).data()) + begin, end - begin};
      read_numbers(from, at, numbers);
      return numbers;
    };
    const auto read_state = [&](std::size_t place, const std::optional<Tensor>& from,
                                const std::optional<Tensor>& to) {
      return from ? read(place, *from, *to, true) : std::span<float>();
    };
    Elements elements{.parameter = read(0, before.parameter, after.parameter, true),
                      .gradient = read(1, before.gradient, after.gradient, stores_gradient),
                      .first = read_state(2, before.first, after.first),
                      .second = read_state(3, before.second, after.second),
                      .greatest = read_state(4, before.greatest, after.greatest),
                      .begin = at};
    step(elements, constants);
    const auto write = [&](const Tensor& tensor, std::span<float> numbers) {
      if (tensor.type == formats::fp32) return make_unit_nans(numbers);
      write_numbers(tensor.type, at, numbers, false, writable_bytes(tensor));
    };
    write(after.parameter, elements.parameter);
    if (stores_gradient) write(after.gradient, elements.gradient);
    if (after.first) write(*after.first, elements.first);
    if (after.second) write(*after.second, elements.second);
    if (after.greatest) write(*after.greatest, elements.greatest);
  });
  return after;
}

/// How the compiler contracted p wd + g: an element rounds the product first where its place among
/// the four that a thread takes together is the first; with maximize everywhere; with a loss scale
/// nowhere.
struct DecayRounding {
  bool everywhere = false, nowhere = false;
  /// a thread takes neighbours, else elements that are 512 apart
  bool is_vectorised = true;
  /// of each element in memory, where its order is another one
  std::span<const std::int64_t> places = {};

  bool rounds(std::int64_t element) const {
    if (everywhere || nowhere) return everywhere;
    constexpr std::int64_t chunk = 65536, threads = 512;
    const std::int64_t index = places.empty() ? element : places[static_cast<std::size_t>(element)];
    const std::int64_t slot = is_vectorised ? index % 4 : index % chunk / threads % 4;
    return slot == 0;
  }
};

struct AdamConstants {
  float step_size, beta1, beta2, decay, eps, root_of_correction, grad_scale;
  bool has_scale, maximize, is_decoupled, has_decay;
  DecayRounding rounding;
};

/// The gradient as the step takes it, in `g`; a decoupled weight decays on its way.
inline void take_gradient(const Elements& x, const AdamConstants& c, float* __restrict g) {
  const std::size_t count = x.parameter.size();
  float* __restrict p = x.parameter.data();
  float* __restrict stored = x.gradient.data();
  if (c.has_scale) {
    for (std::size_t i = 0; i < count; ++i) stored[i] /= c.grad_scale;
  }
  for (std::size_t i = 0; i < count; ++i) g[i] = c.maximize ? -stored[i] : stored[i];
  const float decay = c.decay;
  if (!c.has_decay) return;
  if (c.is_decoupled) {
    for (std::size_t i = 0; i < count; ++i) p[i] = std::fma(-decay, p[i], p[i]);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float rounded = g[i] + p[i] * decay, fused = std::fma(p[i], decay, g[i]);
    g[i] = c.rounding.rounds(x.begin + static_cast<std::int64_t>(i)) ? rounded : fused;
  }
}

/// Both moments. Gives what the root is taken of, in `g`.
inline void update_moments(const Elements& x, const AdamConstants& c, float* __restrict g) {
  const std::size_t count = x.parameter.size();
  float* __restrict first = x.first.data();
  float* __restrict second = x.second.data();
  const float beta1 = c.beta1, beta2 = c.beta2;
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = g[i], square = gradient * gradient;
    first[i] = std::fma(beta1, first[i], std::fma(-beta1, gradient, gradient));
    second[i] = std::fma(beta2, second[i], std::fma(-beta2, square, square));
    g[i] = second[i];
  }
  float* __restrict greatest = x.greatest.data();
  if (x.greatest.empty()) return;
  for (std::size_t i = 0; i < count; ++i) {
    greatest[i] = greatest[i] < second[i] ? second[i] : greatest[i];
    g[i] = greatest[i];
  }
}

inline void move_parameter(const Elements& x, const AdamConstants& c,
                           const float* __restrict roots) {
  float* __restrict p = x.parameter.data();
  const float* __restrict first = x.first.data();
  const float step_size = c.step_size, correction = c.root_of_correction, eps = c.eps;
  for (std::size_t i = 0; i < x.parameter.size(); ++i)
    p[i] = p[i] - (step_size * first[i]) / (roots[i] / correction + eps);
}

void adam(const Elements& x, const void* constants) {
  const auto& c = *static_cast<const AdamConstants*>(constants);
  std::array<float, most_elements> numbers;
  vectorised<take_gradient, const Elements&, const AdamConstants&>(x, c, numbers.data());
  vectorised<update_moments, const Elements&, const AdamConstants&>(x, c, numbers.data());
  square_root_in_place(std::span(numbers).first(x.parameter.size()));
  vectorised<move_parameter, const Elements&, const AdamConstants&, const float*>(x, c,
                                                                                  numbers.data());
}

/// 1 - base^step
float correction(float base, float step) {
  return 1 - cuda_math::powf(HostNumber(base), HostNumber(step)).number();
}

/// Whether threads load four neighbours at once.
bool is_vectorised(const OptimizerState& state) {
  const auto is_fit = [](const Tensor& tensor) {
    return is_aligned(tensor, 4 * tensor.element_bytes());
  };
  return state.parameter.count() % 4 == 0 && is_fit(state.parameter) && is_fit(state.gradient) &&
         (!state.first || is_fit(*state.first)) && (!state.second || is_fit(*state.second)) &&
         (!state.greatest || is_fit(*state.greatest));
}

struct SgdConstants {
  float lr, decay, momentum, share, grad_scale;
  bool has_scale, maximize, has_decay, has_momentum, is_first_step, nesterov;
};

inline void sgd(const Elements& x, const void* constants) {
  const SgdConstants c = *static_cast<const SgdConstants*>(constants);
  float* __restrict parameter = x.parameter.data();
  float* __restrict gradient = x.gradient.data();
  float* __restrict first = x.first.data();
  const std::size_t count = x.parameter.size();
  if (c.has_scale) {
    for (std::size_t i = 0; i < count; ++i) gradient[i] /= c.grad_scale;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float p = parameter[i];
    float g = c.maximize ? -gradient[i] : gradient[i];
    if (c.has_decay) g = std::fma(c.decay, p, g);
    if (c.has_momentum) {
      const float momentum = c.is_first_step ? g : std::fma(c.share, g, c.momentum * first[i]);
      first[i] = momentum;
      g = c.nesterov ? std::fma(c.momentum, momentum, g) : momentum;
    }
    parameter[i] = std::fma(-c.lr, g, p);
  }
}

struct AdagradConstants {
  double lr, decay, eps;
  float grad_scale;
  bool has_scale, maximize;
};

inline void adagrad(const Elements& x, const void* constants) {
  const auto& c = *static_cast<const AdagradConstants*>(constants);
  for (std::size_t i = 0; i < x.parameter.size(); ++i) {
    const float p = x.parameter[i];
    float g = x.gradient[i];
    if (c.has_scale) g = static_cast<float>(double{g} / c.grad_scale);
    x.gradient[i] = g;
    if (c.maximize) g = -g;
    if (c.decay != 0) g = static_cast<float>(std::fma(double{p}, c.decay, double{g}));
    const float sum = std::fma(g, g, x.first[i]);
    const double divisor = double{std::sqrt(sum)} + c.eps;
    x.parameter[i] = static_cast<float>(p - (c.lr * g) / divisor);
    x.first[i] = sum;
  }
}

/// The usual step of FP32 tensors, in one pass over their elements by a kernel; nothing where that
/// has no part of it.
std::optional<OptimizerState> adam_by_kernel(const OptimizerState& before, const AdamConstants& c,
                                             int threads) {
  const kernels::AdamKernel kernel = find_adam_kernel();
  const bool is_usual = !c.has_scale && !c.maximize && !before.greatest && before.first &&
                        before.second && (!c.has_decay || (c.is_decoupled && c.decay != 0));
  if (kernel == nullptr || !is_usual) return std::nullopt;
  for (const Tensor* tensor :
       {&before.parameter, &before.gradient, &*before.first, &*before.second}) {
    if (stored_numbers(*tensor).empty()) return std::nullopt;
  }
  OptimizerState after = before;
  for (Tensor* tensor : {&after.parameter, &*after.first, &*after.second}) renew(*tensor);
  const auto fresh = [](const Tensor& tensor) {
    return reinterpret_cast<float*>(writable_bytes(tensor).data());
  };
  const auto count = static_cast<std::size_t>(before.parameter.count());
  constexpr std::size_t grain = 1 << 15;
  formats::parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
    kernel({.step_size = c.step_size,
            .beta1 = c.beta1,
            .beta2 = c.beta2,
            .eps = c.eps,
            .root_of_correction = c.root_of_correction,
            .decay = c.has_decay ? c.decay : 0,
            .parameter = stored_numbers(before.parameter).data() + begin,
            .gradient = stored_numbers(before.gradient).data() + begin,
            .first = stored_numbers(*before.first).data() + begin,
            .second = stored_numbers(*before.second).data() + begin,
            .new_parameter = fresh(after.parameter) + begin,
            .new_first = fresh(*after.first) + begin,
            .new_second = fresh(*after.second) + begin},
           end - begin);
  });
  return after;
}

}  // namespace

OptimizerState adam_step(const OptimizerState& before, const OptimizerParameters& parameters,
                         int threads) {
  const auto lr = static_cast<float>(parameters.lr);
  const auto decay = static_cast<float>(parameters.weight_decay);
  AdamConstants c{};
  c.beta1 = static_cast<float>(parameters.beta1);
  c.beta2 = static_cast<float>(parameters.beta2);
  c.eps = static_cast<float>(parameters.eps);
  c.step_size = lr / correction(c.beta1, parameters.step);
  c.root_of_correction = std::sqrt(correction(c.beta2, parameters.step));
  c.is_decoupled = parameters.is_decoupled;
  c.has_decay = decay != 0;
  c.decay = c.is_decoupled ? lr * decay : decay;
  c.has_scale = parameters.grad_scale.has_value();
  c.grad_scale = parameters.grad_scale.value_or(1);
  c.maximize = parameters.maximize;
  const std::vector<std::int64_t> places = c.has_decay && !c.is_decoupled
                                               ? places_in_memory(before.parameter)
                                               : std::vector<std::int64_t>();
  c.rounding = {.everywhere = c.maximize && !c.has_scale,
                .nowhere = c.has_scale || (before.greatest && !is_vectorised(before)),
                .is_vectorised = is_vectorised(before),
                .places = places};
  if (auto after = adam_by_kernel(before, c, threads)) return *after;
  return each_element(before, c.has_scale, adam, &c, threads);
}

OptimizerState sgd_step(const OptimizerState& before, const OptimizerParameters& parameters,
                        int threads) {
  SgdConstants c{};
  c.lr = static_cast<float>(parameters.lr);
  c.decay = static_cast<float>(parameters.weight_decay);
  c.momentum = static_cast<float>(parameters.momentum);
  c.share = static_cast<float>(1 - parameters.dampening);
  c.has_scale = parameters.grad_scale.has_value();
  c.grad_scale = parameters.grad_scale.value_or(1);
  c.maximize = parameters.maximize;
  c.has_decay = c.decay != 0;
  c.has_momentum = before.first.has_value();
  c.is_first_step = parameters.is_first_step;
  c.nesterov = parameters.nesterov;
  return each_element(before, c.has_scale, vectorised<sgd, const Elements&, const void*>, &c,
                      threads);
}

OptimizerState adagrad_step(const OptimizerState& before, const OptimizerParameters& parameters,
                            int threads) {
  AdagradConstants c{};
  c.lr = parameters.lr / (1 + double{parameters.step - 1} * parameters.lr_decay);
  c.decay = parameters.weight_decay;
  c.eps = parameters.eps;
  c.has_scale = parameters.grad_scale.has_value();
  c.grad_scale = parameters.grad_scale.value_or(1);
  c.maximize = parameters.maximize;
  // Only the kernel of tensors that are not aligned stores the gradient.
  const bool stores_gradient = c.has_scale && !is_vectorised(before);
  return each_element(before, stores_gradient, vectorised<adagrad, const Elements&, const void*>,
                      &c, threads);
}

Tensor unscaled_gradient(const Tensor& gradient, float inverse_scale, bool& has_infinity) {
  std::vector<float> numbers = numbers_of(gradient);
  for (float& number : numbers) {
    if (!std::isfinite(number)) has_infinity = true;
    if (inverse_scale != 1) number *= inverse_scale;
  }
  Tensor result = uninitialised_tensor(gradient.type, gradient.shape);
  result.stride = gradient.stride;
  // What is not multiplied keeps the bits of its NaNs in FP32.
  const bool keeps_nans = inverse_scale == 1 && gradient.type == formats::fp32;
  write_numbers(gradient.type, 0, numbers, keeps_nans, writable_bytes(result));
  return result;
}

LossScale updated_loss_scale(LossScale before, bool has_infinity, double growth_factor,
                             double backoff_factor, std::int64_t growth_interval) {
  if (has_infinity) return {static_cast<float>(before.scale * backoff_factor), 0};
  const std::int32_t successful = before.growth_tracker + 1;
  if (successful != growth_interval) return {before.scale, successful};
  const auto grown = static_cast<float>(before.scale * growth_factor);
  return {std::isfinite(grown) ? grown : before.scale, 0};
}

}  // namespace guardbit::emulator::operators

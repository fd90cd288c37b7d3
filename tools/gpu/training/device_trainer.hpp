#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/training/trainer.hpp"
#include "gpu/cuda/device/device.hpp"
#include "tools/gpu/training/training_kernels.hpp"

namespace guardbit::tools::training {

/// FP32 numbers in device memory.
struct DeviceTensor {
  experiments::training::Dimensions shape;
  std::shared_ptr<const gpu::DeviceBuffer> memory;

  float* values() const { return memory->as<float>(); }
  std::int64_t size() const { return formats::element_count(shape); }
  std::int64_t columns() const { return shape.back(); }
  std::int64_t rows() const { return size() / columns(); }
};

struct DeviceParameter {
  std::string name;
  /// first, second: the optimizer's state
  DeviceTensor value, gradient, first, second;
};

/// What the layers share.
struct DeviceRules {
  /// of products, and of all tensors between layers
  NumberFormat result = NumberFormat::fp32;
  /// of products' operands
  NumberFormat operand = NumberFormat::fp32;
  MatrixUnit unit = MatrixUnit::fp16;
};

/// forward() keeps what backward() needs.
class DeviceLayer {
 public:
  DeviceLayer() = default;
  DeviceLayer(const DeviceLayer&) = delete;
  DeviceLayer& operator=(const DeviceLayer&) = delete;
  virtual ~DeviceLayer() = default;
  virtual DeviceTensor forward(const DeviceRules& rules, const DeviceTensor& x) = 0;
  /// `wants_input_gradient` false: the result is not looked at, and may be empty.
  virtual DeviceTensor backward(const DeviceRules& rules, const DeviceTensor& gradient,
                                bool wants_input_gradient) = 0;
};

/// The layers of a convolutional network or a perceptron over their parameters, weights and biases
/// in turn, which must stay where they are.
std::vector<std::unique_ptr<DeviceLayer>> make_layers(
    const experiments::training::ModelShape& shape,
    const std::vector<std::unique_ptr<DeviceParameter>>& parameters);

DeviceTensor make_tensor(experiments::training::Dimensions shape);

/// The recipe with each of its products as one chain of the `mma.sync` of sm_90 that multiplies its
/// operands. formats::Error where there is none.
experiments::training::PrecisionRecipe on_mma_sync(experiments::training::PrecisionRecipe recipe);

/// The run of experiments::training::Trainer on this machine's device: another implementation of
/// the same steps, whose products are the tensor core's own instructions. Convolutional networks
/// and perceptrons; recipes as on_mma_sync() makes them, unscaled operands, weights and states of
/// the optimizer in FP32.
class DeviceTrainer {
 public:
  /// `training` must stay where it is. formats::Error, beginning with `where`, for rules that it
  /// does not know.
  DeviceTrainer(const experiments::training::TrainingRules& rules,
                const experiments::training::Examples& training, const std::string& where);

  /// As Trainer::step, without the counts of correct rows and stores.
  experiments::training::StepRecord step();
  /// The weights, a parameter after the other.
  std::vector<std::vector<float>> weights() const;

 private:
  bool found_overflow() const;
  void move(float inverse_scale);

  experiments::training::TrainingRules rules_;
  DeviceRules device_rules_;
  std::vector<std::unique_ptr<DeviceParameter>> parameters_;
  std::vector<std::unique_ptr<DeviceLayer>> layers_;
  std::optional<experiments::LossScaler> scaler_;
  experiments::training::Batches batches_;
  std::int64_t step_ = 0;
  /// steps that were not skipped
  std::int64_t moves_ = 0;
};

}  // namespace guardbit::tools::training

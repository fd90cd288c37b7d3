#include "tools/gpu/training/device_trainer.hpp"

#include <array>
#include <span>

#include "formats/support/error.hpp"

namespace guardbit::tools::training {

namespace {

using experiments::training::Examples;
using experiments::training::OptimizerRules;
using experiments::training::StepRecord;
using experiments::training::TrainingRules;
using formats::Error;

constexpr const char* memory_of = "gpu train";

DeviceTensor upload(const experiments::training::Tensor& x) {
  return {x.shape,
          std::make_shared<const gpu::DeviceBuffer>(std::as_bytes(std::span(x.values)), memory_of)};
}

DeviceTensor zeros(const experiments::training::Dimensions& shape) {
  DeviceTensor t = make_tensor(shape);
  t.memory->clear();
  return t;
}

struct Unit {
  formats::Format operand;
  std::string_view instruction;
  NumberFormat format;
  MatrixUnit unit;
};

constexpr std::array units = {
    Unit{formats::fp16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", NumberFormat::fp16,
         MatrixUnit::fp16},
    Unit{formats::bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", NumberFormat::bf16,
         MatrixUnit::bf16},
    Unit{formats::tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", NumberFormat::tf32,
         MatrixUnit::tf32},
};

const Unit& require_unit(const experiments::training::PrecisionRecipe& recipe) {
  for (const Unit& unit : units) {
    if (recipe.operand == unit.operand && recipe.gradient == unit.operand && !recipe.quantisation &&
        recipe.weights == formats::fp32 && (!recipe.autocast || recipe.low == unit.operand))
      return unit;
  }
  throw Error("gpu train", "the device has no layers for the recipe " + recipe.name,
              "fp16_amp, fp16_amp_unscaled, bf16_amp, tf32");
}

}  // namespace

experiments::training::PrecisionRecipe on_mma_sync(experiments::training::PrecisionRecipe recipe) {
  emulator::GemmPlan chain;
  chain.unit = {"sm_90", std::string(require_unit(recipe).instruction)};
  recipe.plans.fill(chain);
  return recipe;
}

DeviceTrainer::DeviceTrainer(const TrainingRules& rules, const Examples& training,
                             const std::string& where)
    : rules_(rules), batches_(training, rules.batch, rules.seed, where) {
  using Shape = experiments::training::ModelShape;
  const Unit& unit = require_unit(rules.recipe);
  device_rules_ = {rules.recipe.autocast ? unit.format : NumberFormat::fp32, unit.format,
                   unit.unit};
  if (rules.model.kind != Shape::Kind::cnn && rules.model.kind != Shape::Kind::mlp)
    throw Error(where, "the device has no layers of this model", "cnn, mlp");
  if (rules.optimizer.first != formats::fp32 || rules.optimizer.second != formats::fp32)
    throw Error(where, "the device keeps the optimizer's states in fp32");
  if (rules.optimizer.keeping != OptimizerRules::Keeping::nothing)
    throw Error(where, "the device keeps nothing beside its weights, which are fp32");
  const auto& scaler = rules.recipe.scaler;
  const bool is_usual = scaler ? scaler->unscaling == experiments::Unscaling::reciprocal &&
                                     scaler->finite_test == experiments::FiniteTest::scaled &&
                                     !scaler->raises_at_floor && !scaler->raises_at_zero
                               : rules.recipe.fixed_scale == 1;
  if (!is_usual)
    throw Error(where, "the device unscales as PyTorch's loss scaler does", "pytorch, megatron");
  experiments::training::Model model(rules.model, where);
  experiments::training::initialise(model, rules.seed, rules.recipe.weights);
  for (const experiments::training::Parameter* p : model.parameters()) {
    parameters_.push_back(std::make_unique<DeviceParameter>(DeviceParameter{
        p->name, upload(p->value), {}, zeros(p->value.shape), zeros(p->value.shape)}));
  }
  layers_ = make_layers(rules.model, parameters_);
  if (rules.recipe.scaler) scaler_.emplace(*rules.recipe.scaler);
}

StepRecord DeviceTrainer::step() {
  const Examples batch = batches_.at(step_);
  StepRecord record;
  record.step = ++step_;
  record.scale = scaler_ ? scaler_->scale() : 1.0;
  const auto scale = static_cast<float>(record.scale);
  DeviceTensor x = upload(batch.inputs);
  round_into(device_rules_.result, x.values(), x.values(), x.size());
  for (const auto& layer : layers_) x = layer->forward(device_rules_, x);

  const gpu::DeviceBuffer labels(std::as_bytes(std::span(batch.labels)), memory_of);
  const DeviceTensor exponentials = make_tensor(x.shape), losses = make_tensor({x.rows()});
  const DeviceTensor loss = make_tensor({1});
  DeviceTensor gradient = make_tensor(x.shape);
  cross_entropy(device_rules_.result, x.values(), labels.as<std::int32_t>(), x.rows(), x.columns(),
                scale, exponentials.values(), losses.values(), gradient.values(), loss.values());
  loss.memory->read(std::as_writable_bytes(std::span(&record.loss, 1)));
  record.rows = x.rows();
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
    gradient = (*layer)->backward(device_rules_, gradient, layer + 1 != layers_.rend());

  record.skipped = scaler_ && found_overflow();
  if (!record.skipped) move(experiments::training::inverse_of_scale(scale));
  if (scaler_) static_cast<void>(scaler_->update(record.skipped));
  return record;
}

bool DeviceTrainer::found_overflow() const {
  const DeviceTensor found = zeros({1});
  for (const auto& p : parameters_)
    find_overflow(p->gradient.values(), p->gradient.size(), found.memory->as<std::uint32_t>());
  std::uint32_t flag = 0;
  found.memory->read(std::as_writable_bytes(std::span(&flag, 1)));
  return flag != 0;
}

void DeviceTrainer::move(float inverse_scale) {
  const bool is_first = moves_++ == 0;
  for (const auto& p : parameters_) {
    if (rules_.optimizer.kind == OptimizerRules::Kind::sgd)
      move_by_sgd(sgd_step(rules_.optimizer, is_first), p->value.values(), p->gradient.values(),
                  p->first.values(), inverse_scale, p->value.size());
    else
      move_by_adam(adam_step(rules_.optimizer, moves_), p->value.values(), p->gradient.values(),
                   p->first.values(), p->second.values(), inverse_scale, p->value.size());
  }
}

std::vector<std::vector<float>> DeviceTrainer::weights() const {
  std::vector<std::vector<float>> all;
  for (const auto& p : parameters_) {
    std::vector<float>& values =
        all.emplace_back(std::vector<float>(static_cast<std::size_t>(p->value.size())));
    p->value.memory->read(std::as_writable_bytes(std::span(values)));
  }
  return all;
}

}  // namespace guardbit::tools::training

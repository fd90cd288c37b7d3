#include <algorithm>
#include <cmath>
#include <optional>

#include "emulator/operators/attention/kernels.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/replay/calls.hpp"

// Attention by PyTorch's three fused backends. What is written out in operators is none of these.
namespace guardbit::emulator::replay {
namespace {

using attention::BackwardProblem;
using attention::BackwardResult;
using attention::Causal;
using attention::ForwardResult;
using attention::Problem;

enum class Backend : std::uint8_t { flash, efficient, cudnn };

bool is_of_tensor_cores(const formats::Format& type) {
  return type == formats::fp16 || type == formats::bf16;
}

/// What the arguments ask for. UnknownArguments where no kernel is known for them.
Problem problem_of(const Call& call, Backend backend, std::size_t query, const Context& context) {
  const Tensor& q = call.tensor(query, "query");
  const Tensor& k = call.tensor(query + 1, "key");
  const Tensor& v = call.tensor(query + 2, "value");
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    throw UnknownArguments{"operands are not of four dimensions"};
  if (!is_of_tensor_cores(q.type) && (backend != Backend::efficient || q.type != formats::fp32))
    throw UnknownArguments{"no kernel for this type"};
  Problem x{.type = q.type,
            .batch = q.shape[0],
            .heads = q.shape[1],
            .kv_heads = k.shape[1],
            .queries = q.shape[2],
            .keys = k.shape[2],
            .width = q.shape[3],
            .value_width = v.shape[3]};
  if (k.shape[0] != x.batch || v.shape[0] != x.batch || v.shape[1] != x.kv_heads ||
      v.shape[2] != x.keys || k.shape[3] != x.width || x.kv_heads == 0 ||
      x.heads % x.kv_heads != 0 || k.type != q.type || v.type != q.type)
    throw UnknownArguments{"operands do not fit together"};
  if (x.queries == 0 || x.keys == 0 || x.width == 0 || x.batch * x.heads == 0)
    throw UnknownArguments{"empty operands"};
  x.q = operators::numbers_of(q);
  x.k = operators::numbers_of(k);
  x.v = operators::numbers_of(v);
  x.scale = 1 / std::sqrt(static_cast<double>(x.width));
  if (const Value* scale = call.find(100, "scale"); scale != nullptr && !scale->is_none())
    x.scale = call.number(100, "scale");
  x.threads = context.threads;
  return x;
}

void take_bias(Problem& x, const Tensor* bias) {
  if (bias == nullptr) return;
  const Dimensions shape = {x.batch, x.heads, x.queries, x.keys};
  const std::size_t missing = shape.size() - std::min(shape.size(), bias->shape.size());
  Dimensions steps(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > missing;) {
    const std::int64_t size = bias->shape[i - missing];
    if (size != 1 && size != shape[i]) throw UnknownArguments{"a bias of this shape"};
    steps[i] = size == 1 ? 0 : step;
    step *= size;
  }
  const std::vector<float> numbers = operators::numbers_of(*bias);
  x.bias.reserve(static_cast<std::size_t>(x.batch * x.heads * x.queries * x.keys));
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.heads; ++h)
      for (std::int64_t i = 0; i < x.queries; ++i)
        for (std::int64_t j = 0; j < x.keys; ++j)
          x.bias.push_back(numbers[b * steps[0] + h * steps[1] + i * steps[2] + j * steps[3]]);
}

std::uint64_t word_of(const Tensor& tensor, std::size_t index) {
  const std::vector<std::int64_t> words = operators::integers_of(tensor);
  if (index >= words.size()) throw UnknownArguments{"no state of the generator"};
  return static_cast<std::uint64_t>(words[index]);
}

/// Seed and offset as one tensor of two numbers or as two tensors.
void take_dropout(Problem& x, double probability, const Tensor* first, const Tensor* second) {
  if (probability == 0) return;
  if (!(probability > 0 && probability <= 1))
    throw UnknownArguments{"a probability outside of 0 to 1"};
  if (first == nullptr) throw UnknownArguments{"no state of the generator"};
  x.dropout = {probability, word_of(*first, 0), 0};
  x.dropout.offset = first->count() > 1  ? word_of(*first, 1)
                     : second == nullptr ? 0
                                         : word_of(*second, 0);
}

/// Of the call's recorded results, the tensor at that place.
const Tensor* recorded(const Call& call, std::size_t place, const Context& context) {
  const List* list = context.has_results ? call.out.list() : nullptr;
  return list == nullptr || place >= list->size() ? nullptr : (*list)[place].tensor();
}

/// The generator's state before a forward call is what it gave, or what a program that runs says.
void take_drawn_dropout(Problem& x, double probability, const Call& call, std::size_t place,
                        const Context& context) {
  if (context.has_results || probability == 0) {
    take_dropout(x, probability, recorded(call, place, context),
                 recorded(call, place + 1, context));
    return;
  }
  if (!call.seed || !call.philox_offset) throw UnknownArguments{"no state of the generator"};
  x.dropout = {probability, *call.seed, *call.philox_offset};
}

/// By how much dropout of that many numbers moves the generator on; the offset counts fours.
std::uint64_t drawn_by_dropout(const Problem& x, std::int64_t numbers) {
  return x.dropout.probability == 0 ? 0 : static_cast<std::uint64_t>((numbers + 3) / 4 * 4);
}

/// Out and logsumexp; what else the call gives is the state of the generator.
Answer answer_of(Tensor out, Tensor log_sums, std::string plan) {
  Answer answer = computed({std::move(out), std::move(log_sums)}, std::move(plan));
  answer.data_from = 2;
  return answer;
}

Answer forward(const Problem& x, const attention::ForwardKernel& kernel, std::int64_t padded_rows,
               Dimensions log_shape, bool has_log_sums) {
  const ForwardResult result = attention::compute(kernel, x);
  Tensor out = operators::tensor_of_numbers(x.type, {x.batch, x.heads, x.queries, x.value_width},
                                            result.out);
  std::vector<float> logs;
  for (std::int64_t head = 0; head < x.batch * x.heads && has_log_sums; ++head) {
    const auto first = result.logsumexp.begin() + head * x.queries;
    logs.insert(logs.end(), first, first + x.queries);
    logs.resize(static_cast<std::size_t>((head + 1) * padded_rows), INFINITY);
  }
  Tensor log_sums = operators::tensor_of_numbers(formats::fp32, std::move(log_shape), logs);
  return answer_of(std::move(out), std::move(log_sums), kernel.description());
}

Answer flash(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::flash, 0, context);
  if (call.boolean(4, "is_causal", false) && x.queries > 1) x.causal = Causal::bottom_right;
  take_drawn_dropout(x, call.number(3, "dropout_p", 0), call, 6, context);
  const Dimensions log_shape = {x.batch, x.heads, x.queries};
  const std::int64_t rows = x.queries;
  // One query of several heads that share keys: the heads become queries.
  const bool is_swapped =
      x.queries == 1 && x.heads > x.kv_heads && x.dropout.probability == 0 && x.width % 8 == 0;
  if (!is_swapped) {
    Answer answer = forward(x, flash_forward(x, context.machine), rows, log_shape, true);
    constexpr std::int64_t lanes = 32;
    answer.drawn = drawn_by_dropout(x, x.batch * x.heads * lanes);
    return answer;
  }
  x.queries = x.heads / x.kv_heads;
  x.heads = x.kv_heads;
  Answer answer =
      forward(x, flash_forward(x, context.machine), x.queries, {x.batch, x.heads, x.queries}, true);
  answer.results[0]->shape = {x.batch, x.heads * x.queries, 1, x.value_width};
  answer.results[1]->shape = log_shape;
  return answer;
}

Answer efficient(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::efficient, 0, context);
  take_bias(x, call.optional_tensor(3, "attn_bias"));
  if (call.boolean(6, "is_causal", false)) x.causal = Causal::top_left;
  take_drawn_dropout(x, call.number(5, "dropout_p", 0), call, 2, context);
  const bool has_log_sums = call.boolean(4, "compute_log_sumexp", false);
  const std::int64_t rows = has_log_sums ? (x.queries + 31) / 32 * 32 : 0;
  Answer answer =
      forward(x, attention::efficient_forward(x), rows, {x.batch, x.heads, rows}, has_log_sums);
  answer.drawn = drawn_by_dropout(x, x.batch * x.heads * x.queries * x.keys);
  return answer;
}

Answer cudnn(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::cudnn, 0, context);
  take_bias(x, call.optional_tensor(3, "attn_bias"));
  if (call.boolean(6, "is_causal", false)) x.causal = Causal::top_left;
  take_drawn_dropout(x, call.number(5, "dropout_p", 0), call, 6, context);
  const bool has_log_sums = call.boolean(4, "compute_log_sumexp", false);
  // More keys are split over thread blocks.
  constexpr std::int64_t measured_keys = 128, most_keys = 512;
  const bool is_plain = x.bias.empty() && x.dropout.probability == 0 && x.width <= 128;
  if (x.queries == 1 && !has_log_sums && x.keys > (is_plain ? most_keys : measured_keys))
    return unmodelled("cuDNN's kernel for one query and that many keys is not known");
  Answer answer = forward(x, attention::cudnn_forward(x, has_log_sums), x.queries,
                          {x.batch, x.heads, x.queries, 1}, true);
  answer.drawn = drawn_by_dropout(x, x.batch * x.heads * x.queries * x.keys);
  // Otherwise what stands there is no logsumexp but the generator's state.
  if (!has_log_sums) answer.data_from = 1;
  return answer;
}

/// Of open sums, how many rounded elements no order of the parts gives.
std::int64_t impossible_elements(const Problem& x, const BackwardResult& result,
                                 const std::vector<float>& recorded) {
  std::int64_t impossible = 0;
  const std::int64_t size = x.queries * x.width;
  for (const attention::OpenSum& sum : result.open) {
    std::vector<std::size_t> order(sum.parts.size());
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
      const float wanted = recorded[sum.head * size + i];
      bool is_possible = false;
      do {
        float total = 0;
        for (const std::size_t n : order) total += sum.parts[n][i];
        const float rounded = operators::rounded_to(x.type, total * sum.factor);
        is_possible = rounded == wanted || (std::isnan(rounded) && std::isnan(wanted));
      } while (!is_possible && std::next_permutation(order.begin(), order.end()));
      impossible += is_possible ? 0 : 1;
    }
  }
  return impossible;
}

/// How many elements are not the recorded ones; nothing where none are recorded.
std::optional<std::int64_t> differing_elements(const Tensor& tensor, const Tensor* recorded) {
  if (recorded == nullptr || recorded->bytes.size() != tensor.bytes.size()) return {};
  const auto bytes = static_cast<std::size_t>(tensor.element_bytes());
  std::int64_t differing = 0;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += bytes) {
    const auto element = tensor.bytes.subspan(at, bytes);
    differing += std::ranges::equal(element, recorded->bytes.subspan(at, bytes)) ? 0 : 1;
  }
  return differing;
}

/// Gradients of keys or values: of query heads that share one, rounded, then added in FP32.
Tensor shared_gradient(const Problem& x, const std::vector<float>& of_heads, std::int64_t width) {
  const std::int64_t group = x.heads / x.kv_heads, size = x.keys * width;
  std::vector<float> sums(static_cast<std::size_t>(x.batch * x.kv_heads * size));
  for (std::int64_t head = 0; head < x.batch * x.kv_heads; ++head) {
    for (std::int64_t i = 0; i < size; ++i) {
      float sum = group == 1 ? of_heads[head * size + i] : 0;
      for (std::int64_t n = 0; n < group && group > 1; ++n)
        sum += operators::rounded_to(x.type, of_heads[(head * group + n) * size + i]);
      sums[head * size + i] = sum;
    }
  }
  return operators::tensor_of_numbers(x.type, {x.batch, x.kv_heads, x.keys, width}, sums);
}

Answer backward(const Call& call, const BackwardProblem& problem,
                const attention::BackwardKernel& kernel, const Context& context) {
  const Problem& x = problem.forward;
  const BackwardResult result = attention::compute_backward(kernel.form, problem);
  std::vector<std::optional<Tensor>> results = {
      operators::tensor_of_numbers(x.type, {x.batch, x.heads, x.queries, x.width}, result.dq),
      shared_gradient(x, result.dk, x.width), shared_gradient(x, result.dv, x.value_width)};
  if (!result.dbias.empty()) {
    results.push_back(
        operators::tensor_of_numbers(x.type, {x.batch, x.heads, x.queries, x.keys}, result.dbias));
  }
  Answer answer = computed(std::move(results), kernel.description());
  if (result.open.empty() && !result.is_open) return answer;
  if (result.open.empty() && !context.has_results) {
    // Blocks wait for one another: in the order in which they come at one speed. Where all start
    // at once they do: 20 shapes, 30 times each. With more blocks some shapes differ each time.
    const std::int64_t blocks = x.batch * x.heads * kernel.form.splits;
    if (blocks > context.machine.multiprocessors) answer.agree = 0;
    return answer;
  }
  answer.status = Status::unordered;
  for (std::size_t i = 0; i < answer.results.size(); ++i)
    answer.impossible.push_back(differing_elements(*answer.results[i], recorded(call, i, context)));
  if (result.open.empty()) return answer;
  const bool is_tried = result.open.front().parts.size() <= attention::most_tried_tiles;
  answer.impossible[0].reset();
  if (is_tried && !problem.recorded_dq.empty())
    answer.impossible[0] = impossible_elements(x, result, problem.recorded_dq);
  return answer;
}

BackwardProblem backward_problem(const Call& call, const Problem& x, std::size_t out,
                                 const Context& context) {
  BackwardProblem problem{.forward = x,
                          .grad = operators::numbers_of(call.tensor(0, "grad_out")),
                          .out = operators::numbers_of(call.tensor(out, "out")),
                          .logsumexp = {}};
  const Tensor& logs = call.tensor(out + 1, "logsumexp");
  const std::vector<float> all = operators::numbers_of(logs);
  const auto heads = static_cast<std::size_t>(x.batch * x.heads);
  const std::size_t rows = all.size() / heads;
  if (rows < static_cast<std::size_t>(x.queries))
    throw UnknownArguments{"logsumexp is shorter than the queries"};
  for (std::size_t head = 0; head < heads; ++head) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(head * rows);
    problem.logsumexp.insert(problem.logsumexp.end(), first, first + x.queries);
  }
  if (const Tensor* dq = recorded(call, 0, context))
    problem.recorded_dq = operators::numbers_of(*dq);
  return problem;
}

bool is_deterministic(const Context& context) {
  return context.flag("deterministic", false) && !context.flag("deterministic_warn_only", false);
}

Answer flash_backward(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::flash, 1, context);
  if (call.boolean(11, "is_causal", false)) x.causal = Causal::bottom_right;
  take_dropout(x, call.number(10, "dropout_p", 0), call.optional_tensor(12, "philox_seed"),
               call.optional_tensor(13, "philox_offset"));
  const auto kernel = attention::flash_backward(x, context.machine, is_deterministic(context));
  return backward(call, backward_problem(call, x, 4, context), kernel, context);
}

/// In FP32 the sums of dO * O are made by PyTorch's product and sum.
std::vector<float> delta_of_other_kernels(const BackwardProblem& problem, Context& context) {
  const Problem& x = problem.forward;
  std::vector<float> products(problem.grad.size());
  for (std::size_t i = 0; i < products.size(); ++i) products[i] = problem.grad[i] * problem.out[i];
  const Dimensions shape = {x.batch * x.heads * x.queries, x.value_width};
  return operators::numbers_of(
      operators::sum(operators::tensor_of_numbers(formats::fp32, shape, products),
                     {.dimensions = {1}, .type = {}, .machine = context.machine})
          .result);
}

bool wants_bias_gradient(const Call& call, const Context& context) {
  if (context.has_results) return recorded(call, 3, context) != nullptr;
  const Value* mask = call.find(10, "grad_input_mask");
  if (mask == nullptr || mask->list() == nullptr || mask->list()->size() < 4) return false;
  const bool* wants = std::get_if<bool>(&(*mask->list())[3].content);
  return wants != nullptr && *wants;
}

Answer efficient_backward(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::efficient, 1, context);
  take_bias(x, call.optional_tensor(4, "attn_bias"));
  if (call.boolean(11, "is_causal", false)) x.causal = Causal::top_left;
  take_dropout(x, call.number(9, "dropout_p", 0), call.optional_tensor(7, "philox_seed"),
               call.optional_tensor(8, "philox_offset"));
  BackwardProblem problem = backward_problem(call, x, 5, context);
  if (x.type == formats::fp32) problem.delta = delta_of_other_kernels(problem, context);
  problem.wants_bias_gradient = wants_bias_gradient(call, context);
  const auto kernel = attention::efficient_backward(x, is_deterministic(context));
  return backward(call, problem, kernel, context);
}

Answer cudnn_backward(const Call& call, Context& context) {
  Problem x = problem_of(call, Backend::cudnn, 1, context);
  take_bias(x, call.optional_tensor(8, "attn_bias"));
  if (call.boolean(14, "is_causal", false)) x.causal = Causal::top_left;
  take_dropout(x, call.number(13, "dropout_p", 0), call.optional_tensor(6, "philox_seed"),
               call.optional_tensor(7, "philox_offset"));
  return backward(call, backward_problem(call, x, 4, context), attention::cudnn_backward(x),
                  context);
}

constexpr std::array attention_handlers = {
    Handler{"aten._scaled_dot_product_flash_attention", flash},
    Handler{"aten._scaled_dot_product_flash_attention_backward", flash_backward},
    Handler{"aten._scaled_dot_product_efficient_attention", efficient},
    Handler{"aten._scaled_dot_product_efficient_attention_backward", efficient_backward},
    Handler{"aten._scaled_dot_product_cudnn_attention", cudnn},
    Handler{"aten._scaled_dot_product_cudnn_attention_backward", cudnn_backward},
};

}  // namespace

std::span<const Handler> attention_calls() { return attention_handlers; }

}  // namespace guardbit::emulator::replay

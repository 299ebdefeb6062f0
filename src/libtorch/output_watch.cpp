#include "tamis/libtorch/output_watch.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/gradient_rows.h"

namespace tamis::libtorch {

using tamis::detail::concat;

namespace {

// A node of its own for every watched output: what the loss uses of it is counted once, also where
// one output feeds another.
struct Identity : torch::autograd::Function<Identity> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& output) {
    return output.detach();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return gradients;
  }
};

bool is_half(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kHalf || tensor.scalar_type() == torch::kBFloat16;
}

// One per row, in float at least: the squares of half-precision gradients vanish.
torch::Tensor norms_of(const torch::Tensor& gradient, int order) {
  const auto type = is_half(gradient) ? torch::kFloat : gradient.scalar_type();
  if (gradient.dim() == 1) return gradient.to(type).abs();
  return torch::linalg_vector_norm(gradient.flatten(1), order, 1, false, type);
}

torch::Tensor weigh(const torch::Tensor& gradient, const torch::Tensor& factors) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(gradient.dim()), 1);
  shape[0] = -1;
  const auto type = is_half(gradient) ? torch::kFloat : gradient.scalar_type();
  return (gradient * factors.to(gradient.device(), type).view(shape)).to(gradient.scalar_type());
}

// Rows that can be read where they are. Not those of which a second derivative is wanted.
bool is_plain_memory(const torch::Tensor& gradient) {
  const auto type = gradient.scalar_type();
  return (type == torch::kFloat || type == torch::kDouble) && gradient.is_cpu() &&
         gradient.is_contiguous() && !gradient.requires_grad() && gradient.numel() > 0;
}

struct Rows {
  torch::Tensor norms;
  torch::Tensor weighted;
};

// Both in one walk over the memory; `factors` may be undefined.
template <typename T>
Rows read_memory(const torch::Tensor& gradient, int order, const torch::Tensor& factors) {
  const auto num_rows = static_cast<std::size_t>(gradient.size(0));
  const std::size_t num_columns = static_cast<std::size_t>(gradient.numel()) / num_rows;
  Rows rows{.norms = torch::empty({gradient.size(0)}, torch::kFloat), .weighted = gradient};
  const std::span norms(rows.norms.mutable_data_ptr<float>(), num_rows);
  const T* const from = gradient.const_data_ptr<T>();
  if (!factors.defined()) {
    tamis::detail::norms_of_rows(from, num_columns, order, norms);
  } else {
    rows.weighted = torch::empty_like(gradient);
    tamis::detail::weigh_rows(from, num_columns, order,
                              {factors.const_data_ptr<double>(), num_rows},
                              rows.weighted.mutable_data_ptr<T>(), norms);
  }
  return rows;
}

Rows read(const torch::Tensor& gradient, int order, const torch::Tensor& factors) {
  if (is_plain_memory(gradient)) {
    return gradient.scalar_type() == torch::kFloat ? read_memory<float>(gradient, order, factors)
                                                   : read_memory<double>(gradient, order, factors);
  }
  return {.norms = norms_of(gradient.detach(), order),
          .weighted = factors.defined() ? weigh(gradient, factors) : gradient};
}

std::string to_text(c10::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

[[noreturn]] void fail_rows(c10::IntArrayRef shape, std::size_t count) {
  throw std::invalid_argument(
      concat("watch: the first dimension of an output must count the samples of its batch, which "
             "are ",
             count, ", got shape ", to_text(shape),
             "; transpose it, or watch a layer that still has one row per sample, such as the last "
             "hidden state"));
}

}  // namespace

struct OutputWatch::State : std::enable_shared_from_this<State> {
  explicit State(int order) : norm_order(order) {}

  int norm_order;
  std::vector<std::vector<std::int64_t>> shapes;  // of the watched outputs
  std::size_t count = 0;                          // 0 until bind()
  torch::Tensor factors;                          // undefined: none
  torch::Tensor norms;                            // undefined until an output has a gradient
  bool is_spent = false;
  bool is_finished = false;
  int task = -1;  // the last backward pass, as torch counts them
  std::function<void(const Backward&)> callback;

  torch::Tensor receive(const torch::Tensor& gradient) {
    if (!gradient.defined()) return gradient;
    if (count == 0) {
      is_spent = is_spent || !torch::autograd::get_current_graph_task_keep_graph();
      return gradient;
    }
    if (gradient.size(0) != static_cast<std::int64_t>(count)) fail_rows(gradient.sizes(), count);
    finish_later();
    if (is_finished) return factors.defined() ? weigh(gradient, factors) : gradient;
    const auto [found, weighted] = read(gradient, norm_order, factors);
    norms = norms.defined() ? joined(norms, found.to(norms)) : found;
    return weighted;
  }

  torch::Tensor joined(const torch::Tensor& a, const torch::Tensor& b) const {
    return norm_order == 1 ? a + b : a.hypot(b);
  }

  void finish_later() {
    const int running = torch::autograd::get_current_graph_task_id();
    if (is_finished || running == task) return;
    task = running;
    const bool is_final = !torch::autograd::get_current_graph_task_keep_graph();
    torch::autograd::Engine::get_default_engine().queue_callback(
        [self = shared_from_this(), is_final] { self->finish(is_final); });
  }

  void finish(bool is_final) {
    is_finished = norms.defined();
    if (!callback) return;
    const std::function<void(const Backward&)> call = callback;
    if (is_finished) callback = nullptr;
    call({.norms = norm_span(), .is_final = is_final});
  }

  std::span<const float> norm_span() {
    if (!norms.defined()) return {};
    norms = norms.to(torch::kCPU, torch::kFloat).contiguous();
    return {norms.const_data_ptr<float>(), static_cast<std::size_t>(norms.numel())};
  }
};

OutputWatch::OutputWatch(int norm_order) : state_(std::make_shared<State>(norm_order)) {}

torch::Tensor OutputWatch::watch(const torch::Tensor& output) {
  if (!torch::GradMode::is_enabled()) return output;
  if (!output.defined() || !output.is_floating_point() || output.dim() == 0 ||
      !output.requires_grad()) {
    std::string got = "an undefined one";
    if (output.defined()) {
      got = concat(c10::toString(output.scalar_type()), " of shape ", to_text(output.sizes()),
                   output.requires_grad() ? "" : " that needs none");
    }
    throw std::invalid_argument(
        concat("watch: an output must be a floating-point tensor with a batch dimension that needs "
               "a gradient, got ",
               got, "; watch what a layer with trained parameters returns, before detach()"));
  }
  if (state_->norm_order == 1 && output.dim() != 2) {
    throw std::invalid_argument(
        concat("watch: with cross_entropy=1 an output must have one row of logits per sample, got "
               "shape ",
               to_text(output.sizes()), "; leave cross_entropy out"));
  }
  state_->shapes.push_back(output.sizes().vec());
  torch::Tensor handed_on = Identity::apply(output);
  handed_on.register_hook(
      [state = state_](const torch::Tensor& gradient) { return state->receive(gradient); });
  return handed_on;
}

std::vector<torch::Tensor> OutputWatch::watch(const std::vector<torch::Tensor>& outputs) {
  std::vector<torch::Tensor> handed_on;
  for (const torch::Tensor& output : outputs) handed_on.push_back(watch(output));
  return handed_on;
}

bool OutputWatch::empty() const { return state_->shapes.empty(); }
bool OutputWatch::is_spent() const { return state_->is_spent; }

void OutputWatch::check_rows(std::size_t count) const {
  const auto& shapes = state_->shapes;
  const auto has_rows = [&](const auto& shape) {
    return shape[0] == static_cast<std::int64_t>(count);
  };
  // One that is not used, of an evaluation for example, may have others.
  if (!shapes.empty() && std::none_of(shapes.begin(), shapes.end(), has_rows)) {
    fail_rows(shapes[0], count);
  }
}

void OutputWatch::bind(std::size_t count, std::span<const float> weights) {
  check_rows(count);
  tamis::detail::require(weights.empty() || weights.size() == count, "watch", "weights",
                         concat("none or one per sample (", count, ")"), weights.size());
  state_->count = count;
  const bool is_uniform =
      std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) == weights.end();
  if (is_uniform) return;
  const double mean =
      std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  state_->factors = torch::empty({static_cast<std::int64_t>(count)}, torch::kDouble);
  auto* const factors = state_->factors.mutable_data_ptr<double>();
  for (std::size_t k = 0; k < count; ++k) factors[k] = static_cast<double>(weights[k]) / mean;
}

void OutputWatch::on_finish(const torch::Tensor& loss,
                            std::function<void(const Backward&)> callback) {
  state_->callback = std::move(callback);
  loss.register_hook([state = state_](const torch::Tensor&) { state->finish_later(); });
}

std::vector<float> OutputWatch::norms() const {
  const auto span = state_->norm_span();
  return {span.begin(), span.end()};
}

}  // namespace tamis::libtorch

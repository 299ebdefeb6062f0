#include "training/trainer/team.h"

#include <c10/util/Logging.h>
#include <torch/torch.h>

#include <array>
#include <vector>

#include "training/data/dataset.h"
#include "training/models/model.h"

namespace tamis::training {

Team::Team(std::shared_ptr<libtorch::ProcessGroup> group) : group_(std::move(group)) {
  communicator_ = group_ ? std::shared_ptr<Communicator>(group_) : make_single_process();
}

void Team::average(const torch::nn::Module& model, StepSums& sums) {
  if (is_alone()) return;
  std::vector<torch::Tensor> gradients;
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (!parameter.grad().defined()) continue;
    gradients.push_back(parameter.grad());
    parts.push_back(gradients.back().reshape({-1}));
  }
  // Floats hold the counts of a batch exactly.
  parts.push_back(torch::tensor({static_cast<float>(sums.loss), static_cast<float>(sums.correct),
                                 static_cast<float>(sums.samples), sums.stops ? 1.0F : 0.0F}));
  const torch::Tensor all = torch::cat(parts);
  group_->sum(all);

  const auto num_ranks = static_cast<double>(size());
  std::int64_t begin = 0;
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& gradient : gradients) {
    gradient.copy_(all.narrow(0, begin, gradient.numel()).view_as(gradient)).div_(num_ranks);
    begin += gradient.numel();
  }
  const float* const extra = all.data_ptr<float>() + begin;
  sums.loss = static_cast<double>(extra[0]) / num_ranks;
  sums.correct = static_cast<std::uint64_t>(extra[1]);
  sums.samples = static_cast<std::uint64_t>(extra[2]);
  sums.stops = extra[3] > 0.0F;
}

void Team::share_buffers(const torch::nn::Module& model) {
  if (is_alone()) return;
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& buffer : model.buffers()) group_->copy_from_first(buffer);
}

std::optional<Evaluation> Team::evaluate(Model& model, const Dataset& data, bool flips,
                                         const StopRequest& stop) {
  if (is_alone()) return training::evaluate(model, data, flips, stop);
  share_buffers(model);
  const auto begin = static_cast<std::int64_t>(data.size() * rank() / size());
  const auto end = static_cast<std::int64_t>(data.size() * (rank() + 1) / size());
  std::array<double, 2> sums{};
  if (begin < end) {
    Dataset part = data;
    part.images = data.images.narrow(0, begin, end - begin);
    part.labels = data.labels.narrow(0, begin, end - begin);
    const Evaluation own = *training::evaluate(model, part, flips, {});
    const auto count = static_cast<double>(end - begin);
    sums = {own.loss * count, own.accuracy * count};
  }
  model.eval();
  communicator_->all_reduce(std::span<double>(sums));
  const auto count = static_cast<double>(data.size());
  return Evaluation{.loss = sums[0] / count, .accuracy = sums[1] / count};
}

Team connect_team(std::chrono::milliseconds time_limit) {
  auto options = libtorch::process_group_from_environment();
  if (!options || options->size == 1) return Team(nullptr);
  options->time_limit = time_limit;
  c10::initLogging();  // takes the environment's TORCH_CPP_LOG_LEVEL, which only Python does itself
  return Team(std::make_shared<libtorch::ProcessGroup>(*options));
}

std::size_t num_processes_here() {
  const auto options = libtorch::process_group_from_environment();
  return options ? options->num_here : 1;
}

}  // namespace tamis::training

// One rank of a run without a model, for tests that start several: trains some epochs, saves after
// each, and writes what it did to FOLDER/rankR. Arguments: FOLDER name=value ...
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "support/simulated_run.h"
#include "tamis/libtorch/process_group.h"

namespace {

using tamis::Communicator;
using tamis::Pruner;
using tamis::libtorch::ProcessGroup;

// Passes everything on, until it is told to die, or to hang, at one of the next calls.
class DoomedRank final : public Communicator {
 public:
  explicit DoomedRank(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}
  std::size_t rank() const override { return group_->rank(); }
  std::size_t size() const override { return group_->size(); }
  std::chrono::milliseconds time_limit() const override { return group_->time_limit(); }

  void doom(int signal, int num_calls) {
    signal_ = signal;
    num_calls_ = num_calls;
  }

 private:
  void reduce(std::span<std::int64_t> numbers, tamis::Reduction reduction) override {
    count();
    group_->all_reduce(numbers, reduction);
  }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    count();
    return group_->all_gather(bytes);
  }
  void count() {
    if (signal_ != 0 && num_calls_-- == 0) ::raise(signal_);
  }

  std::shared_ptr<ProcessGroup> group_;
  int signal_ = 0;
  int num_calls_ = 0;
};

class Rank {
 public:
  Rank(std::map<std::string, std::string> settings, std::ostream& out)
      : settings_(std::move(settings)), out_(out) {}

  // Since the last step, or since it began: how long a call took that failed.
  double seconds_waited() const {
    return std::chrono::duration<double>(Clock::now() - last_step_).count();
  }

  void run() {
    last_step_ = Clock::now();
    auto options = tamis::libtorch::process_group_from_environment().value();
    options.time_limit = std::chrono::milliseconds(number("limit", 20'000));
    if (is_victim() && get("when") == "start") ::raise(signal());
    const auto group = std::make_shared<ProcessGroup>(options);
    if (!get("pipe").empty()) ::raise(SIGPIPE);
    const auto communicator = std::make_shared<DoomedRank>(group);
    Pruner pruner = make(communicator);
    if (!get("load").empty()) pruner.load(get("load"));
    std::uint64_t epoch = 0;
    if (pruner.plan() != nullptr) {
      const bool is_done = pruner.position() == pruner.plan()->size();
      epoch = pruner.plan()->epoch() + (is_done ? 1 : 0);
    }
    for (; epoch < number("epochs", 4); ++epoch) train(pruner, epoch, *group, *communicator);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string get(const std::string& name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? "" : found->second;
  }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    return get(name).empty() ? otherwise : std::stoull(get(name));
  }
  bool is_victim() const { return get("victim") == std::getenv("RANK"); }
  int signal() const { return get("fault") == "hang" ? SIGSTOP : SIGKILL; }

  Pruner make(const std::shared_ptr<Communicator>& communicator) const {
    const bool is_odd = get("odd") == std::getenv("RANK");
    return Pruner({.num_samples = 3001,
                   .num_epochs = 8,
                   .policy = {get("policy").empty() ? "infobatch" : get("policy")},
                   .score = tamis::Spec{"batch-loss"},
                   .seed = number("seed", 1) + (is_odd ? 1U : 0U),
                   .layout = tamis::parse_layout(get("layout"))},
                  communicator);
  }

  void train(Pruner& pruner, std::uint64_t epoch, ProcessGroup& group, DoomedRank& communicator) {
    const bool is_fatal = is_victim() && epoch == number("when_epoch", 2);
    const std::string when = is_fatal ? get("when") : "";
    if (when == "exchange") communicator.doom(signal(), 0);
    const std::uint64_t before = communicator.bytes_sent() + communicator.bytes_received();
    const tamis::EpochPlan& plan = pruner.start_epoch(epoch);
    const std::uint64_t after = communicator.bytes_sent() + communicator.bytes_received();
    out_ << "epoch " << epoch << ' ' << plan.size() << ' ' << plan.num_selected() << ' '
         << after - before;
    for (const tamis::SampleIndex sample : tamis::test::own_samples(plan)) out_ << ' ' << sample;
    out_ << std::endl;
    for (int step = 0; pruner.position() < plan.size(); ++step) {
      if (when == "step" && step == 5) ::raise(signal());
      torch::Tensor gradient = torch::ones({100});
      group.sum(gradient);
      if (gradient[7].item<float>() != static_cast<float>(group.size())) {
        throw std::runtime_error("the gradients were not added up");
      }
      tamis::test::simulate_step(pruner, 32);
      last_step_ = Clock::now();
    }
    if (communicator.bytes_sent() + communicator.bytes_received() != after) {
      throw std::runtime_error("something was exchanged in a step");
    }
    if (when == "checkpoint") {
      communicator.doom(signal(), static_cast<int>(number("when_call", 1)));
    }
    if (!get("save").empty()) pruner.save(get("save"));
  }

  std::map<std::string, std::string> settings_;
  std::ostream& out_;
  Clock::time_point last_step_ = {};
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> settings;
  for (int k = 2; k < argc; ++k) {
    const std::string text = argv[k];
    settings[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  torch::set_num_threads(1);
  std::ofstream out(std::filesystem::path(argv[1]) / ("rank" + std::string(std::getenv("RANK"))));
  Rank rank(settings, out);
  try {
    rank.run();
    out << "finished" << std::endl;
    return 0;
  } catch (const std::exception& error) {
    out << "error " << rank.seconds_waited() << ' ' << error.what() << std::endl;
    // Not exit(): a thread may be left behind.
    ::_exit(1);
  }
}

#include "support/golden_plans/run.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/golden_plans/adapter.h"
#include "support/golden_plans/digest.h"

namespace tamis::test::golden {

namespace {

using Bytes = std::vector<std::byte>;

// What one rank saw; a digest is taken of all ranks' together.
struct RankEpoch {
  std::uint64_t epoch = 0;
  bool pruning = false;
  std::uint64_t num_selected = 0;
  std::vector<std::uint64_t> samples;
  std::vector<bool> is_padding;
  std::vector<float> weights;
  std::vector<double> steps;
  std::vector<std::pair<std::string, double>> report;
  std::vector<float> scores;
  std::uint64_t num_observations = 0;
  std::uint64_t num_skipped = 0;
};

struct RankRecord {
  std::vector<RankEpoch> epochs;
  RankEpoch end;  // scores and counts only
  Bytes state;
};

// Calls `body` for every rank, each in a thread of its own; throws what the first of them threw.
void on_ranks(RankLayout layout,
              const std::function<void(std::size_t rank, const adapter::Link& link)>& body) {
  const std::vector<adapter::Link> links = adapter::make_links(layout);
  if (links.size() == 1) return body(0, links[0]);
  std::vector<std::exception_ptr> errors(links.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < links.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        body(r, links[r]);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void note_scores(const adapter::Run& run, RankEpoch& epoch) {
  epoch.scores = run.scores();
  epoch.num_observations = run.num_observations();
  epoch.num_skipped = run.num_skipped();
}

RankEpoch note_plan(const adapter::Run& run, std::uint64_t number) {
  RankEpoch epoch;
  epoch.epoch = number;
  epoch.pruning = run.pruning();
  epoch.num_selected = run.num_selected();
  for (std::size_t j = 0; j < run.size(); ++j) {
    epoch.samples.push_back(run.sample(j));
    epoch.is_padding.push_back(run.is_padding(j));
    epoch.weights.push_back(run.weight(j));
  }
  epoch.report = run.report();
  epoch.steps.push_back(run.pruned_share());
  note_scores(run, epoch);
  return epoch;
}

// A batch with a loss that is not a number: the second one of the last rank in epoch 1. And an
// infinite one: the first of the first rank in epoch 3.
enum class Fault { none, nan, infinite };
Fault fault_at(std::uint64_t epoch, std::size_t rank, std::size_t num_ranks, std::size_t batch,
               std::size_t num_batches) {
  if (epoch == 1 && rank + 1 == num_ranks && batch == std::min<std::size_t>(1, num_batches - 1)) {
    return Fault::nan;
  }
  return epoch == 3 && rank == 0 && batch == 0 ? Fault::infinite : Fault::none;
}

class RankRun {
 public:
  RankRun(const Scenario& scenario, RankLayout layout, std::size_t rank, const adapter::Link& link)
      : scenario_(scenario), layout_(layout), rank_(rank), run_(scenario, layout, link) {}

  adapter::Run& run() { return run_; }
  RankRecord take() { return std::move(record_); }

  // Epochs number first to last of those of the scenario. In the first one, a loaded plan goes on.
  void train(std::size_t first, std::size_t last, Resume stop = Resume::never) {
    const std::vector<std::uint64_t> epochs = epochs_of(scenario_);
    for (std::size_t k = first; k < last; ++k) {
      run_.start_epoch(epochs[k]);
      record_.epochs.push_back(note_plan(run_, epochs[k]));
      const bool stops = stop == Resume::mid_epoch && k + 1 == last;
      train_epoch(epochs[k], stops || scenario_.trains_half);
    }
  }

  void finish() {
    record_.state = run_.save();
    note_scores(run_, record_.end);
  }

  static std::vector<std::uint64_t> epochs_of(const Scenario& scenario) {
    if (!scenario.epochs.empty()) return scenario.epochs;
    std::vector<std::uint64_t> all(scenario.num_epochs);
    for (std::size_t e = 0; e < all.size(); ++e) all[e] = e;
    return all;
  }

 private:
  void train_epoch(std::uint64_t epoch, bool half) {
    const std::size_t size = run_.size();
    const std::size_t num_batches = (size + scenario_.batch_size - 1) / scenario_.batch_size;
    const std::size_t end = half ? (num_batches + 1) / 2 : num_batches;
    for (std::size_t b = 0; b < end; ++b) {
      const std::size_t begin = b * scenario_.batch_size;
      const std::size_t count = std::min(scenario_.batch_size, size - begin);
      train_batch(epoch, begin, count, fault_at(epoch, rank_, layout_.num_ranks, b, num_batches));
      run_.set_position(begin + count);
      record_.epochs.back().steps.push_back(run_.mean_weight(begin, count));
      record_.epochs.back().steps.push_back(run_.progress());
      if (scenario_.observes_others && b == epoch % 3) observe_others(epoch);
    }
  }

  bool tells_samples() const {
    return scenario_.form == Form::per_sample ||
           (scenario_.form == Form::automatic && run_.needs_sample_losses());
  }

  double mean_of(std::span<const float> losses) const {
    double sum = 0.0;
    for (const float loss : losses) sum += static_cast<double>(loss);
    const double mean = sum / static_cast<double>(losses.size());
    return scenario_.form == Form::float_mean ? static_cast<double>(static_cast<float>(mean))
                                              : mean;
  }

  void train_batch(std::uint64_t epoch, std::size_t begin, std::size_t count, Fault fault) {
    std::vector<float> losses;
    for (std::size_t j = begin; j < begin + count; ++j) {
      losses.push_back(loss_of(scenario_.losses, epoch, run_.sample(j)));
    }
    if (fault == Fault::nan) losses[count / 2] = std::numeric_limits<float>::quiet_NaN();
    if (fault == Fault::infinite) losses[count / 2] = std::numeric_limits<float>::infinity();
    if (run_.needs_norms()) {  // which the losses are
      run_.observe(begin, mean_of(losses), losses);
    } else if (tells_samples()) {
      run_.observe(begin, losses);
    } else {
      run_.observe(begin, count, mean_of(losses));
    }
  }

  // Four samples of those that the rank keeps, one of them twice.
  void observe_others(std::uint64_t epoch) {
    const auto first = static_cast<std::int64_t>(run_.first_kept());
    const auto kept = static_cast<std::int64_t>(run_.num_kept());
    const std::vector<std::int64_t> samples = {first + kept / 2, first + kept - 1, first,
                                               first + kept / 3, first + kept - 1};
    std::vector<float> losses;
    for (const std::int64_t sample : samples) {
      losses.push_back(loss_of(scenario_.losses, epoch + 10, static_cast<std::uint64_t>(sample)));
    }
    if (run_.needs_norms()) {
      run_.observe_samples(samples, mean_of(losses), losses);
    } else if (tells_samples()) {
      run_.observe_samples(samples, losses);
    } else {
      run_.observe_samples(samples, mean_of(losses));
    }
  }

  const Scenario& scenario_;
  RankLayout layout_;
  std::size_t rank_;
  adapter::Run run_;
  RankRecord record_;
};

// The place of kResumeEpoch among the epochs.
std::size_t resume_place(const Scenario& scenario) {
  const std::vector<std::uint64_t> epochs = RankRun::epochs_of(scenario);
  const auto found = std::find(epochs.begin(), epochs.end(), kResumeEpoch);
  if (found == epochs.end()) throw std::logic_error(scenario.name + ": no epoch to resume in");
  return static_cast<std::size_t>(found - epochs.begin());
}

// Where the loaded run begins: in the epoch that was saved, after it, or with the first one.
std::size_t first_after_load(const Scenario& scenario) {
  if (scenario.resume == Resume::never) return 0;
  return resume_place(scenario) + (scenario.resume == Resume::mid_epoch ? 0 : 1);
}

// Scores of the whole data set: every rank has its part, or all of them.
std::uint64_t digest_scores(RankLayout layout, const std::vector<const RankEpoch*>& ranks) {
  Digest digest;
  for (const RankEpoch* rank : ranks) {
    if (layout.kind == Kind::replicated && rank != ranks[0]) {
      const std::vector<float>& first = ranks[0]->scores;
      if (rank->scores.size() != first.size() ||
          std::memcmp(rank->scores.data(), first.data(), first.size() * sizeof(float)) != 0) {
        throw std::runtime_error("replicated ranks have different scores");
      }
      continue;
    }
    for (const float score : rank->scores) digest.add(score);
  }
  return digest.value();
}

std::uint64_t digest_observations(RankLayout layout, const std::vector<const RankEpoch*>& ranks) {
  std::vector<std::uint64_t> booked;
  std::vector<std::uint64_t> skipped;
  for (const RankEpoch* rank : ranks) {
    booked.push_back(rank->num_observations);
    skipped.push_back(rank->num_skipped);
  }
  Digest digest;
  digest.add(adapter::total(layout, booked));
  digest.add(adapter::total(layout, skipped));
  return digest.value();
}

EpochDigests digest_epoch(const Scenario& scenario, RankLayout layout,
                          const std::vector<const RankEpoch*>& ranks) {
  Digest order;
  Digest counts;
  Digest steps;
  std::vector<float> weights(scenario.num_samples, std::numeric_limits<float>::quiet_NaN());
  counts.add(std::uint64_t{ranks[0]->pruning});
  counts.add(ranks[0]->num_selected);
  for (const RankEpoch* rank : ranks) {
    counts.add(std::uint64_t{rank->samples.size()});
    for (std::size_t j = 0; j < rank->samples.size(); ++j) {
      order.add(rank->samples[j]);
      if (rank->is_padding[j]) {
        counts.add(std::uint64_t{j});
      } else {
        weights.at(static_cast<std::size_t>(rank->samples[j])) = rank->weights[j];
      }
    }
    for (const double step : rank->steps) steps.add(step);
  }
  Digest all_weights;
  for (const float weight : weights) all_weights.add(weight);
  Digest report;
  for (const auto& [name, value] : ranks[0]->report) {
    report.add(std::string_view(name));
    report.add(value);
  }
  return {.epoch = ranks[0]->epoch,
          .order = order.value(),
          .weights = all_weights.value(),
          .counts = counts.value(),
          .steps = steps.value(),
          .report = report.value(),
          .scores = digest_scores(layout, ranks),
          .observations = digest_observations(layout, ranks)};
}

std::vector<EpochDigests> digest_epochs(const Scenario& scenario, RankLayout layout,
                                        const std::vector<RankRecord>& records) {
  std::vector<EpochDigests> epochs;
  for (std::size_t k = 0; k < records[0].epochs.size(); ++k) {
    std::vector<const RankEpoch*> ranks;
    for (const RankRecord& record : records) ranks.push_back(&record.epochs.at(k));
    epochs.push_back(digest_epoch(scenario, layout, ranks));
  }
  return epochs;
}

void digest_state(const Bytes& state, RunDigests& out) {
  std::uint64_t header_size = 0;
  if (state.size() < sizeof header_size) throw std::runtime_error("a state without a header");
  std::memcpy(&header_size, state.data(), sizeof header_size);
  const auto bytes = std::span(state).subspan(sizeof header_size);
  const auto header = bytes.first(static_cast<std::size_t>(header_size));
  const auto data = bytes.subspan(header.size());
  // By name: the json object is sorted.
  const auto json =
      nlohmann::json::parse(reinterpret_cast<const char*>(header.data()),
                            reinterpret_cast<const char*>(header.data()) + header.size());
  Digest tensors;
  for (const auto& [name, tensor] : json.items()) {
    if (name == "__metadata__" || name == "crc32c") continue;
    tensors.add(std::string_view(name));
    tensors.add(std::string_view(tensor.at("dtype").get_ref<const std::string&>()));
    for (const auto& size : tensor.at("shape")) tensors.add(size.get<std::uint64_t>());
    const auto begin = tensor.at("data_offsets").at(0).get<std::size_t>();
    const auto end = tensor.at("data_offsets").at(1).get<std::size_t>();
    tensors.add(std::as_bytes(data.subspan(begin, end - begin)));
  }
  Digest metadata;
  for (const auto& [key, value] : json.at("__metadata__").items()) {
    if (key == "format" || key == "format_version" || key.find("crc32c") != std::string::npos) {
      continue;
    }
    const auto& text = value.get_ref<const std::string&>();
    metadata.add(std::string_view(key));
    metadata.add(std::string_view(text));
    out.metadata_text += key + " " + text + "\n";
  }
  out.tensors = tensors.value();
  out.metadata = metadata.value();
}

void digest_end(RankLayout layout, const std::vector<RankRecord>& records, RunDigests& out) {
  std::vector<const RankEpoch*> ends;
  for (const RankRecord& record : records) {
    if (record.state != records[0].state) throw std::runtime_error("ranks have different states");
    ends.push_back(&record.end);
  }
  out.scores = digest_scores(layout, ends);
  out.observations = digest_observations(layout, ends);
  digest_state(records[0].state, out);
}

// The run up to where it is saved; `save` is called with every rank's.
std::vector<RankRecord> run_to_save(const Scenario& scenario,
                                    const std::function<void(adapter::Run&, std::size_t)>& save) {
  std::vector<RankRecord> records(scenario.layout.num_ranks);
  on_ranks(scenario.layout, [&](std::size_t rank, const adapter::Link& link) {
    RankRun run(scenario, scenario.layout, rank, link);
    if (scenario.resume != Resume::never) {
      run.train(0, resume_place(scenario) + 1, scenario.resume);
    }
    save(run.run(), rank);
    records[rank] = run.take();
  });
  return records;
}

// The run from what `load` loads to its end.
RunDigests run_from_load(const Scenario& scenario, RankLayout layout,
                         const std::function<void(adapter::Run&)>& load) {
  std::vector<RankRecord> records(layout.num_ranks);
  on_ranks(layout, [&](std::size_t rank, const adapter::Link& link) {
    RankRun run(scenario, layout, rank, link);
    load(run.run());
    run.train(first_after_load(scenario), RankRun::epochs_of(scenario).size());
    run.finish();
    records[rank] = run.take();
  });
  RunDigests digests;
  digests.epochs = digest_epochs(scenario, layout, records);
  digest_end(layout, records, digests);
  return digests;
}

}  // namespace

RunDigests run(const Scenario& scenario) {
  if (scenario.resume == Resume::never) {
    return run_from_load(scenario, scenario.layout, [](adapter::Run&) {});
  }
  std::vector<Bytes> states(scenario.layout.num_ranks);
  const std::vector<RankRecord> before = run_to_save(
      scenario, [&](adapter::Run& rank_run, std::size_t rank) { states[rank] = rank_run.save(); });
  RunDigests digests = run_from_load(scenario, scenario.resume_layout.value_or(scenario.layout),
                                     [&](adapter::Run& rank_run) { rank_run.load(states[0]); });
  const std::vector<EpochDigests> first = digest_epochs(scenario, scenario.layout, before);
  digests.epochs.insert(digests.epochs.begin(), first.begin(), first.end());
  return digests;
}

RunDigests run_from(const Scenario& scenario, RankLayout layout,
                    const std::filesystem::path& path) {
  return run_from_load(scenario, layout, [&](adapter::Run& rank_run) { rank_run.load_file(path); });
}

std::uint64_t fold(const std::vector<EpochDigests>& epochs, std::uint64_t EpochDigests::*field) {
  Digest digest;
  for (const EpochDigests& epoch : epochs) digest.add(epoch.*field);
  return digest.value();
}

std::vector<std::string> column_names() {
  return {"order",  "weights", "counts",   "steps", "report",
          "scores", "tensors", "metadata", "epochs"};
}

std::string to_line(const std::string& name, const RunDigests& digests) {
  const auto join = [](std::initializer_list<std::uint64_t> parts) {
    Digest digest;
    for (const std::uint64_t part : parts) digest.add(part);
    return digest.value();
  };
  const auto& epochs = digests.epochs;
  std::string line = name;
  for (const std::uint64_t digest :
       {fold(epochs, &EpochDigests::order), fold(epochs, &EpochDigests::weights),
        join({fold(epochs, &EpochDigests::counts), fold(epochs, &EpochDigests::observations),
              digests.observations}),
        fold(epochs, &EpochDigests::steps), fold(epochs, &EpochDigests::report),
        join({fold(epochs, &EpochDigests::scores), digests.scores}), digests.tensors,
        digests.metadata}) {
    line += " " + to_hex(digest);
  }
  line += " ";
  for (const EpochDigests& epoch : epochs) {
    line += to_hex(
        join({epoch.order, epoch.weights, epoch.counts, epoch.scores, epoch.observations}), 4);
  }
  return line;
}

void write_recording(const Scenario& scenario, const std::filesystem::path& folder,
                     std::vector<std::uint32_t> samples, std::size_t shard_bytes) {
  RankRun run(scenario, scenario.layout, 0, adapter::make_links(scenario.layout)[0]);
  run.run().record(folder, std::move(samples), shard_bytes);
  for (std::size_t k = 0; k < RankRun::epochs_of(scenario).size(); ++k) {
    run.train(k, k + 1);
    if (k % 2 == 0) continue;
    std::vector<float> losses;
    for (const std::uint32_t sample : run.run().recorded_samples()) {
      losses.push_back(loss_of(scenario.losses, k + 100, sample));
    }
    run.run().record_true_losses(k, losses);
  }
  run.finish();
}

RecordingDigests digest_recording(const std::filesystem::path& folder) {
  const adapter::RecordedRun run = adapter::read_recording(folder);
  Digest samples;
  for (const std::uint32_t sample : run.samples) samples.add(std::uint64_t{sample});
  Digest batches;
  for (const adapter::RecordedBatch& batch : run.batches) {
    batches.add(batch.step);
    batches.add(batch.epoch);
    batches.add(batch.mean_loss);
    batches.add(std::uint64_t{batch.indices.size()});
    for (const std::uint32_t index : batch.indices) batches.add(std::uint64_t{index});
    batches.add(std::uint64_t{batch.places.size()});
    for (const std::uint32_t place : batch.places) batches.add(std::uint64_t{place});
    for (const float loss : batch.losses) batches.add(loss);
  }
  Digest true_losses;
  for (const auto& [epoch, losses] : run.true_losses) {
    true_losses.add(epoch);
    for (const float loss : losses) true_losses.add(loss);
  }
  return {.num_samples = run.num_samples,
          .num_steps = run.batches.size(),
          .samples = samples.value(),
          .batches = batches.value(),
          .true_losses = true_losses.value()};
}

}  // namespace tamis::test::golden

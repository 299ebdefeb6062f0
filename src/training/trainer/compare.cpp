#include "training/trainer/compare.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/agreement.h"
#include "base/check.h"
#include "training/data/batch.h"
#include "training/models/model.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;
using detail::concat;

constexpr const char* kConfig = "compare.json";
constexpr const char* kSummary = "summary.json";
constexpr std::string_view kFormat = "tamis-compare";
constexpr int kFormatVersion = 1;

std::string folder_name(const Method& method, std::uint64_t seed) {
  return concat(method.name, "-seed", seed);
}

Json config_to_json(const ComparisonConfig& config) {
  Json methods = Json::array();
  Json pruning = Json::object();
  for (const Method& method : config.methods) {
    methods.push_back(method.name);
    pruning[method.name] = to_json(method);
  }
  return {{"format", kFormat},           {"format_version", kFormatVersion},
          {"methods", methods},          {"seeds", config.seeds},
          {"baseline", config.baseline}, {"config", shared_to_json(config.shared)},
          {"pruning", pruning}};
}

ComparisonConfig config_from_file(const fs::path& path) {
  const Json json = read_json(path);
  const std::string source = path.native();
  try {
    if (json.at("format") != kFormat || json.at("format_version").get<int>() > kFormatVersion) {
      throw std::runtime_error(concat(source, ": not a comparison that this tamis can read"));
    }
    ComparisonConfig config{.shared = shared_from_json(json.at("config"), source),
                            .methods = {},
                            .seeds = json.at("seeds").get<std::vector<std::uint64_t>>(),
                            .baseline = json.at("baseline").get<std::string>()};
    for (const Json& name : json.at("methods")) {
      const auto method = name.get<std::string>();
      config.methods.push_back(method_from_json(json.at("pruning").at(method), method, source));
    }
    validate(config);
    return config;
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat(source, ": not as tamis writes it: ", error.what()));
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(concat(source, ": ", error.what()));
  }
}

// "training.epochs 16, now 8" for the first setting that differs; empty if none does.
std::string find_difference(const Json& before, const Json& now, const std::string& prefix = "") {
  for (const auto& [key, value] : before.items()) {
    const std::string name = prefix.empty() ? key : concat(prefix, ".", key);
    const Json other = now.value(key, Json());
    if (value == other) continue;
    if (value.is_object() && other.is_object()) return find_difference(value, other, name);
    return concat(name, " ", value.dump(), ", now ", other.dump());
  }
  return {};
}

// The comparison in the folder with the methods and seeds of `added` that it does not have yet.
ComparisonConfig merge(const fs::path& path, ComparisonConfig config,
                       const ComparisonConfig& added) {
  const auto refuse = [&](const std::string& difference) {
    throw std::runtime_error(concat(path.native(), ": holds a comparison with other settings (",
                                    difference, "); --overwrite replaces it, --out chooses another",
                                    " folder"));
  };
  const std::string difference =
      find_difference(shared_to_json(config.shared), shared_to_json(added.shared));
  if (!difference.empty()) refuse(difference);
  for (const Method& method : added.methods) {
    const auto known = std::find_if(config.methods.begin(), config.methods.end(),
                                    [&](const Method& m) { return m.name == method.name; });
    if (known == config.methods.end()) {
      config.methods.push_back(method);
    } else if (!(*known == method)) {
      refuse(find_difference(to_json(*known), to_json(method), method.name));
    }
  }
  for (const std::uint64_t seed : added.seeds) {
    if (std::find(config.seeds.begin(), config.seeds.end(), seed) == config.seeds.end()) {
      config.seeds.push_back(seed);
    }
  }
  config.baseline = added.baseline;
  return config;
}

void remove_comparison(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory() && RunFolder::is_run(entry.path())) fs::remove_all(entry.path());
  }
  fs::remove(path / kSummary);
  fs::remove(path / kConfig);
}

bool is_finished(const fs::path& folder, std::uint64_t num_epochs) {
  return RunFolder::is_run(folder) && RunFolder::read_metrics(folder).size() == num_epochs;
}

RunFolder open_or_create(const fs::path& path) {
  return RunFolder::is_run(path) ? RunFolder::open(path)
                                 : RunFolder::create(path, RunFolder::Existing::refuse);
}

// Rank 0 has the folder, the others join it.
RunFolder open_or_create(const fs::path& path, const Team& team) {
  std::optional<RunFolder> folder;
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) folder = open_or_create(path);
  });
  return team.is_first() ? std::move(*folder) : RunFolder::join(path);
}

// The first steps of a process are slow: threads start, code is compiled for the processor. They
// must not count against the first method.
void warm_up(const RunConfig& config, const Dataset& data) {
  torch::set_num_threads(static_cast<int>(config.training.threads));
  const auto model = make_model(config.model.name, {.channels = data.channels(),
                                                    .height = data.height(),
                                                    .width = data.width(),
                                                    .num_classes = data.num_classes,
                                                    .width_factor = config.model.width});
  std::vector<std::size_t> indices(std::min<std::size_t>(config.training.batch_size, data.size()));
  for (std::size_t k = 0; k < indices.size(); ++k) indices[k] = k;
  const Batch batch = make_batch(data, indices);
  for (int repeat = 0; repeat < 3; ++repeat) {
    torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target).backward();
  }
}

}  // namespace

void validate(const ComparisonConfig& config) {
  validate(config.shared);
  detail::require(!config.methods.empty(), "compare", "methods", "at least one", "none");
  detail::require(!config.seeds.empty(), "compare", "seeds", "at least one", "none");
  std::set<std::string> names;
  for (const Method& method : config.methods) {
    detail::require(names.insert(method.name).second, "compare", "methods", "there once each",
                    method.name + " twice");
  }
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : config.seeds) {
    detail::require(seeds.insert(seed).second, "compare", "seeds", "there once each",
                    concat(seed, " twice"));
  }
  detail::require(names.contains(config.baseline), "compare", "baseline", "one of the methods",
                  config.baseline);
}

Comparison::Comparison(fs::path path, std::unique_ptr<FolderLock> lock, ComparisonConfig config)
    : path_(std::move(path)), lock_(std::move(lock)), config_(std::move(config)) {}

Comparison Comparison::create(const fs::path& path, const ComparisonConfig& config,
                              RunFolder::Existing existing) {
  validate(config);
  if (path.empty()) throw std::invalid_argument("the comparison's folder must have a name");
  const bool has_comparison = fs::is_regular_file(path / kConfig);
  if (!has_comparison && fs::exists(path) && (!fs::is_directory(path) || !fs::is_empty(path))) {
    throw std::runtime_error(
        concat(path.native(), ": is there and holds no comparison; choose another folder"));
  }
  fs::create_directories(path);
  auto lock = std::make_unique<FolderLock>(path);
  ComparisonConfig merged = config;
  if (has_comparison && existing == RunFolder::Existing::overwrite) {
    remove_comparison(path);
  } else if (has_comparison) {
    merged = merge(path, config_from_file(path / kConfig), config);
  }
  write_json(path / kConfig, config_to_json(merged));
  return {path, std::move(lock), std::move(merged)};
}

Comparison Comparison::open(const fs::path& path) {
  if (!fs::is_regular_file(path / kConfig)) {
    throw std::runtime_error(concat(path.native(), ": holds no comparison (no ", kConfig, ")"));
  }
  auto lock = std::make_unique<FolderLock>(path);
  return {path, std::move(lock), config_from_file(path / kConfig)};
}

Comparison Comparison::join(const fs::path& path) {
  return {path, nullptr, config_from_file(path / kConfig)};
}

std::vector<ComparisonRun> Comparison::runs() const {
  std::vector<ComparisonRun> runs;
  const std::size_t num_methods = config_.methods.size();
  for (std::size_t s = 0; s < config_.seeds.size(); ++s) {
    for (std::size_t m = 0; m < num_methods; ++m) {
      const Method& method = config_.methods[(s + m) % num_methods];
      runs.push_back({.number = runs.size() + 1,
                      .total = num_methods * config_.seeds.size(),
                      .method = &method,
                      .seed = config_.seeds[s],
                      .folder = path_ / folder_name(method, config_.seeds[s])});
    }
  }
  return runs;
}

Outcome Comparison::run(const DataSplits& data, ComparisonObserver& observer,
                        const StopRequest& stop, const Team& team, Layout layout) {
  bool is_warm = false;
  for (const ComparisonRun& run : runs()) {
    const bool was_finished = is_finished(run.folder, config_.shared.training.epochs);
    if (!was_finished) {
      if (!is_warm) warm_up(config_.shared, data.train);
      is_warm = true;
      RunConfig config = config_.shared;
      config.method = *run.method;
      config.training.seed = run.seed;
      const auto progress = observer.begin_run(run);
      Trainer trainer(std::move(config), data, open_or_create(run.folder, team), team, layout);
      if (trainer.run(*progress, stop) == Outcome::interrupted) return Outcome::interrupted;
    }
    observer.end_run(run, summarize_run(RunFolder::read_metrics(run.folder)), was_finished);
  }
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) write_json(path_ / kSummary, to_json(summarize()));
  });
  return Outcome::finished;
}

Summary Comparison::summarize() const {
  std::vector<MethodRuns> methods;
  for (const Method& method : config_.methods) {
    MethodRuns& runs = methods.emplace_back(MethodRuns{.method = method.name, .runs = {}});
    for (const std::uint64_t seed : config_.seeds) {
      const fs::path folder = path_ / folder_name(method, seed);
      if (!is_finished(folder, config_.shared.training.epochs)) {
        throw std::runtime_error(concat(folder.native(), ": this run is not finished"));
      }
      runs.runs.push_back(summarize_run(RunFolder::read_metrics(folder)));
    }
  }
  return training::summarize(methods, config_.seeds, config_.baseline);
}

}  // namespace tamis::training

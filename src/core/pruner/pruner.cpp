#include "tamis/pruner.h"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/agreement.h"
#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/crc32c.h"
#include "base/files/mapped_file.h"
#include "core/policies/score_statistics.h"
#include "core/ranks/run.h"
#include "core/state/state_fields.h"

namespace tamis {

namespace {

using detail::SafetensorsReader;
using detail::SafetensorsWriter;

// What the ranks must have in common.
std::string describe(const PrunerOptions& options) {
  detail::Metadata fields;
  detail::write_options(options, fields);
  fields.emplace_back("layout", to_text(options.layout));
  fields.emplace_back("remainder", options.remainder == Remainder::pad ? "pad" : "drop");
  std::string text;
  for (const auto& [name, value] : fields) text.append(name).append(" ").append(value).append("\n");
  return text;
}

// What was given; empty if nothing was.
std::span<const float> checked(const Pruner::Norms& norms, std::size_t count) {
  if (!norms || norms->size() == count) return norms.value_or(std::span<const float>{});
  throw std::invalid_argument(detail::concat("Pruner: norms must be as many as samples (", count,
                                             "), got ", norms->size()));
}

std::unique_ptr<detail::Run> make_same_run(detail::RunParts parts) {
  const auto communicator = parts.communicator;
  if (!communicator) return detail::make_run(std::move(parts));
  std::unique_ptr<detail::Run> run;
  detail::together(*communicator, [&] { run = detail::make_run(std::move(parts)); });
  detail::require_same(*communicator, describe(run->options()));
  return run;
}

}  // namespace

Pruner::Pruner(const PrunerOptions& options, std::shared_ptr<Communicator> communicator)
    : Pruner(options, nullptr, nullptr, std::move(communicator)) {}

Pruner::Pruner(const PrunerOptions& options, std::unique_ptr<Scorer> scorer,
               std::unique_ptr<Policy> policy, std::shared_ptr<Communicator> communicator)
    : run_(make_same_run({.options = options,
                          .scorer = std::move(scorer),
                          .policy = std::move(policy),
                          .communicator = std::move(communicator)})) {}

Pruner::Pruner(Pruner&&) noexcept = default;
Pruner& Pruner::operator=(Pruner&&) noexcept = default;
Pruner::~Pruner() = default;

const PrunerOptions& Pruner::options() const { return run_->options(); }
const Schedule& Pruner::schedule() const { return run_->schedule(); }
const Scorer& Pruner::scorer() const { return run_->scorer(); }
Communicator* Pruner::communicator() const { return run_->communicator().get(); }
std::uint64_t Pruner::first_sample() const { return run_->first_sample(); }
std::size_t Pruner::num_kept() const { return run_->num_kept(); }

const EpochPlan& Pruner::start_epoch(std::uint64_t epoch) { return run_->start_epoch(epoch); }
EpochPlan Pruner::preview(std::uint64_t epoch) const { return run_->preview(epoch); }
const EpochPlan* Pruner::plan() const { return run_->plan(); }

void Pruner::check_observation(std::size_t count, LossKind kind) const {
  run_->check_observation(count, kind);
}
bool Pruner::observe(std::size_t begin, std::size_t count, double mean_loss) {
  return run_->observe(begin, count, mean_loss);
}
bool Pruner::observe(std::size_t begin, double mean_loss, std::span<const float> norms) {
  return run_->observe(begin, norms.size(), mean_loss, norms);
}
bool Pruner::observe(std::size_t begin, std::span<const float> losses, Norms norms) {
  return run_->observe(begin, losses, checked(norms, losses.size()));
}
bool Pruner::observe(std::span<const SampleIndex> indices, double mean_loss, Norms norms) {
  return run_->observe(indices, mean_loss, checked(norms, indices.size()));
}
bool Pruner::observe(std::span<const SampleIndex> indices, std::span<const float> losses,
                     Norms norms) {
  return run_->observe(indices, losses, checked(norms, indices.size()));
}
bool Pruner::observe(std::span<const std::uint32_t> indices, double mean_loss, Norms norms) {
  return run_->observe(indices, mean_loss, checked(norms, indices.size()));
}
bool Pruner::observe(std::span<const std::uint32_t> indices, std::span<const float> losses,
                     Norms norms) {
  return run_->observe(indices, losses, checked(norms, indices.size()));
}

std::size_t Pruner::position() const { return run_->position(); }
void Pruner::set_position(std::size_t position) { run_->set_position(position); }
double Pruner::progress() const { return run_->progress(); }
double Pruner::pruned_share() const { return run_->pruned_share(); }
void Pruner::exchange() { run_->exchange(); }

std::vector<float> Pruner::scores() const {
  Array<float> scratch;
  const auto scores = run_->scorer().scores(scratch);
  return {scores.begin(), scores.end()};
}

std::size_t Pruner::num_scored() const {
  Array<float> scratch;
  return detail::score_statistics(run_->scorer().scores(scratch)).num_scored;
}

std::uint64_t Pruner::num_observations() const { return run_->num_observations(); }
std::uint64_t Pruner::num_skipped_observations() const { return run_->num_skipped_observations(); }

void Pruner::record(const std::filesystem::path& folder, RecorderOptions options) {
  run_->record(folder, std::move(options));
}
Recorder* Pruner::recorder() { return run_->recorder(); }
const Recorder* Pruner::recorder() const { return run_->recorder(); }

void Pruner::set_attachment(std::vector<std::byte> bytes) {
  run_->set_attachment(std::move(bytes));
}
const std::vector<std::byte>& Pruner::attachment() const { return run_->attachment(); }

void Pruner::save(const std::filesystem::path& path) {
  run_->save(false, [&](const SafetensorsWriter& writer) {
    detail::AtomicFile file(detail::follow_links(path), writer.size());
    writer.write(
        [&](std::uint64_t offset, std::span<const std::byte> bytes) { file.write(offset, bytes); });
    file.commit();
  });
}

std::vector<std::byte> Pruner::serialize() {
  std::vector<std::byte> out;
  run_->save(true, [&](const SafetensorsWriter& writer) {
    out.resize(static_cast<std::size_t>(writer.size()));
    writer.write([&](std::uint64_t offset, std::span<const std::byte> bytes) {
      if (!bytes.empty()) std::memcpy(out.data() + offset, bytes.data(), bytes.size());
    });
  });
  return out;
}

void Pruner::load(const std::filesystem::path& path) {
  std::optional<detail::MappedFile> mapped;
  run_->load([&] {
    mapped.emplace(path);
    SafetensorsReader file = detail::open_state(path.native(), mapped->bytes());
    detail::verify_state(file, options());
    return file;
  });
}

void Pruner::deserialize(std::span<const std::byte> bytes) {
  if (Communicator* const ranks = communicator()) {
    detail::require_same(*ranks, detail::concat("state with checksum ", detail::crc32c(bytes)));
  }
  run_->load([&] {
    SafetensorsReader file = detail::open_state("state", bytes);
    detail::verify_state(file, options());
    return file;
  });
}

Pruner Pruner::from_file(const std::filesystem::path& path) {
  const detail::MappedFile mapped(path);
  SafetensorsReader file = detail::open_state(path.native(), mapped.bytes());
  const PrunerOptions options = detail::verify_and_read_options(file);
  try {
    Pruner pruner(options);
    pruner.run_->load([&] { return file; });
    return pruner;
  } catch (const std::invalid_argument& error) {
    file.fail(detail::concat("its options cannot be used here: ", error.what()));
  }
}

}  // namespace tamis

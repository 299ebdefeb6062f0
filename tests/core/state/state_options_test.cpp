// Options that older files do not have: homogeneous batches, class floor, target budget.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/files/crc32c.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "support/state_victim.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

PrunerOptions all_options() {
  PrunerOptions options{.num_samples = 200,
                        .num_epochs = 10,
                        .score = Spec{"batch-loss"},
                        .seed = 3,
                        .homogeneous_batch_size = 16,
                        .min_per_class = 0.25,
                        .target_prune = 0.3};
  for (int i = 0; i < 200; ++i) options.labels.push_back(i % 7 * 5);
  return options;
}

std::vector<std::byte> state_of(const PrunerOptions& options) {
  Pruner pruner(options);
  test::simulate_epochs(pruner, 0, 2, 16);
  pruner.start_epoch(2);
  test::simulate_step(pruner, 16);
  return pruner.serialize();
}

std::string refusal(const PrunerOptions& options, std::span<const std::byte> state) {
  return test::message_of([&] { Pruner(options).deserialize(state); });
}

TEST(StateOptions, AreSavedAndLoaded) {
  const auto state = state_of(all_options());
  Pruner pruner(all_options());
  pruner.deserialize(state);
  EXPECT_EQ(pruner.serialize(), state);
}

TEST(StateOptions, AreRestoredFromAFileAlone) {
  const test::ScratchFolder folder;
  Pruner whole(all_options());
  test::simulate_epochs(whole, 0, 2, 16);
  whole.save(folder / "state");
  Pruner pruner = Pruner::from_file(folder / "state");
  EXPECT_EQ(pruner.options().homogeneous_batch_size, 16U);
  EXPECT_EQ(pruner.options().min_per_class, 0.25);
  EXPECT_EQ(pruner.options().target_prune, 0.3);
  EXPECT_EQ(pruner.options().labels[3], 3);  // numbered
  for (Pruner* run : {&whole, &pruner}) test::simulate_epochs(*run, 2, 10, 16);
  EXPECT_EQ(pruner.serialize(), whole.serialize());
}

TEST(StateOptions, ThatDifferAreRefused) {
  const auto state = state_of(all_options());
  const auto check = [&](const char* part, const std::function<void(PrunerOptions&)>& change) {
    PrunerOptions options = all_options();
    change(options);
    EXPECT_TRUE(test::contains(refusal(options, state), part));
  };
  check("homogeneous_batch_size is 16 in the file, but 32 in this run",
        [](PrunerOptions& o) { o.homogeneous_batch_size = 32; });
  check("homogeneous_batch_size is 16 in the file, but not set in this run",
        [](PrunerOptions& o) { o.homogeneous_batch_size = 0; });
  check("min_per_class is 0.25 in the file, but 0.5 in this run",
        [](PrunerOptions& o) { o.min_per_class = 0.5; });
  check("min_per_class is 0.25 in the file, but not set in this run",
        [](PrunerOptions& o) { o.min_per_class = 0.0; });
  check("target_prune is 0.3 in the file, but not set in this run",
        [](PrunerOptions& o) { o.target_prune.reset(); });
  check("other labels: sample 3 is of class 3 in the file, but 0 in this run",
        [](PrunerOptions& o) { o.labels[3] = 0; });
}

TEST(StateOptions, ThatTheFileLacksMeanTheirDefaults) {
  PrunerOptions plain{.num_samples = 200, .num_epochs = 10, .score = Spec{"batch-loss"}};
  const auto state = state_of(plain);
  EXPECT_EQ(refusal(plain, state), "(no exception)");
  PrunerOptions other = plain;
  other.homogeneous_batch_size = 16;
  EXPECT_TRUE(test::contains(refusal(other, state),
                             "homogeneous_batch_size is not set in the file, but 16 in this run"));
}

// As a version would write it that does not know the option alpha of batch-loss.
std::vector<std::byte> without_alpha(std::vector<std::byte> state) {
  std::uint64_t size = 0;
  std::memcpy(&size, state.data(), sizeof size);
  auto* const text = reinterpret_cast<char*>(state.data());
  std::string header(text + 8, size);
  const std::string field = R"("score.alpha":"0.7",)";
  const std::size_t at = header.find(field);
  if (at == std::string::npos) throw std::runtime_error("no score.alpha in " + header);
  header.erase(at, field.size());
  header += std::string(field.size(), ' ');
  const std::size_t digits = header.find("tamis_crc32c\":\"") + 15;
  header.replace(digits, 8, "00000000");
  std::memcpy(text + 8, header.data(), size);
  const std::uint32_t sum = detail::crc32c(std::span(state).first(8 + size));
  char hex[9];
  std::snprintf(hex, sizeof hex, "%08x", sum);
  std::memcpy(text + 8 + digits, hex, 8);
  return state;
}

TEST(StateOptions, OfAScoreThatTheFileLacksMeanTheirDefaults) {
  PrunerOptions options{.num_samples = 200, .num_epochs = 10, .score = Spec{"batch-loss"}};
  const auto state = without_alpha(state_of(options));
  EXPECT_EQ(refusal(options, state), "(no exception)");
  options.score = Spec{"batch-loss", {{"alpha", 0.5}}};
  EXPECT_TRUE(test::contains(refusal(options, state),
                             "score.alpha is 0.7 in the file, but 0.5 in this run"));
}

}  // namespace
}  // namespace tamis

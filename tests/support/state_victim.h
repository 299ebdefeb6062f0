// States to damage, and a run that must survive them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis::test {

using Bytes = std::vector<std::byte>;

inline PrunerOptions options_of_run() {
  return {.num_samples = 40'000, .num_epochs = 20, .score = Spec{"batch-loss"}, .seed = 5};
}

// In the middle of a pruned epoch: scores, both bitmaps and their checksums are there.
inline Pruner make_run(const PrunerOptions& options = options_of_run()) {
  Pruner pruner(options);
  simulate_epochs(pruner, 0, 1, 1000);
  pruner.start_epoch(1);
  simulate_step(pruner, 1000);
  return pruner;
}

inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(no exception)";
}

// Whether a message says what it should.
inline ::testing::AssertionResult contains(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << message << "\" does not contain \"" << part << '"';
}

// A run in the middle of an epoch that is offered bad states and must stay as it is.
class Victim {
 public:
  explicit Victim(const PrunerOptions& options = options_of_run())
      : pruner_(options), before_(advance()) {}

  // The message of the refusal. Fails the test if the run has changed.
  std::string refuse(std::span<const std::byte> state) {
    return message_and_check([&] { pruner_.deserialize(state); });
  }
  std::string refuse_file(const std::filesystem::path& path) {
    return message_and_check([&] { pruner_.load(path); });
  }

 private:
  Bytes advance() {
    simulate_epochs(pruner_, 0, 2, 5000);
    pruner_.start_epoch(2);
    simulate_step(pruner_, 3000);
    return pruner_.serialize();
  }

  std::string message_and_check(const std::function<void()>& call) {
    std::string message = message_of(call);
    EXPECT_TRUE(pruner_.serialize() == before_) << "state changed by a refused load: " << message;
    return message;
  }

  Pruner pruner_;
  Bytes before_;
};

}  // namespace tamis::test

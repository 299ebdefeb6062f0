// States of pruners to be edited.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/simulated_run.h"
#include "tamis/loss_book.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis::fuzz {

// In the middle of a pass whose losses are kept back until it ends.
inline std::vector<std::byte> make_state_with_kept_losses() {
  Pruner pruner({.num_samples = 70,
                 .num_epochs = 6,
                 .policy = {"infobatch"},
                 .score = Spec{"batch-loss"},
                 .seed = 3});
  test::simulate_epochs(pruner, 0, 2, 8);
  pruner.start_epoch(2);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  for (int k = 0; k < 3; ++k) {
    book.deliver(8);
    book.update(1.5);
  }
  book.deliver(4);
  book.update(std::vector<float>{1, 2, 3, 4});
  book.before_save();
  return pruner.serialize();
}

// One state per score and policy, in the middle of a pruned epoch, and one with losses kept back.
inline std::vector<std::vector<std::byte>> make_states() {
  std::vector<std::vector<std::byte>> states;
  for (const auto& score : registered_scorers()) {
    for (const auto& policy : registered_policies()) {
      PrunerOptions options{.num_samples = 70,
                            .num_epochs = 6,
                            .policy = {std::string(policy.name)},
                            .score = Spec{std::string(score.name)},
                            .seed = 3};
      if (states.size() % 3 == 1) options.homogeneous_batch_size = 8;
      if (states.size() % 3 == 2) {
        options.min_per_class = 0.1;
        for (int i = 0; i < 70; ++i) options.labels.push_back(i % 5);
      }
      Pruner pruner(options);
      test::simulate_epochs(pruner, 0, 2, 8);
      pruner.start_epoch(2);
      test::simulate_step(pruner, 8);
      states.push_back(pruner.serialize());
    }
  }
  states.push_back(make_state_with_kept_losses());
  return states;
}

}  // namespace tamis::fuzz

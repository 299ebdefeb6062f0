// States of pruners with right checksums and other contents: refused with a std::runtime_error, or
// good for the rest of the run.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "edit_container.h"
#include "made_states.h"
#include "memory_file.h"
#include "support/simulated_run.h"
#include "tamis/loss_book.h"
#include "tamis/pruner.h"

namespace {

using tamis::Pruner;

void require(bool holds) {
  if (!holds) std::abort();
}

void use(Pruner& pruner) {
  if (pruner.num_samples() > 10'000) return;
  for (const float score : pruner.scores()) require(!std::isinf(score));
  tamis::LossBook book(pruner);
  book.after_load();
  book.end_pass();
  const auto saved = pruner.serialize();
  const std::uint64_t next = pruner.plan() != nullptr ? pruner.plan()->epoch() + 1 : 0;
  for (std::uint64_t epoch = next; epoch < next + 2 && epoch < pruner.options().num_epochs;
       ++epoch) {
    const tamis::EpochPlan& plan = pruner.start_epoch(epoch);
    if (plan.size() > 0) tamis::test::simulate_step(pruner, 8);
    for (std::size_t j = 0; j < plan.size(); ++j)
      require(static_cast<std::size_t>(plan.sample(j)) < pruner.num_samples());
    require(std::isfinite(pruner.progress()));
    for (const float score : pruner.scores()) require(!std::isinf(score));
  }
  require(pruner.serialize() != saved || pruner.options().num_epochs <= next);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto states = tamis::fuzz::make_states();
  static tamis::fuzz::MemoryFile file;
  tamis::fuzz::Source source(data, size);
  tamis::test::ContainerParts parts(states[source.below(states.size())]);
  try {
    tamis::fuzz::edit(parts, source);
    file.write(parts.file());
  } catch (const std::invalid_argument&) {
    return 0;  // The writer refuses it.
  }
  tamis::fuzz::attempt([&] {
    Pruner pruner = Pruner::from_file(file.path());
    use(pruner);
  });
  return 0;
}

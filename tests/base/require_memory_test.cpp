#include "base/require_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/memory_limit.h"

namespace tamis::detail {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(RequireMemory, RefusesWhatNoMachineHas) {
  EXPECT_NO_THROW(require_memory(1e3, "a little"));
  EXPECT_THAT([] { require_memory(1e18, "--samples 7"); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("--samples 7 needs about 1000000000.0 GB of memory")));
}

// Sanitizers need more address space than any limit.
#ifndef TAMIS_SANITIZED
TEST(RequireMemory, KnowsWhatTheProcessMayStillUse) {
  const test::MemoryLimit limit(rlim_t{100} << 20U);
  EXPECT_NO_THROW(require_memory(5e7, "half of it"));
  EXPECT_THAT([] { require_memory(2e8, "too much"); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("too much needs about 0.2 GB of memory, this machine has 0.1")));
}
#endif

}  // namespace
}  // namespace tamis::detail

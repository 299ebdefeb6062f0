// How many threads train, and how they wait, as a shell starts the program.
#include <gmock/gmock.h>
#include <sched.h>

#include <cstdlib>
#include <string>

#include "support/program.h"

namespace tamis::training::threads_test {

using ::testing::HasSubstr;

// All that `tamis train ARGUMENTS` prints, started with this before it.
std::string output_of(const std::string& prefix, const std::string& arguments) {
  const test::TextFolder scratch;
  const std::string command = prefix + " " TAMIS_PROGRAM " train " + arguments + " --out " +
                              scratch.at("run") + " > " + scratch.at("output") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command << scratch.read("output");
  return scratch.read("output");
}

// The policy itself is shown as passive where none is set, too: it is told by how long a thread
// spins.
std::string waiting_with(const std::string& settings) {
  return output_of("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose " + settings,
                   "--help");
}

TEST(TrainProgram, ItsThreadsWaitAsleep) {
  EXPECT_THAT(waiting_with(""), HasSubstr("GOMP_SPINCOUNT = '0'"));
}

TEST(TrainProgram, LeavesTheWaitingToAUserWhoChoseIt) {
  EXPECT_THAT(waiting_with("OMP_WAIT_POLICY=active"), HasSubstr("OMP_WAIT_POLICY = 'ACTIVE'"));
  EXPECT_THAT(waiting_with("GOMP_SPINCOUNT=77"), HasSubstr("GOMP_SPINCOUNT = '77'"));
}

TEST(TrainProgram, TrainsOnTheProcessorsThatItMayUse) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  EXPECT_THAT(output_of("taskset --cpu-list " + std::to_string(first),
                        "--limit 200 --test-limit 100 --epochs 1 --width 0.25"),
              HasSubstr("1 thread,"));
}

}  // namespace tamis::training::threads_test

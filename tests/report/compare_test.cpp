// What `tamis compare --command` leaves behind is what `tamis report` shows.
#include <gmock/gmock.h>

#include "report.h"

namespace tamis::test {
namespace {

TEST(ReportCompare, ShowsTheRunsOfAnotherProgram) {
  const TextFolder folder;
  write_run(folder / "made", {.method = "full", .seed = 0});
  const Outcome outcome =
      run({"compare", "--command", "sh -c 'cp -r " + folder.at("made") + " $6' sh", "--methods",
           "full", "--seeds", "0", "--out", folder.at("c")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json comparison = report_of({folder / "c"});
  EXPECT_EQ(comparison["metrics"][0]["name"], "test_accuracy");
  EXPECT_EQ(row_of(comparison, "full")["num_seeds"], 1);
  EXPECT_EQ(cautions_of(comparison), "[]");
}

}  // namespace
}  // namespace tamis::test

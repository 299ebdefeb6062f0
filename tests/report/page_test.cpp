// The file that the command writes.
#include <gmock/gmock.h>

#include <regex>

#include "report.h"

namespace tamis::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A run, and the page made of it.
class ReportPage : public ::testing::Test {
 protected:
  ReportPage() { write_run(folder_ / "run", {}); }

  std::string run_path() const { return folder_.at("run"); }
  std::string make(const Arguments& more = {}) const {
    Arguments arguments = {"report", run_path(), "--out", folder_.at("page.html")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return folder_.read("page.html");
  }

  TextFolder folder_;
};

TEST_F(ReportPage, IsOneCompleteDocument) {
  const std::string page = make();
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, HasSubstr("<title>Data pruning on made-up-clothes, small-cnn</title>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST_F(ReportPage, NamesNoOtherFile) {
  const std::string page = make();
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(<(link|img|iframe|object|embed)\b)")));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(<script[^>]*\bsrc=)")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST_F(ReportPage, NamesInARunCannotCommandTheTerminal) {
  FixtureRun run;
  run.method = run.name = "\x1b]0;owned\x07";
  write_run(folder_ / "odd", run);
  const Outcome outcome =
      test::run({"report", folder_.at("odd"), "--out", folder_.at("page.html")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("\\u001b]0;owned\\u0007"));
}

TEST_F(ReportPage, OnAFullDiskThePageBeforeStays) {
  const std::string before = make();
  for (const rlim_t limit : {1'000U, 100'000U}) {
    EXPECT_THAT(run_refused(1, {"report", run_path(), "--out", folder_.at("page.html")},
                            {.file_size_limit = limit}),
                HasSubstr("page.html: cannot write"));
    EXPECT_EQ(folder_.read("page.html"), before);
    EXPECT_THAT(folder_.names(), testing::ElementsAre("page.html", "run"));
  }
}

TEST_F(ReportPage, IsSmallBesideItsData) { EXPECT_LT(make().size(), 1'500'000U); }

TEST_F(ReportPage, HoldsTheDataThatJsonPrints) {
  const std::string page = make();
  const std::string begin = R"(<script type="application/json" id="tamis-data">)";
  const std::size_t start = page.find(begin) + begin.size();
  nlohmann::json inside =
      nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
  nlohmann::json printed = run_json({"report", "--json", run_path()});
  inside.erase("created");
  printed.erase("created");
  EXPECT_EQ(inside, printed);
}

TEST_F(ReportPage, CannotBeBrokenByATitle) {
  const std::string title = "</title></script><script>alert(1)</script><!-- & {{tamis-data}}";
  const std::string page = make({"--title", title});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;"));
  EXPECT_EQ(run_json({"report", "--json", run_path(), "--title", title})["title"], title);
}

TEST_F(ReportPage, StaysAsItWasIfTheRunsAreBad) {
  make();
  const std::string before = folder_.read("page.html");
  std::ofstream(folder_ / "run/config.json") << "{}";
  run_refused(1, {"report", run_path(), "--out", folder_.at("page.html")});
  EXPECT_EQ(folder_.read("page.html"), before);
  EXPECT_THAT(folder_.names(), ::testing::ElementsAre("page.html", "run"));
}

TEST_F(ReportPage, IsNotWrittenForJsonAlone) {
  run_json({"report", "--json", run_path()});
  EXPECT_THAT(folder_.names(), ::testing::ElementsAre("run"));
  run_json({"report", "--json", run_path(), "--out", folder_.at("page.html")});
  EXPECT_THAT(folder_.names(), ::testing::ElementsAre("page.html", "run"));
}

TEST_F(ReportPage, NeedsAFolderThatIsThere) {
  EXPECT_THAT(run_refused(1, {"report", run_path(), "--out", folder_.at("no/page.html")}),
              HasSubstr("no/page.html"));
}

TEST_F(ReportPage, IsAnnouncedWithTheVerdict) {
  const Outcome outcome = run({"report", run_path(), "--out", folder_.at("page.html")});
  EXPECT_THAT(outcome.out, StartsWith("made-up-clothes, small-cnn: On made-up-clothes"));
  EXPECT_THAT(outcome.out, HasSubstr("wrote " + folder_.at("page.html")));
}

}  // namespace
}  // namespace tamis::test

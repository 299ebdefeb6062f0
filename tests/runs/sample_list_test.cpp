#include "runs/sample_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SampleList example() {
  return {.labels = {1, 0, 1},
          .true_labels = {1, 1, 1},
          .classes = {"cat", "dog"},
          .indices = {0, 20, 40},
          .files = {}};
}

TEST(SampleList, IsReadAsItWasWritten) {
  const test::ScratchFolder folder;
  EXPECT_FALSE(read_samples(folder.path(), 3));
  write_samples(folder.path(), example());
  const auto samples = read_samples(folder.path(), 3);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->labels, example().labels);
  EXPECT_EQ(samples->true_labels, example().true_labels);
  EXPECT_EQ(samples->classes, example().classes);
  EXPECT_EQ(samples->indices, example().indices);
  EXPECT_TRUE(samples->files.empty());
}

TEST(SampleList, NamesClassesPlacesAndWrongLabels) {
  SampleList samples = example();
  EXPECT_EQ(samples.class_name(1), "dog");
  EXPECT_EQ(samples.class_name(2), "2");
  EXPECT_EQ(samples.class_name(-1), "-1");
  EXPECT_EQ(samples.place(2), "40");
  EXPECT_TRUE(samples.is_wrong(1));
  EXPECT_FALSE(samples.is_wrong(0));
  samples.files = {"a", "b", "c"};
  EXPECT_EQ(samples.place(2), "c");
  EXPECT_EQ(SampleList().place(2), "2");
  EXPECT_FALSE(SampleList().is_wrong(2));
}

TEST(SampleList, IsRefusedWithTheFileAndTheRule) {
  const test::ScratchFolder folder;
  write_samples(folder.path(), example());
  const auto refuses = [&](std::uint64_t num_samples, const char* message) {
    EXPECT_THAT([&] { read_samples(folder.path(), num_samples); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  refuses(4, "number of labels must be that of the run's training samples (4), got 3");
  const Json good = {{"format", "tamis-samples"}, {"format_version", 1}, {"labels", {1, 2}}};
  const auto refuses_change = [&](const char* key, const Json& value, const char* message) {
    Json document = good;
    document[key] = value;
    write_json(folder / kSamplesFile, document);
    refuses(2, message);
  };
  refuses_change("labels", {1, "x"}, "samples.json: labels must be whole numbers of at least 0");
  refuses_change("labels", 5, "labels must be an array");
  refuses_change("files", {"a", 2}, "files must be texts, got 2");
  refuses_change("classes", {1}, "classes must be texts, got 1");
  refuses_change("format", "tamis-run", "format must be \"tamis-samples\"");
  write_json(folder / kSamplesFile,
             {{"format", "tamis-samples"}, {"format_version", 1}, {"true_labels", {1, 2}}});
  refuses(2, "true_labels must come with labels");
}

}  // namespace
}  // namespace tamis::runs

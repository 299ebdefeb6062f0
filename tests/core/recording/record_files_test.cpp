#include "core/recording/record_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/rewritten_state.h"
#include "support/scratch_folder.h"
#include "tamis/recorder.h"

namespace tamis::detail {
namespace {

constexpr std::uint32_t kMost = 0xFFFFFFFFU;

TEST(RecordedSamples, AreTheSameWhateverTheSizeOfTheDataSet) {
  const std::vector<std::uint32_t> samples = {0, 3, 64, 65, 999};
  const RecordedSamples small(1000, samples);
  const RecordedSamples huge(kMost, samples);
  for (std::uint32_t index = 0; index < 1000; ++index) {
    ASSERT_EQ(small.contains(index), huge.contains(index)) << index;
    ASSERT_EQ(small.contains(index), std::binary_search(samples.begin(), samples.end(), index));
  }
  EXPECT_FALSE(huge.contains(kMost - 1));
}

// How many samples the data set has, only the file says.
TEST(Recording, ReadsTheSameStepsWhateverTheSizeOfTheDataSet) {
  const test::ScratchFolder folder;
  {
    auto recorder = Recorder::create(folder / "r", {.num_samples = 50, .num_recorded = 9});
    for (std::uint32_t step = 0; step < 20; ++step) {
      recorder.record(0, std::vector<std::uint32_t>{step, step + 20, step + 30}, 1.5,
                      std::vector<float>{1.0F, 2.0F, 1.5F});
    }
  }
  const auto read = [&] {
    std::vector<std::vector<std::uint32_t>> places;
    std::vector<float> losses;
    Recording(folder / "r").read([&](const RecordedStep& step) {
      places.emplace_back(step.places.begin(), step.places.end());
      losses.insert(losses.end(), step.losses.begin(), step.losses.end());
    });
    return std::pair(places, losses);
  };
  const auto before = read();
  EXPECT_EQ(before.first.size(), 20U);
  EXPECT_FALSE(before.second.empty());
  const auto path = folder / "r" / "samples.safetensors";
  test::write_bytes(path, test::rewritten(test::read_bytes(path), [](test::ContainerParts& parts) {
                      parts.text("num_samples") = std::to_string(kMost);
                    }));
  EXPECT_EQ(Recording(folder / "r").num_samples(), kMost);
  EXPECT_EQ(read(), before);
  auto recorder = Recorder::open(folder / "r");
  recorder.record(0, std::vector<std::uint32_t>{kMost - 1}, 1.0);
  EXPECT_EQ(recorder.num_steps(), 21U);
}

}  // namespace
}  // namespace tamis::detail

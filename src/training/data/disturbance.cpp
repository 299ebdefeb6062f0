#include "training/data/disturbance.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random/random.h"
#include "base/random/subset.h"
#include "base/rounding.h"
#include "tamis/bitmap.h"

namespace tamis::training {

namespace {

using detail::Purpose;
using detail::RandomStream;

Dataset make_long_tailed(const Dataset& data, double imbalance, std::uint64_t seed) {
  RandomStream random(seed, 0, Purpose::class_sizes);
  const auto labels = data.labels.accessor<std::int64_t, 1>();
  const auto n = static_cast<std::int64_t>(data.size());
  Bitmap kept(data.size());
  for (std::int64_t c = 0; c < data.num_classes; ++c) {
    Bitmap members(data.size());
    for (std::int64_t i = 0; i < n; ++i) {
      if (labels[i] == c) members.set(static_cast<std::size_t>(i));
    }
    const std::size_t size = members.count();
    if (size == 0) continue;
    const double place = data.num_classes < 2
                             ? 0.0
                             : static_cast<double>(c) / static_cast<double>(data.num_classes - 1);
    const double wanted = std::round(static_cast<double>(size) * std::pow(imbalance, place));
    kept |= detail::choose(members, size, static_cast<std::size_t>(std::max(wanted, 1.0)), random);
  }
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept.test(i)) indices.push_back(static_cast<std::int64_t>(i));
  }
  return data.select(torch::tensor(indices, torch::kInt64));
}

// As crawled data are: some images are there again and again.
Dataset add_copies(const Dataset& data, double share, std::uint64_t seed) {
  constexpr std::size_t kMostOriginals = 300;
  RandomStream random(seed, 1, Purpose::class_sizes);  // 0 is for the sizes themselves
  const Bitmap replaced =
      detail::choose(data.size(), detail::floor_share(share, data.size()), random);
  Bitmap others(data.size(), true);
  others -= replaced;
  const std::size_t num_others = others.count();
  const Bitmap chosen =
      detail::choose(others, num_others, std::min(kMostOriginals, num_others), random);
  std::vector<std::int64_t> originals;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen.test(i)) originals.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<std::int64_t> sources(data.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i] =
        replaced.test(i) ? originals[random.below(originals.size())] : static_cast<std::int64_t>(i);
  }
  return data.select(torch::tensor(sources, torch::kInt64));
}

Dataset add_label_noise(const Dataset& data, double share, std::uint64_t seed) {
  RandomStream random(seed, 0, Purpose::label_noise);
  const Bitmap wrong = detail::choose(data.size(), detail::floor_share(share, data.size()), random);
  Dataset noisy = data;
  noisy.true_labels = data.labels;
  noisy.labels = data.labels.clone();
  auto labels = noisy.labels.accessor<std::int64_t, 1>();
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!wrong.test(i)) continue;
    std::int64_t& label = labels[static_cast<std::int64_t>(i)];
    const auto other = random.below(static_cast<std::uint64_t>(data.num_classes - 1));
    label = (label + 1 + static_cast<std::int64_t>(other)) % data.num_classes;
  }
  return noisy;
}

}  // namespace

DataSplits disturb(const DataSplits& data, const DataConfig& config, std::uint64_t seed) {
  DataSplits result = data;
  if (config.imbalance < 1.0) {
    result.train = make_long_tailed(result.train, config.imbalance, seed);
  }
  if (config.copies > 0.0) result.train = add_copies(result.train, config.copies, seed);
  if (config.label_noise > 0.0 && data.train.num_classes > 1) {
    result.train = add_label_noise(result.train, config.label_noise, seed);
  }
  return result;
}

}  // namespace tamis::training

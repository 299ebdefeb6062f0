#include "training/trainer/gallery_maker.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runs/json.h"
#include "tamis/analysis/hardness.h"
#include "training/data/batch.h"
#include "training/data/png_image.h"
#include "training/models/model.h"
#include "training/trainer/sample_history.h"

namespace tamis::training {

namespace {

using analysis::Hardness;
using analysis::HardnessRanking;

std::vector<std::int64_t> numbers_of(const torch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const torch::Tensor numbers = tensor.to(torch::kInt64).contiguous();
  const auto* const begin = numbers.const_data_ptr<std::int64_t>();
  return {begin, begin + numbers.numel()};
}

// Names of files may be any bytes, JSON is UTF-8.
std::string as_utf8(const std::string& text) {
  constexpr auto kReplace = runs::Json::error_handler_t::replace;
  return runs::Json::parse(runs::Json(text).dump(-1, ' ', false, kReplace)).get<std::string>();
}

std::vector<std::string> as_utf8(std::vector<std::string> texts) {
  for (std::string& text : texts) text = as_utf8(text);
  return texts;
}

// All samples that were visited, hardest first; or easiest first, for whom the sign is -1.
std::vector<Hardness> rank_samples(const SampleHistory& history, float sign) {
  HardnessRanking ranking(history.num_samples());
  for (std::size_t k = 0; k < history.epochs().size(); ++k) {
    const auto losses = history.losses(k);
    std::vector<float> scores(losses.begin(), losses.end());
    for (float& score : scores) score *= sign;
    ranking.add(scores);
  }
  return ranking.hardest(history.num_samples());
}

std::vector<std::uint64_t> first_samples(const std::vector<Hardness>& ranked, std::size_t count) {
  std::vector<std::uint64_t> samples;
  for (std::size_t k = 0; k < std::min(count, ranked.size()); ++k) {
    samples.push_back(ranked[k].sample);
  }
  return samples;
}

std::vector<std::uint64_t> most_forgotten(const ForgettingEvents& forgetting,
                                          std::vector<Hardness> hardest_first, std::size_t count) {
  std::erase_if(hardest_first,
                [&](const Hardness& one) { return forgetting.count(one.sample) == 0; });
  std::stable_sort(hardest_first.begin(), hardest_first.end(),
                   [&](const Hardness& a, const Hardness& b) {
                     return forgetting.count(a.sample) > forgetting.count(b.sample);
                   });
  return first_samples(hardest_first, count);
}

PngImage thumbnail(const Dataset& data, std::uint64_t sample) {
  constexpr double kSide = 64.0;
  torch::Tensor image = data.images[static_cast<std::int64_t>(sample)];
  const double factor = kSide / static_cast<double>(std::max(data.height(), data.width()));
  if (factor < 1.0) {
    const auto shrink = [&](std::int64_t side) {
      return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * factor));
    };
    image = torch::adaptive_avg_pool2d(image.to(torch::kFloat32),
                                       {shrink(data.height()), shrink(data.width())})
                .round()
                .to(torch::kUInt8);
  }
  image = image.permute({1, 2, 0}).contiguous();
  const auto* const pixels = image.const_data_ptr<std::uint8_t>();
  return {.height = static_cast<std::size_t>(image.size(0)),
          .width = static_cast<std::size_t>(image.size(1)),
          .channels = static_cast<std::size_t>(image.size(2)),
          .pixels = {pixels, pixels + image.numel()}};
}

std::vector<std::int64_t> predict(Model& model, const Dataset& data,
                                  const std::vector<std::uint64_t>& samples) {
  const torch::NoGradGuard no_grad;
  model.eval();
  const Batch batch = make_batch(data, std::vector<SampleIndex>(samples.begin(), samples.end()));
  return numbers_of(model.forward(batch.data).argmax(1));
}

}  // namespace

runs::SampleList list_samples(const Dataset& data) {
  const std::vector<std::int64_t> indices = numbers_of(data.indices);
  return {.labels = numbers_of(data.labels),
          .true_labels = numbers_of(data.true_labels),
          .classes = as_utf8(data.classes),
          .indices = {indices.begin(), indices.end()},
          .files = as_utf8(data.files)};
}

runs::Gallery make_gallery(const SampleHistory& history, const Dataset& data, Model& model,
                           std::size_t count) {
  const ForgettingEvents& forgetting = history.forgetting();
  const std::vector<Hardness> hardest_first = rank_samples(history, 1.0F);
  runs::Gallery gallery{.score = "loss at the last visit",
                        .epochs = history.epochs(),
                        .hardest = first_samples(hardest_first, count),
                        .easiest = first_samples(rank_samples(history, -1.0F), count),
                        .forgotten = most_forgotten(forgetting, hardest_first, count)};
  for (std::size_t i = 0; i < history.num_samples(); ++i) {
    if (!forgetting.was_visited(i)) continue;
    gallery.num_never_learned += forgetting.was_learned(i) ? 0 : 1;
    gallery.num_never_forgotten += forgetting.was_learned(i) && forgetting.count(i) == 0 ? 1 : 0;
  }
  std::vector<std::uint64_t> all = gallery.hardest;
  all.insert(all.end(), gallery.easiest.begin(), gallery.easiest.end());
  all.insert(all.end(), gallery.forgotten.begin(), gallery.forgotten.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::vector<std::int64_t> predictions = predict(model, data, all);
  const runs::SampleList samples = list_samples(data);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto sample = static_cast<std::size_t>(all[k]);
    runs::GallerySample entry{.sample = all[k],
                              .place = samples.place(sample),
                              .label = samples.class_name(samples.labels[sample]),
                              .predicted = samples.class_name(predictions[k]),
                              .forgotten = forgetting.count(sample),
                              .picture = encode_png(thumbnail(data, all[k]))};
    if (samples.is_wrong(sample)) {
      entry.true_label = samples.class_name(samples.true_labels[sample]);
    }
    for (std::size_t e = 0; e < history.epochs().size(); ++e) {
      entry.scores.push_back(history.losses(e)[sample]);
    }
    gallery.samples.push_back(std::move(entry));
  }
  return gallery;
}

}  // namespace tamis::training

// What the built-in scores share: one entry per sample, updated batch by batch.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/array.h"
#include "tamis/scorer.h"

namespace tamis::detail {

// A view of an array for saving and loading.
template <typename T>
ScorerArray saved_array(std::string_view name, std::string_view dtype, Array<T>& values) {
  return {name, dtype, std::as_writable_bytes(std::span<T>(values.data(), values.size()))};
}

// Replaces values[i] by update(values[i], k) for i = observation.indices[k]. Unless the indices are
// distinct, all old values are read before the first new one is written, so that an index that
// stands twice is applied once. `scratch` saves the allocation.
template <typename T, typename Update>
void apply_once(const Observation& observation, Array<T>& values, std::vector<T>& scratch,
                Update update) {
  const std::span<const std::uint32_t> indices = observation.indices;
  const std::size_t n = indices.size();
  T* const all = values.data();
  if (observation.distinct) {
    // Eight reads before eight writes: a write that waits for its cache line would hold up the
    // reads behind it. The values of the block after the next are fetched meanwhile.
    constexpr std::size_t kBlock = 8;
    const auto update_block = [&](std::size_t k) {
      const std::uint32_t* const block = indices.data() + k;
      std::array<T, kBlock> fresh;
      for (std::size_t j = 0; j < kBlock; ++j) fresh[j] = update(all[block[j]], k + j);
      for (std::size_t j = 0; j < kBlock; ++j) all[block[j]] = fresh[j];
    };
    std::size_t k = 0;
    for (; k + 3 * kBlock <= n; k += kBlock) {
      const std::uint32_t* const later = indices.data() + k + 2 * kBlock;
      for (std::size_t j = 0; j < kBlock; ++j) __builtin_prefetch(all + later[j], 1);
      update_block(k);
    }
    for (; k + kBlock <= n; k += kBlock) update_block(k);
    for (; k < n; ++k) all[indices[k]] = update(all[indices[k]], k);
    return;
  }
  if (scratch.size() < n) scratch.resize(n);
  T* const fresh = scratch.data();
  for (std::size_t k = 0; k < n; ++k) fresh[k] = update(all[indices[k]], k);
  for (std::size_t k = 0; k < n; ++k) all[indices[k]] = fresh[k];
}

// A score that keeps one entry of type T for each sample and saves them under `array_name`.
template <typename T>
class ArrayScorer : public Scorer {
 public:
  ArrayScorer(std::string name, OptionMap options, std::size_t num_samples,
              std::string_view array_name, T unseen)
      : spec_{std::move(name), std::move(options)},
        array_name_(array_name),
        values_(num_samples, unseen) {}

  Spec spec() const override { return spec_; }
  std::size_t num_samples() const override { return values_.size(); }
  std::vector<ScorerArray> arrays() override { return {saved_array(array_name_, "F32", values_)}; }

 protected:
  double option(std::string_view name) const { return spec_.options.find(name)->second; }
  template <typename Update>
  void apply(const Observation& observation, Update update) {
    apply_once(observation, values_, scratch_, update);
  }
  Array<T>& values() { return values_; }
  const Array<T>& values() const { return values_; }
  std::vector<T>& scratch() { return scratch_; }

 private:
  Spec spec_;
  std::string_view array_name_;
  Array<T> values_;
  std::vector<T> scratch_;
};

// One that also keeps the mean of all losses it was shown, which are positive.
template <typename Base>
class MeanLossScorer : public Base {
 public:
  using Base::Base;
  OptionMap numbers() const override {
    return {{"mean_loss", mean_loss_}, {"num_observations", num_observations_}};
  }
  void set_numbers(const OptionMap& numbers) override {
    mean_loss_ = numbers.at("mean_loss");
    num_observations_ = numbers.at("num_observations");
  }
  bool is_possible(const OptionMap& numbers) const override {
    const double mean = numbers.at("mean_loss");
    const double count = numbers.at("num_observations");
    const bool is_count = count >= 0.0 && count <= 0x1p53 && count == std::floor(count);
    return is_count && (count == 0.0 ? mean == 0.0 : mean > 0.0 && std::isfinite(mean));
  }

 protected:
  double mean_loss_ = 0.0;
  double num_observations_ = 0.0;
};

// One whose entries are the scores themselves.
class FloatScorer : public ArrayScorer<float> {
 public:
  FloatScorer(std::string name, OptionMap options, std::size_t num_samples)
      : ArrayScorer(std::move(name), std::move(options), num_samples, "scores", kUnscored) {}

  std::span<const float> scores(Array<float>&) const override {
    return {values().data(), values().size()};
  }
};

}  // namespace tamis::detail

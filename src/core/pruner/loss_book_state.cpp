// What a LossBook keeps back, as the attachment of a saved state.
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tamis/loss_book.h"

namespace tamis {

namespace {

constexpr std::uint64_t kAttachmentVersion = 2;  // 1: without claims

// Arrays one after the other, each behind its length.
template <typename T>
void write(const std::vector<T>& values, std::vector<std::byte>& out) {
  const auto size = static_cast<std::uint64_t>(values.size());
  const auto length = std::as_bytes(std::span(&size, 1));
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), length.begin(), length.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

[[noreturn]] void fail_damaged() {
  throw std::runtime_error("LossBook: the losses that this state has kept back are damaged");
}

template <typename T>
std::vector<T> read(std::span<const std::byte>& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) fail_damaged();
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size() / sizeof(T)) fail_damaged();
  std::vector<T> values(static_cast<std::size_t>(size));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  bytes = bytes.subspan(values.size() * sizeof(T));
  return values;
}

}  // namespace

void LossBook::before_save() {
  std::vector<std::byte> bytes;
  const bool keeps = pass_.booking == Booking::in_order && pass_.num_updates > 0;
  if (keeps) {
    const std::vector<std::uint64_t> head = {kAttachmentVersion, pass_.epoch,
                                             pass_.batches[0].begin,
                                             static_cast<std::uint64_t>(pass_.is_broken)};
    std::vector<std::uint32_t> counts;
    std::vector<KeptForm> forms;
    std::vector<double> means;
    std::vector<float> values;
    for (std::size_t k = 0; k < pass_.num_updates; ++k) {
      const KeptLoss& kept = pass_.kept[k];
      counts.push_back(static_cast<std::uint32_t>(pass_.batches[k].count));
      forms.push_back(kept.form);
      means.push_back(kept.mean);
      values.insert(values.end(), kept.values.begin(), kept.values.end());
    }
    write(head, bytes);
    write(counts, bytes);
    write(forms, bytes);
    write(means, bytes);
    write(values, bytes);
  }
  pruner_->set_attachment(std::move(bytes));
}

LossBook::Pass LossBook::read_pass(std::span<const std::byte> bytes) {
  const auto head = read<std::uint64_t>(bytes);
  if (head.size() != 4 || head[0] < 1 || head[0] > kAttachmentVersion) fail_damaged();
  const bool has_forms = head[0] > 1;
  const auto counts = read<std::uint32_t>(bytes);
  std::vector<KeptForm> forms;
  if (has_forms) {
    forms = read<KeptForm>(bytes);
  } else {
    for (const std::uint32_t num_losses : read<std::uint32_t>(bytes)) {
      forms.push_back(num_losses == 0 ? KeptForm::mean : KeptForm::losses);
    }
  }
  const auto means = read<double>(bytes);
  const auto values = read<float>(bytes);
  if (forms.size() != counts.size()) fail_damaged();
  Pass pass{.booking = Booking::in_order,
            .epoch = head[1],
            .num_updates = counts.size(),
            .is_broken = head[3] != 0};
  std::uint64_t begin = head[2];
  std::span<const double> means_left = means;
  std::span<const float> values_left = values;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    KeptLoss kept{.form = forms[k]};
    if (kept.form > KeptForm::watched) fail_damaged();
    if (has_forms || kept.form == KeptForm::mean) {
      if (means_left.empty()) fail_damaged();
      kept.mean = means_left.front();
      means_left = means_left.subspan(1);
    }
    if (kept.form == KeptForm::losses || kept.form == KeptForm::watched) {
      if (values_left.size() < counts[k]) fail_damaged();
      kept.values.assign(values_left.begin(), values_left.begin() + counts[k]);
      values_left = values_left.subspan(counts[k]);
    }
    pass.kept.push_back(std::move(kept));
    pass.batches.push_back({.begin = static_cast<std::size_t>(begin), .count = counts[k]});
    pass.is_updated.push_back(true);
    begin += counts[k];
  }
  if (!means_left.empty() || !values_left.empty()) fail_damaged();
  return pass;
}

// What was kept back can be observed when the pass ends.
void LossBook::check_kept(const Pass& pass) const {
  constexpr LossKind kKinds[] = {LossKind::output_gradients, LossKind::mean_loss,
                                 LossKind::sample_losses, LossKind::output_gradients};
  try {
    for (std::size_t k = 0; k < pass.kept.size(); ++k) {
      const auto form = static_cast<std::size_t>(pass.kept[k].form);
      pruner_->check_observation(pass.batches[k].count, kKinds[form]);
    }
  } catch (const std::invalid_argument&) {
    fail_damaged();
  }
}

void LossBook::after_load() {
  Pass pass;
  if (const std::span<const std::byte> bytes = pruner_->attachment(); !bytes.empty()) {
    pass = read_pass(bytes);
    const EpochPlan* const plan = pruner_->plan();
    if (plan == nullptr || plan->epoch() != pass.epoch || pass.batches.empty() ||
        pass.batches.front().begin > plan->size() || pass.batches.back().end() > plan->size()) {
      fail_damaged();
    }
    check_kept(pass);
  }
  pass_ = std::move(pass);
}

}  // namespace tamis

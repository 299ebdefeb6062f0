#include "libtorch/watcher.h"

#include <torch/torch.h>

#include <stdexcept>
#include <utility>

namespace tamis::libtorch::detail {

std::string Watcher::take_complaint() {
  if (!std::exchange(is_unreached_, false)) return {};
  return "backward() did not reach the outputs that were watched for the update before, so the "
         "samples of that batch keep their scores; the loss must be computed from what watch() "
         "returns: output = handler.watch(output)";
}

OutputWatch Watcher::take(const torch::Tensor& loss, std::size_t count) {
  OutputWatch watch = std::exchange(pending_, OutputWatch(norm_order_));
  if (const std::string complaint = take_complaint(); !complaint.empty()) {
    throw std::logic_error("update: " + complaint);
  }
  if (!loss.requires_grad()) {
    throw std::invalid_argument(
        "update: outputs are watched, so the loss must be the tensor that backward() runs through, "
        "got one that needs no gradient; give it before detach() or item()");
  }
  if (watch.is_spent()) {
    throw std::logic_error(
        "update: backward() has already run through the watched outputs of this batch; call it on "
        "what update returns: handler.update(loss).backward()");
  }
  if (watch.empty()) {
    throw std::logic_error(
        is_active_ ? "update: no output was watched since the last update; in every step, call "
                     "output = handler.watch(output) before update"
                   : "update: the score needs watched outputs: call output = handler.watch(output) "
                     "in every step, before update; the methods of bls and blr need the mean loss "
                     "alone");
  }
  watch.check_rows(count);
  return watch;
}

}  // namespace tamis::libtorch::detail

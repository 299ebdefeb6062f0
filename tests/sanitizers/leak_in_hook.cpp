// Leaks in a hook that autograd calls. Torch's frames are below ours, so a suppression for torch
// would hide it.
#include <torch/torch.h>

#include <cstddef>

namespace {

constexpr std::size_t kForgottenBytes = 4321;

void forget() { static_cast<void>(*new volatile char[kForgottenBytes]); }

}  // namespace

int main() {
  const torch::Tensor weights = torch::ones({3}, torch::requires_grad());
  const torch::Tensor loss = (2 * weights).sum();
  loss.register_hook([](const torch::Tensor&) { forget(); });
  loss.backward();
  return 0;
}

#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class None final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  bool uses_scores() const override { return false; }
  Selection select(const PolicyInput& input) const override { return anneal(input); }
};

}  // namespace

std::unique_ptr<Policy> make_none(const OptionMap& options) {
  return std::make_unique<None>("none", options);
}

}  // namespace tamis::detail

#include "tamis/policies/none.h"

namespace tamis {

namespace {

class None final : public Policy {
 public:
  Spec spec() const override { return {"none"}; }
  bool uses_scores() const override { return false; }
  Selection select(const PolicyInput& input) const override { return anneal(input); }
};

}  // namespace

std::unique_ptr<Policy> make_none() { return std::make_unique<None>(); }

}  // namespace tamis

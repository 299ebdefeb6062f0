// The models that make_model knows, for programs that do not include torch.
#pragma once

#include <string>
#include <vector>

namespace tamis::training {

std::vector<std::string> model_names();

}  // namespace tamis::training

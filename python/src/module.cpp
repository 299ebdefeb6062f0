// winnow._core: the core for Python. Links no torch, so that one build serves every torch.
#include "module.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The core of winnow: scores, policies, plans and the state of a run.";
  module.attr("__version__") = WINNOW_VERSION;
  winnow::python::bind_registry(module);
  winnow::python::bind_epoch_plan(module);
  winnow::python::bind_pruner(module);
  winnow::python::bind_distributed(module);
}

// tamis._core: the core for Python. Links no torch, so that one build serves every torch.
#include "module.h"

NB_MODULE(_core, module) {
#ifndef TAMIS_SANITIZED  // Then the tests look for them.
  // What lives until the interpreter ends is no leak, and users should not read about it.
  nanobind::set_leak_warnings(false);
#endif
  module.doc() = "The core of tamis: scores, policies, plans and the state of a run.";
  module.attr("__version__") = TAMIS_VERSION;
  tamis::python::bind_registry(module);
  tamis::python::bind_epoch_plan(module);
  tamis::python::bind_pruner(module);
  tamis::python::bind_loss_book(module);
  tamis::python::bind_watched_rows(module);
}

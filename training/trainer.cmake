# winnow_trainer: what `winnow train` and `winnow compare` do.
find_package(fmt REQUIRED)

set(WINNOW_COMMIT_HEADER ${PROJECT_BINARY_DIR}/generated/training/source_commit.h)
add_custom_target(winnow_source_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${WINNOW_COMMIT_HEADER}
          -P ${PROJECT_SOURCE_DIR}/cmake/source_commit.cmake
  BYPRODUCTS ${WINNOW_COMMIT_HEADER})

add_library(winnow_trainer STATIC
  checkpoint.cpp
  compare.cpp
  disturbance.cpp
  environment.cpp
  epoch_metrics.cpp
  evaluation.cpp
  methods.cpp
  optimizer.cpp
  presets.cpp
  progress_line.cpp
  run_config.cpp
  run_folder.cpp
  step_loss.cpp
  summary.cpp
  sweep.cpp
  team.cpp
  trainer.cpp)
add_dependencies(winnow_trainer winnow_source_commit)
target_include_directories(winnow_trainer
  PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(winnow_trainer PRIVATE WINNOW_VERSION="${PROJECT_VERSION}")
target_link_libraries(winnow_trainer
  PUBLIC winnow_training winnow::libtorch nlohmann_json::nlohmann_json
  PRIVATE fmt::fmt)
winnow_compile_options(winnow_trainer)
winnow_use_torch(winnow_trainer)
# These do not include torch.
set_source_files_properties(
  environment.cpp epoch_metrics.cpp methods.cpp presets.cpp progress_line.cpp run_config.cpp
  run_folder.cpp summary.cpp sweep.cpp
  PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

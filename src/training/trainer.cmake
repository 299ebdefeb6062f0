# tamis_settings: what the trainer is told and what it shows, without torch.
add_library(tamis_settings STATIC
  trainer/budget.cpp
  trainer/presets.cpp
  trainer/processor_time.cpp
  trainer/progress_line.cpp
  trainer/run_config.cpp
  trainer/running_epoch.cpp)
target_link_libraries(tamis_settings PUBLIC tamis_runs PRIVATE tamis_fmt)
tamis_compile_options(tamis_settings)
tamis_share_precompiled(tamis_settings tamis_runs)

# tamis_trainer: what `tamis train` and `tamis compare` do. Its users do not see torch, whose folders
# hold another fmt than theirs: trainer.h and compare.h do not include it.
set(TAMIS_COMMIT_HEADER ${PROJECT_BINARY_DIR}/generated/training/source_commit.h)
add_custom_target(tamis_source_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${TAMIS_COMMIT_HEADER}
          -P ${PROJECT_SOURCE_DIR}/cmake/source_commit.cmake
  BYPRODUCTS ${TAMIS_COMMIT_HEADER})

add_library(tamis_trainer STATIC
  trainer/batches.cpp
  trainer/checkpoint.cpp
  trainer/compare.cpp
  trainer/environment.cpp
  trainer/evaluation.cpp
  trainer/forgetting_events.cpp
  trainer/gallery_maker.cpp
  trainer/optimizer.cpp
  trainer/processor.cpp
  trainer/sample_gradients.cpp
  trainer/sample_history.cpp
  trainer/static_scores.cpp
  trainer/step_loss.cpp
  trainer/team.cpp
  trainer/trainer.cpp
  trainer/weights_file.cpp)
add_dependencies(tamis_trainer tamis_source_commit)
target_include_directories(tamis_trainer
  PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(tamis_trainer PRIVATE TAMIS_VERSION="${PROJECT_VERSION}")
target_link_libraries(tamis_trainer PUBLIC tamis_settings tamis_training PRIVATE tamis::torch)
tamis_compile_options(tamis_trainer)
tamis_use_torch(tamis_trainer)
set_source_files_properties(trainer/environment.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

// Wrong labels, unequal classes and copies, on purpose: what real data have and benchmark data
// lack.
#pragma once

#include <cstdint>

#include "training/data/dataset.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

// Changes the training samples as `config` says; those for testing stay as they are. First the
// classes: class c of C keeps round(size * imbalance^(c / (C - 1))) random samples, at least 1, as
// in long-tailed CIFAR. Then floor(copies * N) random samples become copies of 300 of the others,
// each equally likely. Then the labels: floor(label_noise * N) random samples get a label of
// another class, each equally likely. The same seed gives the same samples and labels.
DataSplits disturb(const DataSplits& data, const DataConfig& config, std::uint64_t seed);

}  // namespace tamis::training

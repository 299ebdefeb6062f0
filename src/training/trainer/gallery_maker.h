// Who the samples of a run are, and the pictures of its gallery.
#pragma once

#include <cstddef>

#include "runs/gallery.h"
#include "runs/sample_list.h"

namespace tamis::training {

class Model;
class SampleHistory;
struct Dataset;

runs::SampleList list_samples(const Dataset& data);

// The `count` samples whose losses were highest, and lowest, among all samples, by their mean rank
// over the epochs; and those that were forgotten most often, the harder of two first, as far as any
// were forgotten. Predictions are those of the model now, which is put into evaluation mode.
// Pictures have at most 64 pixels on each side. Requires: the history has an epoch.
runs::Gallery make_gallery(const SampleHistory& history, const Dataset& data, Model& model,
                           std::size_t count);

}  // namespace tamis::training

// A folder with one sub-folder of PNG files per class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/data/raw_images.h"

namespace tamis::training {

// The sub-folders of `folder` in alphabetical order; the place in the list is the label. Throws
// std::runtime_error if there are none, or more than 256.
std::vector<std::string> class_names(const std::filesystem::path& folder);

// Reads folder/<class>/*.png, classes in the given order, files of a class in alphabetical order.
// Throws std::runtime_error if a class has no folder, if there are no images, or if not all of them
// have the same size and number of channels.
RawImages read_image_folder(const std::filesystem::path& folder,
                            const std::vector<std::string>& classes);

}  // namespace tamis::training

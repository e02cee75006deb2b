// Pictures of digits from files, brought into the form of MNIST.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace meganeura::cli {

// Gray pixels, row-major; 0 is black.
struct GrayImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

// Decodes a PNG or JPEG file to gray; what is transparent becomes white. Error(kFile) when it is
// neither, damaged, or beyond 64 MiB or 8192 pixels a side.
GrayImage read_gray_image(const std::filesystem::path& path);

// A digit like those of MNIST, 28 x 28, bright on black: inverted when the border is bright,
// stretched to full contrast, its box fitted into 20 x 20 pixels and its centre of mass put in the
// middle. A 28 x 28 image keeps its place and size. Error(kInvalidArgument) when there is no ink.
GrayImage to_mnist_form(const GrayImage& image);

}  // namespace meganeura::cli

#include "cli/render_image_file.h"

#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "base/platform_file.h"

namespace meganeura::cli {

namespace {

constexpr int kSide = 28;
constexpr int kBox = 20;
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;
// Of full contrast: darker pixels are noise of the background.
constexpr int kInk = 40;

uint8_t at(const GrayImage& image, int x, int y) {
  return image
      .pixels[static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x)];
}

// The median of the outermost pixels: the background.
int background(const GrayImage& image) {
  std::vector<uint8_t> border;
  for (int x = 0; x < image.width; ++x) {
    border.push_back(at(image, x, 0));
    border.push_back(at(image, x, image.height - 1));
  }
  for (int y = 0; y < image.height; ++y) {
    border.push_back(at(image, 0, y));
    border.push_back(at(image, image.width - 1, y));
  }
  const auto middle = border.begin() + static_cast<std::ptrdiff_t>(border.size() / 2);
  std::nth_element(border.begin(), middle, border.end());
  return *middle;
}

// Bright ink on black: 0 is the background, 255 the strongest ink.
GrayImage to_ink(const GrayImage& image) {
  const int paper = background(image);
  const bool inverted = paper >= 128;
  const auto ink_of = [&](uint8_t pixel) {
    return std::max(0, inverted ? paper - pixel : pixel - paper);
  };
  int strongest = 0;
  for (uint8_t pixel : image.pixels) strongest = std::max(strongest, ink_of(pixel));
  if (strongest < 16)
    fail(ErrorKind::kInvalidArgument, "The image of ", image.width, " x ", image.height,
         " pixels shows no ink: all of it is as bright as its border.");
  GrayImage ink = image;
  for (uint8_t& pixel : ink.pixels)
    pixel = static_cast<uint8_t>((ink_of(pixel) * 255 + strongest / 2) / strongest);
  return ink;
}

struct Box {
  int left, top, right, bottom;  // right and bottom are one past the last
};

Box ink_box(const GrayImage& ink) {
  Box box{ink.width, ink.height, 0, 0};
  for (int y = 0; y < ink.height; ++y) {
    for (int x = 0; x < ink.width; ++x) {
      if (at(ink, x, y) < kInk) continue;
      box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1),
             std::max(box.bottom, y + 1)};
    }
  }
  return box;
}

// The mean ink over [x0, x1) x [y0, y1) in pixels and fractions of them, nothing outside the box.
double mean_ink(const GrayImage& ink, const Box& box, double x0, double y0, double x1, double y1) {
  double sum = 0.0;
  const int first_y = std::max(box.top, static_cast<int>(std::floor(y0)));
  const int first_x = std::max(box.left, static_cast<int>(std::floor(x0)));
  for (int y = first_y; y < box.bottom && y < y1; ++y) {
    const double height = std::min(y1, y + 1.0) - std::max(y0, double(y));
    for (int x = first_x; x < box.right && x < x1; ++x) {
      const double width = std::min(x1, x + 1.0) - std::max(x0, double(x));
      sum += at(ink, x, y) * width * height;
    }
  }
  return sum / ((x1 - x0) * (y1 - y0));
}

// Scales the box and puts the ink's centre of mass on the middle of the result.
GrayImage fit(const GrayImage& ink) {
  const Box box = ink_box(ink);
  double mass = 0.0;
  double center_x = 0.0;
  double center_y = 0.0;
  for (int y = box.top; y < box.bottom; ++y) {
    for (int x = box.left; x < box.right; ++x) {
      mass += at(ink, x, y);
      center_x += at(ink, x, y) * (x + 0.5);
      center_y += at(ink, x, y) * (y + 0.5);
    }
  }
  center_x /= mass;
  center_y /= mass;
  const double scale = std::max(box.right - box.left, box.bottom - box.top) / double(kBox);
  GrayImage out{kSide, kSide, std::vector<uint8_t>(kSide * kSide)};
  for (int y = 0; y < kSide; ++y) {
    const double y0 = center_y + (y - kSide / 2.0) * scale;
    for (int x = 0; x < kSide; ++x) {
      const double x0 = center_x + (x - kSide / 2.0) * scale;
      const double mean = mean_ink(ink, box, x0, y0, x0 + scale, y0 + scale);
      out.pixels[static_cast<size_t>(y * kSide + x)] =
          static_cast<uint8_t>(std::lround(std::min(mean, 255.0)));
    }
  }
  return out;
}

}  // namespace

GrayImage read_gray_image(const std::filesystem::path& path) {
  std::error_code code;
  const uint64_t size = std::filesystem::file_size(path, code);
  if (!code && size > kMaxFileBytes)
    fail(ErrorKind::kFile, path.string(), " has ", size, " bytes; images of at most ",
         kMaxFileBytes, " are read.");
  const std::vector<std::byte> bytes = read_file(path);
  GrayImage image;
  int channels = 0;
  // Two channels: gray and alpha.
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                            static_cast<int>(bytes.size()), &image.width, &image.height, &channels,
                            2),
      stbi_image_free);
  if (!decoded)
    fail(ErrorKind::kFile, path.string(),
         " cannot be read as an image. It must be a PNG or JPEG file of at most 8192 x 8192 "
         "pixels.");
  const size_t count = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  image.pixels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int gray = decoded.get()[2 * i];
    const int alpha = decoded.get()[2 * i + 1];
    image.pixels[i] = static_cast<uint8_t>((gray * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  return image;
}

GrayImage to_mnist_form(const GrayImage& image) {
  MG_CHECK(image.width > 0 && image.height > 0 &&
               image.pixels.size() ==
                   static_cast<size_t>(image.width) * static_cast<size_t>(image.height),
           "An image of ", image.width, " x ", image.height, " pixels has ", image.pixels.size(),
           " bytes.");
  const GrayImage ink = to_ink(image);
  return image.width == kSide && image.height == kSide ? ink : fit(ink);
}

}  // namespace meganeura::cli

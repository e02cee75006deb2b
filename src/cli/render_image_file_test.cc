#include "cli/render_image_file.h"

#include <gtest/gtest.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <functional>

#include "base/platform_file.h"
#include "meganeura/error.h"

namespace meganeura::cli {
namespace {

GrayImage make(int width, int height, const std::function<int(int, int)>& pixel) {
  GrayImage image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) image.pixels.push_back(static_cast<uint8_t>(pixel(x, y)));
  }
  return image;
}

// A file that is removed with the object.
class ImageFile {
 public:
  explicit ImageFile(const char* name)
      : path_(std::filesystem::temp_directory_path() / (std::string("meganeura_") + name)) {}
  ~ImageFile() { std::filesystem::remove(path_); }
  const std::filesystem::path path_;
};

void expect_kind(ErrorKind kind, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
  }
}

TEST(ReadGrayImage, ReadsPng) {
  const ImageFile file("gray.png");
  const GrayImage image = make(3, 2, [](int x, int y) { return 40 * x + 100 * y; });
  ASSERT_TRUE(stbi_write_png(file.path_.c_str(), 3, 2, 1, image.pixels.data(), 3));
  const GrayImage read = read_gray_image(file.path_);
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.pixels, image.pixels);
}

TEST(ReadGrayImage, PutsTransparentPicturesOnWhitePaper) {
  const ImageFile file("alpha.png");
  const uint8_t pixels[] = {0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 128};
  ASSERT_TRUE(stbi_write_png(file.path_.c_str(), 3, 1, 4, pixels, 12));
  EXPECT_EQ(read_gray_image(file.path_).pixels, (std::vector<uint8_t>{255, 0, 127}));
}

TEST(ReadGrayImage, ReadsJpeg) {
  const ImageFile file("gray.jpg");
  const GrayImage image = make(16, 16, [](int, int y) { return y < 8 ? 0 : 255; });
  ASSERT_TRUE(stbi_write_jpg(file.path_.c_str(), 16, 16, 1, image.pixels.data(), 95));
  const GrayImage read = read_gray_image(file.path_);
  ASSERT_EQ(read.pixels.size(), image.pixels.size());
  for (size_t i = 0; i < read.pixels.size(); ++i)
    EXPECT_NEAR(read.pixels[i], image.pixels[i], 12) << i;
}

TEST(ReadGrayImage, RefusesWhatIsNoImage) {
  const ImageFile file("text.png");
  write_file_atomically(file.path_, std::as_bytes(std::span("not an image")));
  expect_kind(ErrorKind::kFile, [&] { read_gray_image(file.path_); });
  expect_kind(ErrorKind::kFile, [] { read_gray_image("no/such/file.png"); });
  write_file_atomically(file.path_, std::span<const std::byte>());
  expect_kind(ErrorKind::kFile, [&] { read_gray_image(file.path_); });
}

TEST(ReadGrayImage, RefusesEveryTruncationOfItsHeader) {
  const ImageFile file("cut.png");
  const GrayImage image = make(28, 28, [](int x, int y) { return x * y % 256; });
  ASSERT_TRUE(stbi_write_png(file.path_.c_str(), 28, 28, 1, image.pixels.data(), 28));
  const std::vector<std::byte> whole = read_file(file.path_);
  for (size_t size = 0; size < 60; ++size) {
    write_file_atomically(file.path_, std::span(whole).first(size));
    expect_kind(ErrorKind::kFile, [&] { read_gray_image(file.path_); });
  }
}

struct Mass {
  double total = 0.0, x = 0.0, y = 0.0;
};

Mass mass_of(const GrayImage& image) {
  Mass mass;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const double ink = image.pixels[static_cast<size_t>(y * image.width + x)];
      mass.total += ink;
      mass.x += ink * (x + 0.5);
      mass.y += ink * (y + 0.5);
    }
  }
  mass.x /= mass.total;
  mass.y /= mass.total;
  return mass;
}

// An L in the corner of a big picture: thick, off-centre, dark on bright.
GrayImage drawn_on_paper() {
  return make(200, 150, [](int x, int y) {
    const bool stem = x >= 10 && x < 30 && y >= 20 && y < 120;
    const bool foot = x >= 10 && x < 80 && y >= 100 && y < 120;
    return stem || foot ? 30 : 240;
  });
}

TEST(ToMnistForm, CentresTheInkInTwentyPixels) {
  const GrayImage digit = to_mnist_form(drawn_on_paper());
  EXPECT_EQ(digit.width, 28);
  EXPECT_EQ(digit.height, 28);
  const Mass mass = mass_of(digit);
  EXPECT_NEAR(mass.x, 14.0, 0.05);
  EXPECT_NEAR(mass.y, 14.0, 0.05);
  // 100 x 70 pixels became 20 x 14, so the area shrank by 25.
  EXPECT_NEAR(mass.total / 255.0, (20 * 100 + 50 * 20) / 25.0, 1.0);
  EXPECT_EQ(*std::max_element(digit.pixels.begin(), digit.pixels.end()), 255);
  EXPECT_EQ(digit.pixels[0], 0);
}

TEST(ToMnistForm, DoesNotMindWhichSideIsBright) {
  const GrayImage paper = drawn_on_paper();
  GrayImage board = paper;
  for (uint8_t& pixel : board.pixels) pixel = static_cast<uint8_t>(255 - pixel);
  EXPECT_EQ(to_mnist_form(board).pixels, to_mnist_form(paper).pixels);
}

TEST(ToMnistForm, KeepsTheSizeAndPlaceOfADigit) {
  const GrayImage digit =
      make(28, 28, [](int x, int y) { return x >= 3 && x < 6 && y >= 4 && y < 9 ? 255 : 0; });
  EXPECT_EQ(to_mnist_form(digit).pixels, digit.pixels);
}

TEST(ToMnistForm, EnlargesASmallDigit) {
  const GrayImage dot = make(5, 5, [](int x, int y) { return x == 2 && y > 0 && y < 4 ? 255 : 0; });
  const GrayImage digit = to_mnist_form(dot);
  const Mass mass = mass_of(digit);
  EXPECT_NEAR(mass.x, 14.0, 0.05);
  EXPECT_NEAR(mass.y, 14.0, 0.05);
  EXPECT_NEAR(mass.total / 255.0, 20.0 * 20.0 / 3.0, 2.0);
}

TEST(ToMnistForm, RefusesABlankPage) {
  expect_kind(ErrorKind::kInvalidArgument,
              [] { to_mnist_form(make(40, 40, [](int, int) { return 255; })); });
  expect_kind(ErrorKind::kInvalidArgument,
              [] { to_mnist_form(make(28, 28, [](int, int) { return 3; })); });
}

}  // namespace
}  // namespace meganeura::cli

#include "cli/render_digit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meganeura/error.h"

namespace meganeura::cli {
namespace {

const Terminal kAscii{false, false, false, 80};
const Terminal kBlocks{false, false, true, 80};
const Terminal kColor{true, true, true, 80};

TEST(DrawImage, ShadesPairsOfRows) {
  const std::vector<uint8_t> pixels = {0, 255, 128, 0, 255, 128, 255, 0, 0};
  EXPECT_EQ(draw_image(pixels, 3, 3, kAscii), (std::vector<std::string>{" @+", "=  "}));
  EXPECT_EQ(draw_image(pixels, 3, 3, kBlocks), (std::vector<std::string>{" █▒", "▒  "}));
}

TEST(DrawImage, UsesHalfBlocksInColour) {
  EXPECT_EQ(draw_image(std::vector<uint8_t>{7, 200}, 1, 2, kColor),
            (std::vector<std::string>{"\x1b[38;2;7;7;7;48;2;200;200;200m▀\x1b[0m"}));
}

TEST(DrawImage, RefusesAnotherSize) {
  EXPECT_THROW(draw_image(std::vector<uint8_t>(5), 2, 3, kAscii), Error);
}

TEST(DrawPrediction, StandsBesideTheImage) {
  const std::vector<float> probabilities = {0.25f, 0.75f};
  EXPECT_EQ(draw_prediction(std::vector<uint8_t>{255, 0, 255, 0}, 2, 2, probabilities, 1, kAscii),
            "@     0 ######                    25.00 %\n"
            "      1 ##################        75.00 %  < true\n"
            "\n"
            "     predicted 1, true label 1: right\n");
}

TEST(DrawPrediction, SaysWhenItIsWrong) {
  const std::vector<float> probabilities = {0.25f, 0.75f};
  const std::string text = draw_prediction(std::vector<uint8_t>(4), 2, 2, probabilities, 0, kAscii);
  EXPECT_NE(text.find("25.00 %  true\n"), std::string::npos) << text;
  EXPECT_NE(text.find("predicted 1, true label 0: wrong"), std::string::npos) << text;
}

TEST(DrawPrediction, GoesBelowInANarrowTerminal) {
  Terminal narrow = kAscii;
  narrow.columns = 30;
  const std::string text =
      draw_prediction(std::vector<uint8_t>(4), 2, 2, std::vector<float>{1.0f}, {}, narrow);
  EXPECT_EQ(text, "  \n 0 ######################## 100.00 %  <\n\npredicted 0\n");
}

TEST(DrawPrediction, SurvivesNumbersThatAreNone) {
  const std::vector<float> probabilities = {std::nanf(""), 0.1f, INFINITY};
  const std::string text =
      draw_prediction(std::vector<uint8_t>(4), 2, 2, probabilities, {}, kAscii);
  EXPECT_NE(text.find("nan %"), std::string::npos) << text;
  EXPECT_NE(text.find("predicted 2"), std::string::npos) << text;
}

}  // namespace
}  // namespace meganeura::cli

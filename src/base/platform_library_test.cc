#include "base/platform_library.h"

#include <gtest/gtest.h>

#include <array>

namespace meganeura {
namespace {

TEST(SharedLibrary, NamesEveryLibraryItDidNotFind) {
  std::array names = {"libmeganeura_absent_a.so", "libmeganeura_absent_b.so"};
  std::string why;
  EXPECT_EQ(SharedLibrary::open(names, why), nullptr);
  EXPECT_NE(why.find("libmeganeura_absent_a.so"), std::string::npos);
  EXPECT_NE(why.find("libmeganeura_absent_b.so"), std::string::npos);
}

TEST(SharedLibrary, FallsBackToTheNextNameAndFindsSymbols) {
  std::array names = {"libmeganeura_absent_a.so", "libm.so.6"};
  std::string why;
  auto library = SharedLibrary::open(names, why);
  if (!library) GTEST_SKIP() << "No libm.so.6 on this system: " << why;
  EXPECT_NE(library->symbol("cos"), nullptr);
  EXPECT_EQ(library->symbol("meganeura_absent_symbol"), nullptr);
}

}  // namespace
}  // namespace meganeura

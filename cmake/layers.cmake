# mg_layer(<name> [DIRECTORY <dir>] [DEPENDS <layer>...] [TEST_DEPENDS <layer>...])
#
# Makes the static library mg_<name> of every .cc in src/<dir> (not below it), and, when there are
# *_test.cc files, the test program mg_<name>_test. A layer without sources is an interface target.
# A layer's own extras (packages to find and link) stand in src/<dir>/layer.cmake, which sees
# ${target} and, after it exists, ${test_target}.
find_package(Threads REQUIRED)
if(MEGANEURA_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

function(mg_layer name)
  cmake_parse_arguments(arg "" "DIRECTORY" "DEPENDS;TEST_DEPENDS" ${ARGN})
  if(NOT arg_DIRECTORY)
    set(arg_DIRECTORY ${name})
  endif()
  set(root ${PROJECT_SOURCE_DIR}/src/${arg_DIRECTORY})
  file(GLOB sources CONFIGURE_DEPENDS ${root}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM arg_DEPENDS PREPEND mg_)
  list(TRANSFORM arg_TEST_DEPENDS PREPEND mg_)

  set(target mg_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(${target} PRIVATE ${MEGANEURA_WARNINGS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} ${scope} ${arg_DEPENDS} Threads::Threads)

  set(test_target "")
  if(tests AND MEGANEURA_BUILD_TESTS)
    set(test_target mg_${name}_test)
    add_executable(${test_target} ${tests})
    target_compile_options(${test_target} PRIVATE ${MEGANEURA_TEST_OPTIONS})
    target_link_libraries(${test_target} PRIVATE ${target} ${arg_TEST_DEPENDS} GTest::gtest_main)
    target_compile_definitions(${test_target}
                               PRIVATE MEGANEURA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(${test_target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${name})
  endif()
  if(EXISTS ${root}/layer.cmake)
    include(${root}/layer.cmake)
  endif()
endfunction()

set(MEGANEURA_WARNINGS -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of std::string's own copies (GCC bug 105651).
  list(APPEND MEGANEURA_WARNINGS -Wno-restrict)
else()
  # Bodies of ops use & and | alike on bool and on expressions, where && and || do not exist.
  list(APPEND MEGANEURA_WARNINGS -Wno-unknown-warning-option -Wno-bitwise-instead-of-logical)
endif()
# Tests are built more often than they run, and spend their time in the libraries: what the build
# type optimises beyond this would only cost minutes.
set(MEGANEURA_TEST_OPTIONS ${MEGANEURA_WARNINGS} $<$<CONFIG:Release>:-O1>)
# Costs and references must not depend on what the compiler fuses.
add_compile_options(-ffp-contract=off)

# All 2^32 arguments of each strict function: minutes, so outside the suite (ctest -L exhaustive).
if(MEGANEURA_BUILD_TESTS)
  add_executable(mg_scalar_exhaustive EXCLUDE_FROM_ALL ${root}/exhaustive/strict_exhaustive.cc)
  target_compile_options(mg_scalar_exhaustive PRIVATE ${MEGANEURA_WARNINGS} -O3 -fno-math-errno
                                                      -fno-trapping-math)
  target_link_libraries(mg_scalar_exhaustive PRIVATE mg_scalar GTest::gtest_main)
  if(MEGANEURA_EXHAUSTIVE_TESTS)
    set_target_properties(mg_scalar_exhaustive PROPERTIES EXCLUDE_FROM_ALL OFF)
    gtest_discover_tests(mg_scalar_exhaustive DISCOVERY_MODE PRE_TEST
                         PROPERTIES LABELS exhaustive TIMEOUT 1800)
  endif()
endif()

# The strict functions on a Vulkan device against the processor, bit by bit.
if(MEGANEURA_BUILD_TESTS)
  add_executable(mg_strict_device_test ${PROJECT_SOURCE_DIR}/tests/strict_device_test.cc)
  target_compile_options(mg_strict_device_test PRIVATE ${MEGANEURA_TEST_OPTIONS})
  target_link_libraries(mg_strict_device_test PRIVATE mg_device_vulkan mg_emit_spirv
                                                      GTest::gtest_main)
  gtest_discover_tests(mg_strict_device_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS device)
endif()

find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(STB_INCLUDE_DIR stb/stb_image.h REQUIRED)

# Nothing here is hot, and CLI11 and fmt are large: small code builds in half the time.
target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
target_link_libraries(${target} PUBLIC CLI11::CLI11 fmt::fmt-header-only
                                       nlohmann_json::nlohmann_json)
target_include_directories(${target} SYSTEM PRIVATE ${STB_INCLUDE_DIR})
# The decoder is somebody else's code: no warnings, and its own file.
set_source_files_properties(${root}/stb_image.cc PROPERTIES COMPILE_OPTIONS "-w")
if(test_target)
  target_include_directories(${test_target} SYSTEM PRIVATE ${STB_INCLUDE_DIR})
endif()

if(MEGANEURA_BUILD_CLI AND EXISTS ${root}/main.cc)
  add_executable(meganeura ${root}/main.cc)
  target_compile_options(meganeura PRIVATE ${MEGANEURA_WARNINGS} $<$<CONFIG:Release>:-Os>)
  target_link_libraries(meganeura PRIVATE ${target})
  if(MEGANEURA_BUILD_TESTS)
    foreach(class cpu small-gpu large-gpu apple)
      add_test(NAME cli.graph_for_${class}
               COMMAND meganeura graph mnist --device-class ${class} --stage program)
      set_tests_properties(cli.graph_for_${class} PROPERTIES
                           LABELS cli PASS_REGULAR_EXPRESSION "target vulkan1.2.*segment step")
    endforeach()
  endif()
endif()

# What belongs to the repository rather than to a layer: its own checks, the libraries that are
# installed, and the package that finds them.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# mg_bundle(<target> EXPORT <name> ROOTS <layer>...)
#
# Makes one library of the objects of the named layers and of all that they depend on.
function(mg_bundle target)
  cmake_parse_arguments(arg "" "EXPORT" "ROOTS" ${ARGN})
  set(open ${arg_ROOTS})
  list(TRANSFORM open PREPEND mg_)
  set(layers "")
  set(others "")
  while(open)
    list(POP_FRONT open layer)
    if(layer IN_LIST layers)
      continue()
    endif()
    list(APPEND layers ${layer})
    get_target_property(libraries ${layer} INTERFACE_LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
      if(library MATCHES "^mg_")
        list(APPEND open ${library})
      elseif(library)
        list(APPEND others ${library})
      endif()
    endforeach()
  endwhile()

  list(SORT layers)
  list(REMOVE_DUPLICATES others)
  # Only headers of it are used.
  list(REMOVE_ITEM others nlohmann_json::nlohmann_json)
  set(objects "")
  foreach(layer IN LISTS layers)
    get_target_property(type ${layer} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${layer}>)
    endif()
  endforeach()
  add_library(${target} EXCLUDE_FROM_ALL ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_EXPORT} EXPORT_NAME ${arg_EXPORT}
                        LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} PRIVATE ${others})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

mg_bundle(meganeura_library EXPORT meganeura ROOTS train models gradcheck io)
mg_bundle(meganeura_runtime EXPORT meganeura_runtime ROOTS runtime)
set(installed meganeura_library meganeura_runtime)

option(MEGANEURA_INSTALL "Build and install the libraries and the CMake package" ON)
if(MEGANEURA_INSTALL)
  set_target_properties(${installed} PROPERTIES EXCLUDE_FROM_ALL OFF)
  install(TARGETS ${installed} EXPORT meganeura)
  install(EXPORT meganeura NAMESPACE meganeura:: FILE meganeura-targets.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/meganeura)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/meganeura TYPE INCLUDE)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/meganeura-config.cmake.in
                                ${PROJECT_BINARY_DIR}/meganeura-config.cmake
                                INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/meganeura)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/meganeura-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/meganeura-config.cmake
                ${PROJECT_BINARY_DIR}/meganeura-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/meganeura)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  if(TARGET meganeura)
    install(TARGETS meganeura)
  endif()
endif()

if(MEGANEURA_BUILD_TESTS)
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_FOUND)
    foreach(check layers sizes)
      set(script ${PROJECT_SOURCE_DIR}/scripts/check_${check}.py)
      add_test(NAME repository.${check} COMMAND ${Python3_EXECUTABLE} ${script})
      add_test(NAME repository.${check}_self_test
               COMMAND ${Python3_EXECUTABLE} ${script} --self-test)
      set_tests_properties(repository.${check} repository.${check}_self_test
                           PROPERTIES LABELS repository ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
    endforeach()
    # What the documentation shows of the program is what the program prints.
    set(script ${PROJECT_SOURCE_DIR}/scripts/update_docs.py)
    add_test(NAME docs.self_test COMMAND ${Python3_EXECUTABLE} ${script} --self-test)
    set(docs_tests docs.self_test)
    if(TARGET meganeura)
      add_test(NAME docs.current COMMAND ${Python3_EXECUTABLE} ${script} --check
                                         --program $<TARGET_FILE:meganeura>)
      list(APPEND docs_tests docs.current)
    endif()
    set_tests_properties(${docs_tests} PROPERTIES LABELS docs ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endif()
  if(MEGANEURA_INSTALL)
    add_test(NAME install.consumer
             COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR}
                     -D SOURCE=${PROJECT_SOURCE_DIR}/tests/consumer
                     -D WORK=${PROJECT_BINARY_DIR}/consumer -D GENERATOR=${CMAKE_GENERATOR}
                     -D COMPILER=${CMAKE_CXX_COMPILER} "-D FLAGS=${CMAKE_CXX_FLAGS}"
                     -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
    set_tests_properties(install.consumer PROPERTIES LABELS install)
  endif()
endif()

# The reference and the candidate checker serve this layer's tests; they also validate the SPIR-V
# of every candidate.
if(test_target)
  target_sources(${test_target} PRIVATE ${root}/testing/spec_reference.cc
                                        ${root}/testing/spec_check.cc
                                        ${root}/testing/random_spec.cc)
  target_link_libraries(${test_target} PRIVATE mg_emit_spirv mg_spirv_validate)
endif()

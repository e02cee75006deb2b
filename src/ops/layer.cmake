# Values of ops are tested through the reference and through differentiation, which are built on
# this layer.
if(test_target)
  target_link_libraries(${test_target} PRIVATE mg_ops_evaluate mg_autodiff)
endif()

target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})

# A folder under src/ is a layer: one object library, built from an explicit list of sources.
#
#   sluice_add_layer(schedule SOURCES schedule.cc verify.cc DEPENDS base [LIBRARIES hwy::hwy]
#                  [PRECOMPILED torch])
#
# makes sluice_schedule. DEPENDS names lower layers, which must have been added before. tools/check-layers
# checks that #includes keep to the order. LIBRARIES are other libraries that the layer links. Programs
# that use the installed archive link them too, so cmake/sluice-config.cmake.in finds them.

function(sluice_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;DEPENDS;LIBRARIES;PRECOMPILED")
  if(layer_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sluice_add_layer(${name}): unknown argument ${layer_UNPARSED_ARGUMENTS}")
  endif()
  add_library(sluice_${name} OBJECT ${layer_SOURCES})
  target_link_libraries(sluice_${name} PRIVATE sluice_build ${layer_LIBRARIES})
  sluice_precompile(sluice_${name} ${layer_PRECOMPILED})
  foreach(lower IN LISTS layer_DEPENDS)
    if(NOT TARGET sluice_${lower})
      message(FATAL_ERROR "layer ${name} depends on ${lower}, which is not below it")
    endif()
    target_link_libraries(sluice_${name} PUBLIC sluice_${lower})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SLUICE_LAYERS sluice_${name})
  set_property(GLOBAL APPEND PROPERTY SLUICE_EVERY_LAYER sluice_${name})
  set_property(GLOBAL APPEND PROPERTY SLUICE_EVERY_LIBRARY ${layer_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY SLUICE_LIBRARIES ${layer_LIBRARIES})
endfunction()

# A library has the objects of all layers that were added since the previous library. It is an archive, and
# a shared library made of the same objects.
#
#   sluice_add_library(torch OUTPUT sluice_torch [DEPENDS core] [LIBRARIES ${TORCH_LIBRARIES}] [ARCHIVE_ONLY])
#
# makes two targets. The command, the tests and the benchmarks use internals, so they link
# sluice_torch_static. sluice_torch_shared exports only names that are marked SLUICE_API. Users link
# sluice::torch, the form that BUILD_SHARED_LIBS selects. DEPENDS names our libraries that were added before.
function(sluice_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "ARCHIVE_ONLY" "OUTPUT" "DEPENDS;LIBRARIES")
  get_property(layers GLOBAL PROPERTY SLUICE_LAYERS)
  get_property(libraries GLOBAL PROPERTY SLUICE_LIBRARIES)
  set_property(GLOBAL PROPERTY SLUICE_LAYERS "")
  set_property(GLOBAL PROPERTY SLUICE_LIBRARIES "")
  set(forms static)
  if(NOT library_ARCHIVE_ONLY)
    list(APPEND forms shared)
  endif()
  foreach(form IN LISTS forms)
    set(target sluice_${name}_${form})
    string(TOUPPER ${form} FORM)
    add_library(${target} ${FORM})
    foreach(layer IN LISTS layers)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer}>)
    endforeach()
    target_link_libraries(${target} PUBLIC ${library_LIBRARIES} PRIVATE ${libraries})
    foreach(lower IN LISTS library_DEPENDS)
      target_link_libraries(${target} PUBLIC sluice_${lower}_${form})
    endforeach()
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_include_directories(
      ${target} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                          "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${library_OUTPUT}
                                               EXPORT_NAME ${name})
  endforeach()
  if(NOT library_ARCHIVE_ONLY)
    set_target_properties(sluice_${name}_shared PROPERTIES VERSION ${PROJECT_VERSION}
                                                           SOVERSION ${sluice_abi})
    if(NOT SLUICE_SANITIZE)
      target_link_options(sluice_${name}_shared PRIVATE -Wl,-z,defs) # an unmarked name fails here
    endif()
    if(NOT BUILD_SHARED_LIBS)
      set_target_properties(sluice_${name}_shared PROPERTIES EXCLUDE_FROM_ALL TRUE)
    endif()
  endif()
endfunction()

# The form of library that BUILD_SHARED_LIBS selects: static or shared.
if(BUILD_SHARED_LIBS)
  set(sluice_form shared)
else()
  set(sluice_form static)
endif()

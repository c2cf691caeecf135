# SPDX-License-Identifier: MIT
#
# find_package(rmm) reads this file if it is told of this folder, and not otherwise, so that an RMM that is installed keeps its
# name: set rmm_DIR to the folder, or
#
#     find_package(hipmm REQUIRED)
#     find_package(rmm REQUIRED PATHS "${hipmm_RMM_DIR}" NO_DEFAULT_PATH)
#
# It defines rmm::rmm, hipmm with the headers of RMM 23.12; with find_package(rmm 26...) those of RMM 26. Thrust, spdlog and
# CCCL are the project's own, if it uses them.
include(CMakeFindDependencyMacro)
get_filename_component(rmm_hipmm_folder "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
find_dependency(hipmm CONFIG PATHS "${rmm_hipmm_folder}" NO_DEFAULT_PATH)
unset(rmm_hipmm_folder)

if(NOT TARGET rmm::rmm)
  get_target_property(rmm_header_folder hipmm::headers INTERFACE_INCLUDE_DIRECTORIES)
  add_library(rmm::rmm INTERFACE IMPORTED)
  set_target_properties(rmm::rmm PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${rmm_header_folder}/hipmm/compat"
    INTERFACE_LINK_LIBRARIES hipmm::cpp)
  if(rmm_FIND_VERSION VERSION_GREATER_EQUAL "26")
    set_target_properties(rmm::rmm PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${rmm_header_folder}/hipmm/compat/rmm26"
      INTERFACE_COMPILE_DEFINITIONS HIPMM_COMPAT_RMM=26)
  endif()
  unset(rmm_header_folder)
endif()

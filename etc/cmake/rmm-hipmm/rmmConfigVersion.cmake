# SPDX-License-Identifier: MIT
#
# find_package(rmm) passes over this folder, unless rmm_ROOT names a folder that it lies in: elsewhere "rmm" is RMM.
include("${CMAKE_CURRENT_LIST_DIR}/../hipmm/rmm/rmmConfigVersion.cmake")
set(PACKAGE_VERSION_UNSUITABLE TRUE)
set(rmm_hipmm_roots $ENV{rmm_ROOT})
string(REPLACE ":" ";" rmm_hipmm_roots "${rmm_hipmm_roots}")
foreach(rmm_hipmm_root IN LISTS rmm_ROOT rmm_hipmm_roots)
  get_filename_component(rmm_hipmm_root "${rmm_hipmm_root}" REALPATH)
  get_filename_component(rmm_hipmm_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  string(FIND "${rmm_hipmm_here}/" "${rmm_hipmm_root}/" rmm_hipmm_at)
  if(rmm_hipmm_at EQUAL 0)
    set(PACKAGE_VERSION_UNSUITABLE FALSE)
  endif()
endforeach()

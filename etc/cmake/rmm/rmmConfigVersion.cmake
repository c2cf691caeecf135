# SPDX-License-Identifier: MIT
#
# find_package(rmm VERSION): the headers are those of 23.12, which serve programs of earlier releases too, and for a version
# from 26 on those of 26.10. Those of 24 and 25 are neither.
set(PACKAGE_VERSION 23.12.0)
if(PACKAGE_FIND_VERSION VERSION_GREATER_EQUAL "26")
  set(PACKAGE_VERSION 26.10.0)
endif()
string(REGEX REPLACE "[.]0$" ".999" rmm_hipmm_newest "${PACKAGE_VERSION}")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER rmm_hipmm_newest)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(rmm_hipmm_newest)

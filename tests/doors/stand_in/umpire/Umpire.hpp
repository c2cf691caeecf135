// SPDX-License-Identifier: MIT
// Umpire.hpp: all of the stand-in is in one file.
#include "strategy/AllocationStrategy.hpp"

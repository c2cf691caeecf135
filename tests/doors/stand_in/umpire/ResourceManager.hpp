// SPDX-License-Identifier: MIT
// ResourceManager.hpp: all of the stand-in is in one file.
#include "strategy/AllocationStrategy.hpp"

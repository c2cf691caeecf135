#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pool_hash.sh: a hash of the pool's sources. A measured table names it, so that tests/check-docs.sh can tell a table of
# an older pool.
cd "$(dirname "$0")/../../.." || exit
find plugins/heap plugins/pool plugins/arena -name '*.[ch]' | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12

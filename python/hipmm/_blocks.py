# SPDX-License-Identifier: MIT
"""Which resources of a stack have the blocks that a program sees."""

from __future__ import annotations

import hipmm

Block = tuple[int, int, str, int, bool]  # of Resource.blocks()


def block_holders(resource: hipmm.Resource) -> dict[hipmm.Resource, list[Block]]:
    """The topmost resources at or below `resource` that divide memory, or are sources, each with its blocks."""
    try:
        blocks = resource.blocks()
    except hipmm.NotSupportedError:
        blocks = []
    upstreams = resource.upstreams
    if not upstreams or any(state != "live" for _, _, state, _, _ in blocks):
        return {resource: blocks}
    below: dict[hipmm.Resource, list[Block]] = {}
    for upstream in upstreams:
        below.update(block_holders(upstream))
    return below if any(below.values()) else {resource: blocks}

# SPDX-License-Identifier: MIT
"""Which resources of a stack have the blocks that a program sees."""

from __future__ import annotations

import hipmm

Block = tuple[int, int, str, int, bool]  # of Resource.blocks()


def block_holders(resource: hipmm.Resource) -> list[tuple[hipmm.Resource, list[Block]]]:
    """The topmost resources at or below `resource` that divide memory, or are sources, with their blocks."""
    try:
        blocks = resource.blocks()
    except hipmm.NotSupportedError:
        blocks = []
    upstreams = resource.upstreams
    if not upstreams or any(state != "live" for _, _, state, _, _ in blocks):
        return [(resource, blocks)]
    below = [holder for upstream in upstreams for holder in block_holders(upstream)]
    return below if any(blocks for _, blocks in below) else [(resource, blocks)]

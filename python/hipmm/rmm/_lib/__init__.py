# SPDX-License-Identifier: MIT
"""The modules of hipMM 23.12: the same objects under their old names."""

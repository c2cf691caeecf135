# SPDX-License-Identifier: MIT
"""The release of RMM whose API this is. hipmm.__version__ is hipmm's own."""

__version__ = "26.08.00"
__git_commit__ = ""

__all__ = ["__git_commit__", "__version__"]

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch on hipmm when something is wrong with the configuration: asks for a tensor and prints what is raised, as one
line of JSON. What hipmm says of it must be a line on standard error, or in the error itself."""

import json
import sys

import hipmm.torch
import torch


def main():
    try:
        hipmm.torch.use(pluggable=True)
        torch.ones(10, device="cuda")
    except Exception as error:
        print(json.dumps({"raised": type(error).__name__, "said": str(error).splitlines()[0] if str(error) else ""}))
        return 0
    print(json.dumps({"raised": None}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

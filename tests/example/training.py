# SPDX-License-Identifier: MIT
"""The allocations of a training, without its arithmetic: weights that stay, and in each step the activations of a batch of
another length, which the backward pass frees. It calls HIP, and knows nothing of hipmm:

    hipmm run --report -- python3 training.py
"""

import ctypes
import random

hip = ctypes.CDLL(None)  # `hipmm run` puts HIP's functions into the process, with any runtime
LAYERS, WIDTH = 12, 256


def allocate(nbytes):
    ptr = ctypes.c_void_p()
    if hip.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(nbytes)):
        raise SystemExit(f"no {nbytes} bytes of device memory")
    return ptr


random.seed(1)
weights = [allocate(12 * WIDTH * WIDTH * 4) for _ in range(LAYERS)]
for _ in range(100):
    batch = random.randint(64, 2048) * WIDTH * 4
    activations = [allocate(times * batch) for _ in range(LAYERS) for times in (1, 3, 1, 4)]
    while activations:
        gradient = allocate(batch)
        hip.hipFree(activations.pop())
        hip.hipFree(gradient)

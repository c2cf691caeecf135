#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small network with JAX, which calls NVIDIA's driver, and prints one line of JSON: the device's platform and the
losses, which must be the same with every allocator. XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async makes JAX allocate from the
driver's pools; its other allocators map memory themselves."""

import json
import os

# Otherwise XLA times several kernels and takes the fastest, which sum in different orders.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"

import jax
import jax.numpy as jnp

STEPS, ROWS, WIDTH = 20, 4096, 512


def loss(weights, inputs, targets):
    return jnp.mean((jnp.tanh(inputs @ weights[0]) @ weights[1] - targets) ** 2)


def main():
    keys = jax.random.split(jax.random.PRNGKey(19), 4)
    weights = [jax.random.normal(keys[0], (WIDTH, WIDTH)) / 32, jax.random.normal(keys[1], (WIDTH, 1)) / 32]
    inputs = jax.random.normal(keys[2], (ROWS, WIDTH))
    targets = jax.random.normal(keys[3], (ROWS, 1))
    step = jax.jit(jax.value_and_grad(loss))
    losses = []
    for _ in range(STEPS):
        value, slopes = step(weights, inputs, targets)
        weights = [weight - 0.1 * slope for weight, slope in zip(weights, slopes)]
        losses.append(float(value))
    print(json.dumps({"platform": jax.devices()[0].platform, "losses": losses}))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""What a Buffer costs over the pair of C calls, in nanoseconds: python cost.py. RMM's DeviceBuffer and CuPy's allocator
are measured beside it where they are installed."""

import subprocess
import sys
import tempfile
import timeit

import hipmm

PAIRS = r"""
#include <hipmm/buffer.h>
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(void)
{
  enum { N = 300000 };
  double best[2] = {1e9, 1e9};
  if (hipmm_init_from_string("{\"stack\": [\"pool\", \"device\"]}")) return 1;
  for (int round = 0; round < 7; round++) {
    void *ptr; struct hipmm_buffer *buffer;
    double start = now();
    for (int i = 0; i < N; i++) if (hipmm_allocate(NULL, 4096, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 4096, NULL)) return 1;
    double middle = now();
    for (int i = 0; i < N; i++) if (hipmm_buffer_create(NULL, 4096, NULL, &buffer) || hipmm_buffer_destroy(buffer)) return 1;
    double end = now();
    if (middle - start < best[0] * N) best[0] = (middle - start) / N;
    if (end - middle < best[1] * N) best[1] = (end - middle) / N;
  }
  printf("%.1f %.1f\n", best[0], best[1]);
  return 0;
}
"""


def best(statement, **names):
    return min(timeit.repeat(statement, globals=names, number=300000, repeat=7)) / 0.3 * 1000


def pairs(library, include):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/pairs.c", "w") as file:
            file.write(PAIRS)
        rpath = library.rsplit("/", 1)[0]
        subprocess.run(
            ["cc", "-O2", f"-I{include}", f"{folder}/pairs.c", library, f"-Wl,-rpath,{rpath}", "-o", f"{folder}/pairs"],
            check=True,
        )
        return subprocess.run([f"{folder}/pairs"], check=True, capture_output=True, text=True).stdout.split()


if __name__ == "__main__":
    hipmm.init({"stack": ["pool", "device"]})
    include = __file__.rsplit("/", 3)[0] + "/include"
    allocate, buffer = pairs(hipmm.library(), include)
    print(f"hipmm_allocate, hipmm_deallocate            {allocate:>8}")
    print(f"hipmm_buffer_create, hipmm_buffer_destroy   {buffer:>8}")
    print(f"hipmm.Buffer(4096)                          {best('B(4096)', B=hipmm.Buffer):8.1f}")
    try:
        import rmm

        print(f"rmm.DeviceBuffer(size=4096)                 {best('B(size=4096)', B=rmm.DeviceBuffer):8.1f}")
    except ImportError:
        pass
    try:
        import cupy

        print(f"cupy.cuda.alloc(4096)                       {best('f(4096)', f=cupy.cuda.alloc):8.1f}")
    except ImportError:
        pass
    sys.exit(0)

# SPDX-License-Identifier: MIT
"""Writes a log of blocks of a few sizes and of random ones up to 3 GiB, on two streams, which are all freed in the end.

    python3 sequence.py SEED
"""
import random, sys
random.seed(int(sys.argv[1]))
sizes = (1000, 4096, 1 << 20, 37 << 20, 400 << 20, 1100 << 20)
live, address, rows = {}, 1 << 40, []
for i in range(1500):
    stream = random.choice((1, 2))
    if live and random.random() < 0.48:
        pointer = random.choice(list(live)) if random.random() < 0.7 else list(live)[-1]
        rows.append(("free", pointer, live.pop(pointer), stream))
    else:
        bytes = random.choice(sizes + (random.randrange(1, 3 << 30),))
        address += 1 << 33
        live[address] = bytes
        rows.append(("allocate", address, bytes, stream))
rows += [("free", pointer, bytes, 1) for pointer, bytes in live.items()]
print("Thread,Time,Action,Pointer,Size,Stream")
for i, (action, pointer, bytes, stream) in enumerate(rows):
    print(f"1,0:0:{i // 1000 % 60}.{i % 1000:03}000,{action},{pointer:#x},{bytes},{stream:#x}")

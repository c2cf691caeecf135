/* SPDX-License-Identifier: MIT */
/* probes.c: the table of probes. */
#include "probes.h"

/* Reports: OWNER/REPOSITORY#NUMBER on github.com. */
const struct probe probes[] = {
    {"event-order", "a stream that waits for an event sees what was done before it", probe_event_order, NULL,
     "Without this no allocator can share memory between streams: update the driver."},
    {"event-query", "an event is complete when its work is, and not before", probe_event_query,
     "ROCm/rocm-systems#10529",
     "hipmm asks events when memory is short. Give each stream a pool of its own, or update the driver."},
    {"free-memory", "the free memory that the device reports follows allocations and frees", probe_free_bytes_told,
     "ROCm/TheRock#8092, ggml-org/llama.cpp#24906",
     "Sizes in percent are of this figure: write sizes in bytes in hipmm.json."},
    {"pool-order", "the driver's pool reuses memory on another stream only after the work that uses it",
     probe_pool_order, "ROCm/rocm-systems#10943, ROCm/rocm-systems#11693",
     "Types `async…` rely on it: use `pool` over `device`, which orders reuse itself."},
    {"pool-data", "blocks of the driver's pool keep their data while others come and go", probe_pool_data,
     "ROCm/rocm-systems#10943, OpenNMT/CTranslate2#2090",
     "Types `async…` rely on it: use `pool` over `device`; or set async.release_threshold to \"unlimited\"."},
    {"pool-threshold", "the driver's pool keeps and returns memory as its release threshold says", probe_pool_threshold,
     "ROCm/rocm-systems#11690, ROCm/clr#287",
     "async.release_threshold is then without effect: use `pool` over `device`, which keeps what it says."},
    {"pool-failure", "an allocation of the driver's pool that fails holds nothing", probe_pool_failure,
     "ROCm/rocm-systems#11642, ROCm/TheRock#7988",
     "Set `limiting` above `async`, so that no allocation reaches the driver's end of memory."},
    {"mapping-data", "mapped memory holds what is written at once, and keeps it where it is mapped next",
     probe_mapping_data, "ROCm/rocm-systems#11693",
     "\"growth\": \"auto\" of `pool` then maps nothing where it knows of it; write \"growth\": \"segments\"."},
    {"mapping-alias", "memory that is mapped at two addresses is the same memory", probe_mapping_alias, NULL,
     "Write \"growth\": \"segments\" for `pool`."},
    {"mapping-access", "memory of every size can be mapped piece by piece and unmapped at once", probe_mapping_access,
     "ROCm/rocm-systems#2516, ROCm/rocm-systems#6977, ROCm/ROCR-Runtime#285, ROCm/ROCR-Runtime#287",
     "Write \"growth\": \"segments\" for `pool`."},
    {"mapping-release", "memory that is unmapped and released is free, though its addresses stay reserved",
     probe_mapping_release, "ROCm/hip#3781, ROCm/legacy-rocm-build#6021, vllm-project/vllm#37533",
     "A pool cannot give memory to other programs while it lives: write \"growth\": \"segments\", or update the "
     "driver."},
    {"mapping-files", "memory that is to be mapped takes no file descriptor of the process", probe_mapping_files,
     "ROCm/rocm-systems#10604, ROCm/legacy-rocm-build#6661",
     "A pool that maps memory makes larger chunks, so that it has at most half as many as the process may open files. "
     "Raise the limit for smaller ones: ulimit -n."},
    {"mapping-peers", "a device keeps its access to its mapped memory when another gets access", probe_mapping_peers,
     "openxla/xla#46576",
     "hipmm gives the memory's own device access last. A program that maps memory itself has to do so too."},
    {"mapping-wait", "mapping does not wait for work of other streams", probe_mapping_wait, NULL,
     "Correct, but slow while a pool grows: give `pool` an initial_size, or write \"growth\": \"segments\"."},
    {0}};

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# suites.sh: other projects' own tests on this machine's GPU, alone and under `hipmm run`, from folders that the environment
# names. In the folder that bundle.sh made:
#
#     CUPY=/path/cupy JAX=/path/jax sh tests/lab/gpu/suites.sh RESULTS SUITE...
#
# SUITE-alone or SUITE-run runs one way only. The results are RESULTS/SUITE-native.txt and RESULTS/SUITE-run.txt, which
# tests/lab/ledger/ledger.py reads; a second call goes on where the first was cut off.
#
# cupy          CUPY, a checkout of CuPy: memory, streams, graphs, devices, pinned memory
# jax           JAX, a checkout of JAX: memory and arrays, with XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async
# jax-default   the same cases with JAX's default allocator
# numba         NUMBA, a folder with numba-cuda's testing/conftest.py, its tests/cudadrv, and the package filecheck
# cuda trees mp multi   TORCH, PyTorch's folder test: test_cuda.py, inductor/test_cudagraph_trees.py, test_multiprocessing.py,
#               test_cuda_multigpu.py
# samples       SAMPLES, a folder of built programs, such as CUDA's samples
# residents     programs of this folder (residents.py), which need no checkout
#
# From the environment: BUNDLE, the folder, if it is another one; SECONDS_EACH, for each way of a suite (70); CASE_SECONDS, for
# each case (60); PYTHON; HIPMM, the command (default: the bundle's); HIPMM_CONFIG, the graph.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "${BUNDLE-$tests/../../..}" && pwd)
python=${PYTHON-python3}
hipmm=${HIPMM-$root/hipmm}
[ $# -ge 2 ] || { sed -n '4,27s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
results=$(cd "$1" && pwd)
shift
chmod +x "$hipmm" 2>/dev/null || :
export PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1

# folder VARIABLE VALUE INSIDE: the folder that holds INSIDE
folder() {
  [ -e "${2:-/nonexistent}/$3" ] || { echo "suites.sh: $1 must name the folder that holds $3; it is \"$2\"" >&2; exit 2; }
  (cd "$2" && pwd)
}

# under COMMAND...: as the bundle's `hipmm run` has it
under() {
  env HIPMM_CONFIG="${HIPMM_CONFIG-$root/etc/hipmm.json}" HIPMM_PLUGIN_PATH="${HIPMM_PLUGIN_PATH-$root/plugins}" \
    LD_LIBRARY_PATH="$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PYTHONPATH="$root/python${PYTHONPATH:+:$PYTHONPATH}" \
    "$hipmm" run -- "$@"
}

# each RUNNER FOLDER FILE...: the suite $suite, in the ways $ways
each() {
  runner=$1 place=$2
  shift 2
  for way in $ways; do
    file=$results/$suite-$way.txt log=$results/$suite-$way.log
    [ "$way" = run ] && front=under || front="env"
    began=$(date +%s) status=0
    (cd "$results" && $front "$python" -B "$tests/$runner" "$place" "$file" --seconds "${CASE_SECONDS-60}" \
      --until "${SECONDS_EACH-70}" "$@") >>"$log" 2>&1 || status=$?
    echo "$suite $way: status $status after $(($(date +%s) - began)) s, $(grep -c '^passed ' "$file") passed," \
      "$(grep -c '^failed ' "$file") failed, $(grep -c '^skipped ' "$file") skipped"
  done
  native=$results/$suite-native.txt under=$results/$suite-run.txt
  [ ! -e "$native" ] || [ ! -e "$under" ] || "$python" "$tests/$runner" --compare "$native" "$under" || :
}

# facts DISTRIBUTION...: the versions, and the device, which the ledger's page names
facts() {
  "$python" - "$@" >"$results/$suite-facts.txt" 2>/dev/null <<'END' || :
import importlib.metadata, subprocess, sys
for name in sys.argv[1:]:
    found = [d for d in importlib.metadata.distributions() if (d.metadata["Name"] or "") == name or
             name[-1] == "-" and (d.metadata["Name"] or "").startswith(name)]
    if found:
        print(found[0].metadata["Name"], found[0].version)
        break
query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
print(subprocess.run(query, capture_output=True, text=True).stdout.splitlines()[0])
END
}

for word in "$@"; do
  suite=${word%-alone} ways=native
  [ "$suite" != "$word" ] || { suite=${word%-run} ways=run; }
  [ "$suite" != "$word" ] || ways='native run'
  case $suite in
  cupy)
    facts cupy-
    inside=tests/cupy_tests/cuda_tests
    each pytest_cases.py "$(folder CUPY "${CUPY-}" $inside)" $inside/test_memory.py $inside/test_memory_hook.py \
      $inside/memory_hooks_tests $inside/test_pinned_memory.py $inside/test_stream.py $inside/test_graph.py $inside/test_device.py ;;
  jax | jax-default)
    facts jaxlib
    [ "$suite" = jax-default ] || export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async
    place=$(folder JAX "${JAX-}" tests/memories_test.py)
    files= # those that this release has
    for name in memories buffer_callback array array_interoperability device heap_profiler clear_backends transfer_guard; do
      [ ! -e "$place/tests/${name}_test.py" ] || files="$files tests/${name}_test.py"
    done
    # shellcheck disable=SC2086 # several words
    each pytest_cases.py "$place" $files
    unset XLA_PYTHON_CLIENT_ALLOCATOR ;;
  numba)
    facts numba-cuda
    each pytest_cases.py "$(folder NUMBA "${NUMBA-}" cudadrv)" cudadrv ;;
  cuda | trees | mp | multi)
    facts torch
    place=$(folder TORCH "${TORCH-}" test_cuda.py)
    case $suite in
    cuda) each torch_cases.py "$place/test_cuda.py" ;;
    trees) each torch_cases.py "$place/inductor/test_cudagraph_trees.py" ;;
    mp) each torch_cases.py "$place/test_multiprocessing.py" --cuda ;;
    multi) each torch_cases.py "$place/test_cuda_multigpu.py" ;;
    esac ;;
  samples)
    facts
    each program_cases.py "$(folder SAMPLES "${SAMPLES-}" .)" ;;
  residents)
    facts torch
    (
      RESIDENTS_HIPMM=${RESIDENTS_HIPMM-$root/lib/libhipmm.so.0} HIPMM_PLUGIN_PATH=${HIPMM_PLUGIN_PATH-$root/plugins}
      LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # one program brings that library along
      export RESIDENTS_HIPMM HIPMM_PLUGIN_PATH LD_LIBRARY_PATH
      each residents.py "$tests"
    ) ;;
  *) echo "suites.sh: no suite $suite" >&2; exit 2 ;;
  esac
done

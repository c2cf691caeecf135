// SPDX-License-Identifier: MIT
// A program of 2019 in the terms of RMM 0.12: modes, streams, the log, errors. Compiled with …/hipmm/compat as an include
// folder, as C++ only, which RMM 0.12 was. Prints nothing if all is right.
#include <rmm/rmm.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                                                    \
  do {                                                                                                      \
    if (!(condition)) {                                                                                     \
      std::fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, hipmm_last_error_message()); \
      std::exit(1);                                                                                         \
    }                                                                                                       \
  } while (0)

static void uninitialised()
{
  char *memory = reinterpret_cast<char *>(1);
  std::size_t free_bytes, total_bytes;
  CHECK(!rmmIsInitialized(nullptr));
  CHECK(RMM_ALLOC(&memory, 1024, nullptr) == RMM_ERROR_NOT_INITIALIZED && !memory);
  CHECK(RMM_FREE(memory, nullptr) == RMM_ERROR_NOT_INITIALIZED);
  CHECK(rmmGetInfo(&free_bytes, &total_bytes, nullptr) == RMM_ERROR_NOT_INITIALIZED);
  CHECK(rmmFinalize() == RMM_SUCCESS);
  CHECK(!std::strcmp(rmmGetErrorString(RMM_ERROR_IO), "RMM_ERROR_IO"));
  CHECK(!std::strcmp(rmmGetErrorString(N_RMM_ERROR), "Internal error. Unknown error code."));
}

static rmmError_t checked()
{
  char *memory;
  RMM_CHECK(RMM_ALLOC(&memory, std::size_t{1} << 50, nullptr));
  return RMM_SUCCESS;
}

static void memory(int mode, std::size_t initial_bytes)
{
  rmmOptions_t options, current;
  options.allocation_mode = static_cast<rmmAllocationMode_t>(mode);
  options.initial_pool_size = initial_bytes;
  options.devices = {0, 1};
  CHECK(rmmInitialize(&options) == RMM_SUCCESS);
  rmmOptions_t ignored; /* a second initialisation does nothing */
  CHECK(rmmInitialize(&ignored) == RMM_SUCCESS);
  CHECK(rmmIsInitialized(&current) && current.allocation_mode == options.allocation_mode);
  CHECK(current.initial_pool_size == initial_bytes && current.devices == options.devices);

  hipmm_resource *top = nullptr;
  CHECK(hipmm_resource_get_current(&top) == HIPMM_OK);
  const std::string type = hipmm_resource_type(top);
  CHECK(type == (mode & PoolAllocation ? "pool" : mode & CudaManagedMemory ? "managed" : "device"));
  std::int64_t reserved = -1;
  if (mode & PoolAllocation) CHECK(hipmm_resource_query(top, "reserved_bytes", &reserved) == HIPMM_OK);
  if (initial_bytes) CHECK(reserved == static_cast<std::int64_t>(initial_bytes));
  hipmm_resource_release(top);

  char *one = nullptr, *other = nullptr;
  std::ptrdiff_t offset = -1;
  std::size_t free_before, free_after, total;
  CHECK(rmmGetInfo(&free_before, &total, nullptr) == RMM_SUCCESS && free_before <= total);
  CHECK(RMM_ALLOC(&one, 1 << 20, nullptr) == RMM_SUCCESS && RMM_ALLOC(&other, 1 << 20, nullptr) == RMM_SUCCESS);
  const std::size_t taken = mode & CudaManagedMemory ? 0 : 2 << 20; /* managed memory is not only the device's */
  CHECK(rmmGetInfo(&free_after, &total, nullptr) == RMM_SUCCESS && free_after + taken <= free_before);
  CHECK(rmmGetAllocationOffset(&offset, one, nullptr) == RMM_SUCCESS && offset >= 0);
  CHECK(rmmGetAllocationOffset(&offset, &offset, nullptr) == RMM_ERROR_INVALID_ARGUMENT);
  CHECK(RMM_REALLOC(&one, 1 << 10, nullptr) == RMM_SUCCESS && one);
  CHECK(RMM_FREE(one, nullptr) == RMM_SUCCESS && RMM_FREE(other, nullptr) == RMM_SUCCESS);
  CHECK(RMM_FREE(&offset, nullptr) == RMM_ERROR_INVALID_ARGUMENT);

  CHECK(RMM_ALLOC(&one, 0, nullptr) == RMM_SUCCESS && RMM_FREE(nullptr, nullptr) == RMM_SUCCESS);
  char **none = nullptr;
  CHECK(RMM_ALLOC(none, 0, nullptr) == RMM_SUCCESS && RMM_ALLOC(none, 4, nullptr) == RMM_ERROR_INVALID_ARGUMENT);
  CHECK(checked() == RMM_ERROR_OUT_OF_MEMORY);
  CHECK(rmmFinalize() == RMM_SUCCESS && !rmmIsInitialized(nullptr));
}

static void wrong_options()
{
  rmmOptions_t options;
  options.devices = {0, 7};
  CHECK(rmmInitialize(&options) == RMM_ERROR_CUDA_ERROR && !rmmIsInitialized(nullptr));
  options.devices = {};
  options.allocation_mode = PoolAllocation;
  options.initial_pool_size = std::size_t{1} << 50;
  CHECK(rmmInitialize(&options) == RMM_ERROR_OUT_OF_MEMORY && !hipmm_is_initialized());
  const hipmm_rmm_options no_mode = {4, 0, 0, nullptr, 0}, no_devices = {0, 0, 0, nullptr, 2};
  CHECK(hipmm_rmm_initialize(&no_mode) == RMM_ERROR_INVALID_ARGUMENT);
  CHECK(hipmm_rmm_initialize(&no_devices) == RMM_ERROR_INVALID_ARGUMENT);
}

/* A new log is for its user alone. In a folder that every user can write, a link or a pipe may be another user's; nobody
 * reads the pipe. */
static void written_safely(const std::string &path)
{
  const std::string folder = path + ".shared", link = folder + "/link", pipe = folder + "/pipe",
                    target = folder + "/target";
  struct stat status;
  CHECK(!stat(path.c_str(), &status) && (status.st_mode & 0777) == 0600);
  CHECK(!mkdir(folder.c_str(), 0700) && !chmod(folder.c_str(), 01777));
  CHECK(!symlink(target.c_str(), link.c_str()) && !mkfifo(pipe.c_str(), 0600));
  alarm(30);
  CHECK(rmmWriteLog(link.c_str()) == RMM_ERROR_IO && rmmWriteLog(pipe.c_str()) == RMM_ERROR_IO);
  alarm(0);
  CHECK(access(target.c_str(), F_OK));
  CHECK(!unlink(link.c_str()) && !unlink(pipe.c_str()) && !rmdir(folder.c_str()));
}

/* Threads allocate and free; the log has each event, and the file is what rmmGetLog() says. */
static void log(const char *path)
{
  rmmOptions_t options;
  options.allocation_mode = PoolAllocation;
  options.enable_logging = true;
  CHECK(rmmInitialize(&options) == RMM_SUCCESS);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([] {
      for (int n = 0; n < 50; n++) {
        char *memory = nullptr;
        CHECK(RMM_ALLOC(&memory, 100, nullptr) == RMM_SUCCESS && RMM_FREE(memory, nullptr) == RMM_SUCCESS);
      }
    });
  for (std::thread &thread : threads) thread.join();
  char *left = nullptr;
  CHECK(RMM_ALLOC(&left, 4096, nullptr) == RMM_SUCCESS && RMM_REALLOC(&left, 8192, nullptr) == RMM_SUCCESS);

  std::string text(rmmLogSize(), '\0');
  CHECK(rmmGetLog(&text[0], text.size()) == RMM_SUCCESS && rmmWriteLog(path) == RMM_SUCCESS);
  std::FILE *file = std::fopen(path, "r");
  std::string written(text.size() + 1, '\0');
  CHECK(file && std::fread(&written[0], 1, written.size(), file) == text.size());
  std::fclose(file);
  CHECK(written.substr(0, text.size()) == text);
  CHECK(rmmWriteLog("/nowhere/log.csv") == RMM_ERROR_IO);
  written_safely(path);
  char beginning[5] = "____";
  CHECK(rmmGetLog(beginning, 3) == RMM_SUCCESS && !std::strcmp(beginning, "Eve_"));
  CHECK(RMM_FREE(left, nullptr) == RMM_SUCCESS && rmmFinalize() == RMM_SUCCESS);
}

int main(int argc, char **argv)
{
  uninitialised();
  for (int mode = 0; mode < 4; mode++) memory(mode, mode & PoolAllocation ? 16U << 20U : 0);
  memory(PoolAllocation, 0);
  wrong_options();
  if (argc > 1) log(argv[1]);
  return 0;
}

/* SPDX-License-Identifier: MIT */
/* hip_error.c: the table. HIP's numbers are CUDA's where CUDA has the code. */
#include "hip_error.h"

#include <stddef.h>
#include <string.h>

static const struct hip_error hip_errors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "not initialized"},
    {4, "hipErrorDeinitialized", "being shut down"},
    {5, "hipErrorProfilerDisabled", "profiler disabled"},
    {6, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {7, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {8, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration"},
    {12, "hipErrorInvalidPitchValue", "invalid pitch"},
    {13, "hipErrorInvalidSymbol", "invalid symbol"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "hipErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {35, "hipErrorInsufficientDriver", "driver too old for this runtime"},
    {52, "hipErrorMissingConfiguration", "missing configuration"},
    {53, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no device"},
    {101, "hipErrorInvalidDevice", "invalid device"},
    {200, "hipErrorInvalidImage", "invalid code image"},
    {201, "hipErrorInvalidContext", "invalid context"},
    {202, "hipErrorContextAlreadyCurrent", "context already current"},
    {205, "hipErrorMapFailed", "mapping failed"},
    {206, "hipErrorUnmapFailed", "unmapping failed"},
    {207, "hipErrorArrayIsMapped", "array is mapped"},
    {208, "hipErrorAlreadyMapped", "already mapped"},
    {209, "hipErrorNoBinaryForGpu", "no code for this device"},
    {210, "hipErrorAlreadyAcquired", "already acquired"},
    {211, "hipErrorNotMapped", "not mapped"},
    {212, "hipErrorNotMappedAsArray", "not mapped as an array"},
    {213, "hipErrorNotMappedAsPointer", "not mapped as a pointer"},
    {214, "hipErrorECCNotCorrectable", "uncorrectable memory error"},
    {215, "hipErrorUnsupportedLimit", "unsupported limit"},
    {216, "hipErrorContextAlreadyInUse", "context already in use"},
    {217, "hipErrorPeerAccessUnsupported", "peer access unsupported"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {219, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {300, "hipErrorInvalidSource", "invalid source"},
    {301, "hipErrorFileNotFound", "file not found"},
    {302, "hipErrorSharedObjectSymbolNotFound", "symbol not found in shared object"},
    {303, "hipErrorSharedObjectInitFailed", "shared object failed to initialize"},
    {304, "hipErrorOperatingSystem", "operating system call failed"},
    {400, "hipErrorInvalidHandle", "invalid handle"},
    {401, "hipErrorIllegalState", "illegal state"},
    {500, "hipErrorNotFound", "not found"},
    {600, "hipErrorNotReady", "not ready"},
    {700, "hipErrorIllegalAddress", "illegal address"},
    {701, "hipErrorLaunchOutOfResources", "out of resources for a launch"},
    {702, "hipErrorLaunchTimeOut", "launch timed out"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access already enabled"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access not enabled"},
    {708, "hipErrorSetOnActiveProcess", "process is already active"},
    {709, "hipErrorContextIsDestroyed", "context is destroyed"},
    {710, "hipErrorAssert", "device assertion failed"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "host memory already registered"},
    {713, "hipErrorHostMemoryNotRegistered", "host memory not registered"},
    {719, "hipErrorLaunchFailure", "launch failed"},
    {720, "hipErrorCooperativeLaunchTooLarge", "cooperative launch too large"},
    {801, "hipErrorNotSupported", "not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "not permitted while a stream captures"},
    {901, "hipErrorStreamCaptureInvalidated", "stream capture invalidated"},
    {902, "hipErrorStreamCaptureMerge", "merge of two captures"},
    {903, "hipErrorStreamCaptureUnmatched", "capture was not begun on this stream"},
    {904, "hipErrorStreamCaptureUnjoined", "capture has an unjoined fork"},
    {905, "hipErrorStreamCaptureIsolation", "dependency crosses the capture"},
    {906, "hipErrorStreamCaptureImplicit", "implicit dependency on a capture"},
    {907, "hipErrorCapturedEvent", "event belongs to a capture"},
    {908, "hipErrorStreamCaptureWrongThread", "capture ended by another thread"},
    {910, "hipErrorGraphExecUpdateFailure", "graph update failed"},
    {999, "hipErrorUnknown", "unknown error"},
    {1052, "hipErrorRuntimeMemory", "runtime memory call failed"},
    {1053, "hipErrorRuntimeOther", "runtime call failed"},
    {1054, "hipErrorTbd", "error code to be defined"},
};

enum { N_ERRORS = sizeof hip_errors / sizeof *hip_errors };

const struct hip_error *hip_error_find(int code)
{
  for (size_t i = 0; i < N_ERRORS; i++)
    if (hip_errors[i].code == code) return &hip_errors[i];
  return NULL;
}

const struct hip_error *hip_error_find_name(const char *name)
{
  for (size_t i = 0; i < N_ERRORS; i++)
    if (!strcmp(hip_errors[i].name, name)) return &hip_errors[i];
  return NULL;
}

const char *hip_error_name(int code)
{
  const struct hip_error *error = hip_error_find(code);
  return error ? error->name : "hipErrorUnknown";
}

const char *hip_error_text(int code)
{
  const struct hip_error *error = hip_error_find(code);
  return error ? error->text : "unknown error";
}

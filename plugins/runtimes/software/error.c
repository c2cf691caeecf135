/* SPDX-License-Identifier: MIT */
/* error.c: names and meanings of HIP's error codes. Called by call.c, and by options.c, which reads a code by its name.
 * An unknown code has a name, too. */
#include "internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct error_row {
  hipError_t code;
  const char *name, *text;
};

static const struct error_row error_rows[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "not initialized"},
    {hipErrorDeinitialized, "hipErrorDeinitialized", "being shut down"},
    {hipErrorProfilerDisabled, "hipErrorProfilerDisabled", "profiler disabled"},
    {hipErrorProfilerNotInitialized, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {hipErrorProfilerAlreadyStarted, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {hipErrorProfilerAlreadyStopped, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {hipErrorInsufficientDriver, "hipErrorInsufficientDriver", "driver too old for this runtime"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration", "missing configuration"},
    {hipErrorPriorLaunchFailure, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no device"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "invalid code image"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid context"},
    {hipErrorContextAlreadyCurrent, "hipErrorContextAlreadyCurrent", "context already current"},
    {hipErrorMapFailed, "hipErrorMapFailed", "mapping failed"},
    {hipErrorUnmapFailed, "hipErrorUnmapFailed", "unmapping failed"},
    {hipErrorArrayIsMapped, "hipErrorArrayIsMapped", "array is mapped"},
    {hipErrorAlreadyMapped, "hipErrorAlreadyMapped", "already mapped"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no code for this device"},
    {hipErrorAlreadyAcquired, "hipErrorAlreadyAcquired", "already acquired"},
    {hipErrorNotMapped, "hipErrorNotMapped", "not mapped"},
    {hipErrorNotMappedAsArray, "hipErrorNotMappedAsArray", "not mapped as an array"},
    {hipErrorNotMappedAsPointer, "hipErrorNotMappedAsPointer", "not mapped as a pointer"},
    {hipErrorECCNotCorrectable, "hipErrorECCNotCorrectable", "uncorrectable memory error"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit", "unsupported limit"},
    {hipErrorContextAlreadyInUse, "hipErrorContextAlreadyInUse", "context already in use"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported", "peer access unsupported"},
    {hipErrorInvalidKernelFile, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {hipErrorInvalidGraphicsContext, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {hipErrorInvalidSource, "hipErrorInvalidSource", "invalid source"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorSharedObjectSymbolNotFound, "hipErrorSharedObjectSymbolNotFound", "symbol not found in shared object"},
    {hipErrorSharedObjectInitFailed, "hipErrorSharedObjectInitFailed", "shared object failed to initialize"},
    {hipErrorOperatingSystem, "hipErrorOperatingSystem", "operating system call failed"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "illegal state"},
    {hipErrorNotFound, "hipErrorNotFound", "not found"},
    {hipErrorNotReady, "hipErrorNotReady", "not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "illegal address"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "out of resources for a launch"},
    {hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "launch timed out"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled", "peer access already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access not enabled"},
    {hipErrorSetOnActiveProcess, "hipErrorSetOnActiveProcess", "process is already active"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorAssert, "hipErrorAssert", "device assertion failed"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered", "host memory already registered"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered", "host memory not registered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "launch failed"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge", "cooperative launch too large"},
    {hipErrorNotSupported, "hipErrorNotSupported", "not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported", "not permitted while a stream captures"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated", "stream capture invalidated"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "merge of two captures"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "capture was not begun on this stream"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "capture has an unjoined fork"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation", "dependency crosses the capture"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit", "implicit dependency on a capture"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "event belongs to a capture"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread", "capture ended by another thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure", "graph update failed"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
    {hipErrorRuntimeMemory, "hipErrorRuntimeMemory", "runtime memory call failed"},
    {hipErrorRuntimeOther, "hipErrorRuntimeOther", "runtime call failed"},
    {hipErrorTbd, "hipErrorTbd", "error code to be defined"},
};

static const struct error_row *error_find(hipError_t code)
{
  for (size_t i = 0; i < sizeof error_rows / sizeof *error_rows; i++)
    if (error_rows[i].code == code) return &error_rows[i];
  return NULL;
}

/* The names that HIP kept for codes which it renamed are not looked for: no function here returns them. */
static bool error_find_name(const char *name, hipError_t *error_out)
{
  for (size_t i = 0; i < sizeof error_rows / sizeof *error_rows; i++) {
    if (strcmp(error_rows[i].name, name) != 0) continue;
    *error_out = error_rows[i].code;
    return true;
  }
  return false;
}

bool software_error_parse(const char *text, hipError_t *error_out)
{
  if (*text < '0' || *text > '9') return error_find_name(text, error_out);
  char *end;
  errno = 0;
  unsigned long code = strtoul(text, &end, 10);
  if (errno || *end || code == 0 || code > 9999) return false;
  *error_out = (hipError_t)code;
  return true;
}

const char *software_error_name(hipError_t code)
{
  const struct error_row *row = error_find(code);
  return row ? row->name : "hipErrorUnknown";
}

const char *software_error_text(hipError_t code)
{
  const struct error_row *row = error_find(code);
  return row ? row->text : "unknown error";
}

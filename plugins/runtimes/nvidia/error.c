/* SPDX-License-Identifier: MIT */
/* error.c: HIP's error codes: the CUDA code of each, its name and its meaning, and the last error of the thread. Called
 * at the end of every HIP function that failed, and by applications. An unknown code has a name, too. */
#include "nvidia.h"

/* HIP has CUDA's numbers, but not all of its codes, and some codes of the CUDA runtime that the driver does not have. */
#define NO_CODE ((CUresult)-1)

struct error_row {
  hipError_t error;
  CUresult result; /* the driver's code; NO_CODE if only a runtime has it */
  const char *name, *text;
};

static const struct error_row error_rows[] = {
    {hipSuccess, CUDA_SUCCESS, "hipSuccess", "no error"},
    {hipErrorInvalidValue, CUDA_ERROR_INVALID_VALUE, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, CUDA_ERROR_NOT_INITIALIZED, "hipErrorNotInitialized", "not initialized"},
    {hipErrorDeinitialized, CUDA_ERROR_DEINITIALIZED, "hipErrorDeinitialized", "being shut down"},
    {hipErrorProfilerDisabled, CUDA_ERROR_PROFILER_DISABLED, "hipErrorProfilerDisabled", "profiler disabled"},
    {hipErrorProfilerNotInitialized, CUDA_ERROR_PROFILER_NOT_INITIALIZED, "hipErrorProfilerNotInitialized",
     "profiler not initialized"},
    {hipErrorProfilerAlreadyStarted, CUDA_ERROR_PROFILER_ALREADY_STARTED, "hipErrorProfilerAlreadyStarted",
     "profiler already started"},
    {hipErrorProfilerAlreadyStopped, CUDA_ERROR_PROFILER_ALREADY_STOPPED, "hipErrorProfilerAlreadyStopped",
     "profiler already stopped"},
    {hipErrorInvalidConfiguration, NO_CODE, "hipErrorInvalidConfiguration", "invalid configuration"},
    {hipErrorInvalidPitchValue, NO_CODE, "hipErrorInvalidPitchValue", "invalid pitch"},
    {hipErrorInvalidSymbol, NO_CODE, "hipErrorInvalidSymbol", "invalid symbol"},
    {hipErrorInvalidDevicePointer, NO_CODE, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, NO_CODE, "hipErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {hipErrorInsufficientDriver, NO_CODE, "hipErrorInsufficientDriver", "driver too old for this runtime"},
    {hipErrorMissingConfiguration, NO_CODE, "hipErrorMissingConfiguration", "missing configuration"},
    {hipErrorPriorLaunchFailure, NO_CODE, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {hipErrorInvalidDeviceFunction, NO_CODE, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, CUDA_ERROR_NO_DEVICE, "hipErrorNoDevice", "no device"},
    {hipErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE, "hipErrorInvalidDevice", "invalid device"},
    {hipErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE, "hipErrorInvalidImage", "invalid code image"},
    {hipErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT, "hipErrorInvalidContext", "invalid context"},
    {hipErrorContextAlreadyCurrent, CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "hipErrorContextAlreadyCurrent",
     "context already current"},
    {hipErrorMapFailed, CUDA_ERROR_MAP_FAILED, "hipErrorMapFailed", "mapping failed"},
    {hipErrorUnmapFailed, CUDA_ERROR_UNMAP_FAILED, "hipErrorUnmapFailed", "unmapping failed"},
    {hipErrorArrayIsMapped, CUDA_ERROR_ARRAY_IS_MAPPED, "hipErrorArrayIsMapped", "array is mapped"},
    {hipErrorAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED, "hipErrorAlreadyMapped", "already mapped"},
    {hipErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, "hipErrorNoBinaryForGpu", "no code for this device"},
    {hipErrorAlreadyAcquired, CUDA_ERROR_ALREADY_ACQUIRED, "hipErrorAlreadyAcquired", "already acquired"},
    {hipErrorNotMapped, CUDA_ERROR_NOT_MAPPED, "hipErrorNotMapped", "not mapped"},
    {hipErrorNotMappedAsArray, CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "hipErrorNotMappedAsArray", "not mapped as an array"},
    {hipErrorNotMappedAsPointer, CUDA_ERROR_NOT_MAPPED_AS_POINTER, "hipErrorNotMappedAsPointer",
     "not mapped as a pointer"},
    {hipErrorECCNotCorrectable, CUDA_ERROR_ECC_UNCORRECTABLE, "hipErrorECCNotCorrectable",
     "uncorrectable memory error"},
    {hipErrorUnsupportedLimit, CUDA_ERROR_UNSUPPORTED_LIMIT, "hipErrorUnsupportedLimit", "unsupported limit"},
    {hipErrorContextAlreadyInUse, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "hipErrorContextAlreadyInUse",
     "context already in use"},
    {hipErrorPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "hipErrorPeerAccessUnsupported",
     "peer access unsupported"},
    {hipErrorInvalidKernelFile, CUDA_ERROR_INVALID_PTX, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {hipErrorInvalidGraphicsContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "hipErrorInvalidGraphicsContext",
     "invalid graphics context"},
    {hipErrorInvalidSource, CUDA_ERROR_INVALID_SOURCE, "hipErrorInvalidSource", "invalid source"},
    {hipErrorFileNotFound, CUDA_ERROR_FILE_NOT_FOUND, "hipErrorFileNotFound", "file not found"},
    {hipErrorSharedObjectSymbolNotFound, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
     "hipErrorSharedObjectSymbolNotFound", "symbol not found in shared object"},
    {hipErrorSharedObjectInitFailed, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "hipErrorSharedObjectInitFailed",
     "shared object failed to initialize"},
    {hipErrorOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM, "hipErrorOperatingSystem", "operating system call failed"},
    {hipErrorInvalidHandle, CUDA_ERROR_INVALID_HANDLE, "hipErrorInvalidHandle", "invalid handle"},
    {hipErrorIllegalState, CUDA_ERROR_ILLEGAL_STATE, "hipErrorIllegalState", "illegal state"},
    {hipErrorNotFound, CUDA_ERROR_NOT_FOUND, "hipErrorNotFound", "not found"},
    {hipErrorNotReady, CUDA_ERROR_NOT_READY, "hipErrorNotReady", "not ready"},
    {hipErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, "hipErrorIllegalAddress", "illegal address"},
    {hipErrorLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "hipErrorLaunchOutOfResources",
     "out of resources for a launch"},
    {hipErrorLaunchTimeOut, CUDA_ERROR_LAUNCH_TIMEOUT, "hipErrorLaunchTimeOut", "launch timed out"},
    {hipErrorPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "hipErrorPeerAccessAlreadyEnabled",
     "peer access already enabled"},
    {hipErrorPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "hipErrorPeerAccessNotEnabled",
     "peer access not enabled"},
    {hipErrorSetOnActiveProcess, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "hipErrorSetOnActiveProcess",
     "process is already active"},
    {hipErrorContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorAssert, CUDA_ERROR_ASSERT, "hipErrorAssert", "device assertion failed"},
    {hipErrorHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
     "hipErrorHostMemoryAlreadyRegistered", "host memory already registered"},
    {hipErrorHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "hipErrorHostMemoryNotRegistered",
     "host memory not registered"},
    {hipErrorLaunchFailure, CUDA_ERROR_LAUNCH_FAILED, "hipErrorLaunchFailure", "launch failed"},
    {hipErrorCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "hipErrorCooperativeLaunchTooLarge",
     "cooperative launch too large"},
    {hipErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED, "hipErrorNotSupported", "not supported"},
    {hipErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "hipErrorStreamCaptureUnsupported",
     "not permitted while a stream captures"},
    {hipErrorStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "hipErrorStreamCaptureInvalidated",
     "stream capture invalidated"},
    {hipErrorStreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE, "hipErrorStreamCaptureMerge",
     "merge of two captures"},
    {hipErrorStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "hipErrorStreamCaptureUnmatched",
     "capture was not begun on this stream"},
    {hipErrorStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "hipErrorStreamCaptureUnjoined",
     "capture has an unjoined fork"},
    {hipErrorStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "hipErrorStreamCaptureIsolation",
     "dependency crosses the capture"},
    {hipErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "hipErrorStreamCaptureImplicit",
     "implicit dependency on a capture"},
    {hipErrorCapturedEvent, CUDA_ERROR_CAPTURED_EVENT, "hipErrorCapturedEvent", "event belongs to a capture"},
    {hipErrorStreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "hipErrorStreamCaptureWrongThread",
     "capture ended by another thread"},
    {hipErrorGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "hipErrorGraphExecUpdateFailure",
     "graph update failed"},
    {hipErrorUnknown, CUDA_ERROR_UNKNOWN, "hipErrorUnknown", "unknown error"},
    {hipErrorRuntimeMemory, NO_CODE, "hipErrorRuntimeMemory", "runtime memory call failed"},
    {hipErrorRuntimeOther, NO_CODE, "hipErrorRuntimeOther", "runtime call failed"},
    {hipErrorTbd, NO_CODE, "hipErrorTbd", "error code to be defined"},
};

/* Codes of CUDA that HIP does not have, and the nearest code of HIP. By number, since some are newer than the oldest
 * cuda.h that is supported. All others become hipErrorUnknown, and the debug log has the code. */
static const struct {
  int result;
  hipError_t error;
} error_nearest[] = {
    {34, hipErrorNoDevice},               /* STUB_LIBRARY */
    {36, hipErrorInsufficientDriver},     /* CALL_REQUIRES_NEWER_DRIVER */
    {46, hipErrorContextAlreadyInUse},    /* DEVICE_UNAVAILABLE: another process has exclusive use */
    {703, hipErrorLaunchFailure},         /* LAUNCH_INCOMPATIBLE_TEXTURING */
    {711, hipErrorPeerAccessUnsupported}, /* TOO_MANY_PEERS */
    {714, hipErrorLaunchFailure},         /* HARDWARE_STACK_ERROR; these end the context, as LAUNCH_FAILED does */
    {715, hipErrorLaunchFailure},         /* ILLEGAL_INSTRUCTION */
    {716, hipErrorLaunchFailure},         /* MISALIGNED_ADDRESS */
    {717, hipErrorLaunchFailure},         /* INVALID_ADDRESS_SPACE */
    {718, hipErrorLaunchFailure},         /* INVALID_PC */
    {721, hipErrorLaunchFailure},         /* TENSOR_MEMORY_LEAK */
    {803, hipErrorInsufficientDriver},    /* SYSTEM_DRIVER_MISMATCH */
    {804, hipErrorInsufficientDriver},    /* COMPAT_NOT_SUPPORTED_ON_DEVICE */
};

_Thread_local hipError_t nvidia_last_error;

static hipError_t error_find_nearest(CUresult result)
{
  hipError_t error = hipErrorUnknown;
  const char *name = "?";
  for (size_t i = 0; i < sizeof error_nearest / sizeof *error_nearest; i++)
    if (error_nearest[i].result == (int)result) error = error_nearest[i].error;
  if (nvidia_cuda.GetErrorName) nvidia_cuda.GetErrorName(result, &name);
  nvidia_log(HIPMM_LOG_INFO, "CUDA's error %d, %s, has no code in HIP; it is reported as %s", (int)result,
             name ? name : "?", hipGetErrorName(error));
  return error;
}

hipError_t nvidia_translate(CUresult result)
{
  for (size_t i = 0; i < sizeof error_rows / sizeof *error_rows; i++)
    if (error_rows[i].result == result) return error_rows[i].error;
  return error_find_nearest(result);
}

hipError_t nvidia_fail(hipError_t error)
{
  if (error != hipSuccess) nvidia_last_error = error;
  return error;
}

/* "Not ready" is the usual result of a query, so it is not searched for in the table. */
hipError_t nvidia_end_failed(CUresult result)
{
  return nvidia_fail(result == CUDA_ERROR_NOT_READY ? hipErrorNotReady : nvidia_translate(result));
}

hipError_t hipGetLastError(void)
{
  hipError_t error = nvidia_last_error;
  nvidia_last_error = hipSuccess;
  return error;
}

hipError_t hipPeekAtLastError(void)
{
  return nvidia_last_error;
}

static const struct error_row *error_find(hipError_t error)
{
  for (size_t i = 0; i < sizeof error_rows / sizeof *error_rows; i++)
    if (error_rows[i].error == error) return &error_rows[i];
  return NULL;
}

const char *hipGetErrorName(hipError_t error)
{
  const struct error_row *row = error_find(error);
  return row ? row->name : "hipErrorUnknown";
}

/* For the codes that nvidia_load() returns, the text is why the driver could not be loaded. */
const char *hipGetErrorString(hipError_t error)
{
  const char *failure = nvidia_load_failure();
  bool is_about_loading =
      error == hipErrorNoDevice || error == hipErrorInsufficientDriver || error == hipErrorNotInitialized;
  if (failure && is_about_loading) return failure;
  const struct error_row *row = error_find(error);
  return row ? row->text : "unknown error";
}

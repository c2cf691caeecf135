/* SPDX-License-Identifier: MIT */
/* error.c: HIP's error codes for CUDA's, their names, and the last error of the thread. Called at the end of every HIP
 * function that failed, and by applications. */
#include "../../common/hip_error.h"
#include "nvidia.h"

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

/* HIP has CUDA's numbers, but not all of its codes. The driver returns none of the codes that only a runtime has. */
hipError_t nvidia_translate(CUresult result)
{
  return hip_error_find((int)result) ? (hipError_t)result : error_find_nearest(result);
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

const char *hipGetErrorName(hipError_t error)
{
  return hip_error_name((int)error);
}

/* For the codes that nvidia_load() returns, the text is why the driver could not be loaded. */
const char *hipGetErrorString(hipError_t error)
{
  const char *failure = nvidia_load_failure();
  bool is_about_loading =
      error == hipErrorNoDevice || error == hipErrorInsufficientDriver || error == hipErrorNotInitialized;
  if (failure && is_about_loading) return failure;
  return hip_error_text((int)error);
}

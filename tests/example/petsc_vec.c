/* SPDX-License-Identifier: MIT */
/* petsc_vec.c: a PETSc Vec over hipmm's memory. PETSc allocates the arrays of other Vecs and Mats with calls of the runtime,
 * which `hipmm run` serves without a switch (doc/recipes.md).
 *
 * Run: with PETSc 3.18.5 of the host (Debian 12) on hipmm's software device; by tests/doors/recipes.sh with a stand-in of the
 * functions. Not run: with a PETSc for GPUs.
 *
 *     cc petsc_vec.c -o program $(pkg-config --cflags --libs hipmm PETSc)
 *
 * On AMD the function is VecCreateSeqHIPWithArray(). For several ranks the functions are VecCreateMPICUDAWithArray() and
 * VecCreateMPIHIPWithArray(). */
#include <hipmm/hipmm.h>
#include <petscvec.h>
#include <stdio.h>

#if defined PETSC_HAVE_HIP
#define VecCreateSeqDeviceWithArray VecCreateSeqHIPWithArray
#elif defined PETSC_HAVE_CUDA
#define VecCreateSeqDeviceWithArray VecCreateSeqCUDAWithArray
#else /* PETSc of the host: memory that the host reads, such as that of `pinned` and of the software device */
#define VecCreateSeqDeviceWithArray VecCreateSeqWithArray
#endif

int main(int argc, char **argv)
{
  enum { N = 5000 };
  struct hipmm_statistics counters;
  struct hipmm_resource *resource;
  PetscScalar *array;
  PetscReal sum;
  Vec vector;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  if (hipmm_init() || hipmm_resource_get_current(&resource) ||
      hipmm_allocate(resource, N * sizeof(PetscScalar), NULL, (void **)&array)) {
    fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  PetscCall(VecCreateSeqDeviceWithArray(PETSC_COMM_SELF, 1, N, array, &vector));
  PetscCall(VecSet(vector, 0.5));
  PetscCall(VecNorm(vector, NORM_1, &sum));
  if (hipmm_statistics_get(resource, &counters)) return 1;
  printf("a Vec has %lld bytes of hipmm, and the norm %g\n", (long long)counters.current_bytes, (double)sum);
  PetscCall(VecDestroy(&vector)); /* the array stays the program's */
  if (hipmm_deallocate(resource, array, N * sizeof(PetscScalar), NULL)) return 1;
  if (hipmm_statistics_get(resource, &counters)) return 1;
  printf("%lld bytes are left\n", (long long)counters.current_bytes);
  hipmm_resource_release(resource);
  PetscCall(PetscFinalize());
  return hipmm_finalize() != HIPMM_OK;
}

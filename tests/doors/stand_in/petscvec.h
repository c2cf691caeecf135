/* SPDX-License-Identifier: MIT */
/* petscvec.h: what tests/example/petsc_vec.c needs of PETSc: our own declarations and implementation, by which it compiles
 * with PETSc's header as well. A Vec works in the array that it is given. */
#ifndef HIPMM_TESTS_DOORS_STAND_IN_PETSC_H
#define HIPMM_TESTS_DOORS_STAND_IN_PETSC_H

#include <stdlib.h>

#define PETSC_HAVE_CUDA 1

typedef int PetscErrorCode, PetscInt, MPI_Comm;
typedef double PetscScalar, PetscReal;
typedef struct stand_in_vec {
  PetscScalar *array;
  PetscInt n;
} * Vec;
enum { PETSC_COMM_SELF = 1, NORM_1 = 0 };

#define PetscCall(call)                  \
  do {                                   \
    PetscErrorCode petsc_error = (call); \
    if (petsc_error) return petsc_error; \
  } while (0)

static inline PetscErrorCode PetscInitialize(int *argc, char ***argv, const char *file, const char *help)
{
  (void)argv, (void)file, (void)help;
  return *argc < 1;
}

static inline PetscErrorCode PetscFinalize(void)
{
  return 0;
}

static inline PetscErrorCode VecCreateSeqCUDAWithArray(MPI_Comm comm, PetscInt block, PetscInt n, PetscScalar *array,
                                                       Vec *vec)
{
  *vec = malloc(sizeof **vec);
  if (comm != PETSC_COMM_SELF || block != 1 || !*vec) return 1;
  (*vec)->array = array;
  (*vec)->n = n;
  return 0;
}

static inline PetscErrorCode VecSet(Vec vec, PetscScalar value)
{
  for (PetscInt i = 0; i < vec->n; i++) vec->array[i] = value;
  return 0;
}

static inline PetscErrorCode VecNorm(Vec vec, int type, PetscReal *norm)
{
  *norm = 0;
  for (PetscInt i = 0; i < vec->n; i++) *norm += vec->array[i] < 0 ? -vec->array[i] : vec->array[i];
  return type != NORM_1;
}

static inline PetscErrorCode VecDestroy(Vec *vec)
{
  free(*vec);
  *vec = NULL;
  return 0;
}

#endif

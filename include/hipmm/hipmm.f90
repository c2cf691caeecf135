! SPDX-License-Identifier: MIT
! hipmm.f90: hipmm for Fortran 2018, over the C functions of hipmm/hipmm.h, which describes each. Compile this file with
! your own compiler, since modules differ between compilers, and link with -lhipmm (doc/doors.md). Tried with gfortran 12.
!
!   use hipmm
!   real(c_double), pointer :: a(:, :)
!   call hipmm_init()
!   call hipmm_allocate(a, [1000, 500])
!   call hipmm_deallocate(a)
!   call hipmm_finalize()
!
! An array may have 1 to 15 dimensions. Its kind is c_float, c_double, c_int32_t or c_int64_t, or for complex numbers
! c_float_complex or c_double_complex. For other types, and for more than 2**31 - 1 elements in a dimension, allocate a
! type(c_ptr) with its bytes, and call c_f_pointer(). The host may read and write memory of a resource such as `managed`,
! `pinned` or `host` only; other arrays are for kernels and libraries of the device. An array without elements gets no memory
! and is not associated.
!
! Every subroutine takes stat= (0, or a value HIPMM_E_… of hipmm/hipmm.h) and errmsg=. Without stat= an error ends the
! program, as an error of `allocate` does. Two more arguments are optional: stream= (a hipStream_t or cudaStream_t; by default
! the default stream) and resource= (from hipmm_get_resource(); by default the current device's current resource).
module hipmm
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  public :: hipmm_init, hipmm_finalize, hipmm_allocate, hipmm_deallocate, hipmm_value, hipmm_get_statistics
  public :: hipmm_get_resource, hipmm_release_resource, hipmm_error_message
  public :: c_ptr, c_null_ptr, c_float, c_double, c_int32_t, c_int64_t, c_float_complex, c_double_complex, c_size_t

  ! The statuses that a program handles, in the order of enum hipmm_status.
  integer, parameter, public :: HIPMM_OK = 0, HIPMM_E_ARGUMENT = -1, HIPMM_E_POINTER = -2, HIPMM_E_SIZE = -3, &
    HIPMM_E_STATE = -4, HIPMM_E_IO = -10, HIPMM_E_SYNTAX = -11, HIPMM_E_CONFIG = -12, HIPMM_E_PLUGIN = -20, &
    HIPMM_E_PLUGIN_ABI = -21, HIPMM_E_OUT_OF_MEMORY = -30, HIPMM_E_LIMIT = -31, HIPMM_E_NO_DEVICE = -40, &
    HIPMM_E_NOT_SUPPORTED = -41, HIPMM_E_HIP = -42, HIPMM_E_INTERNAL = -50

  type, bind(c), public :: hipmm_statistics
    integer(c_int64_t) :: current_bytes = 0, current_count = 0, peak_bytes = 0, peak_count = 0, total_bytes = 0, total_count = 0
  end type

  interface
    integer(c_int) function c_init() bind(c, name="hipmm_init")
      import
    end function
    integer(c_int) function c_init_from_file(path) bind(c, name="hipmm_init_from_file")
      import
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_init_from_string(json) bind(c, name="hipmm_init_from_string")
      import
      character(kind=c_char), intent(in) :: json(*)
    end function
    integer(c_int) function c_finalize() bind(c, name="hipmm_finalize")
      import
    end function
    integer(c_int) function c_allocate(resource, bytes, stream, ptr) bind(c, name="hipmm_allocate")
      import
      type(c_ptr), value :: resource, stream
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(inout) :: ptr
    end function
    integer(c_int) function c_deallocate(resource, ptr, bytes, stream) bind(c, name="hipmm_deallocate")
      import
      type(c_ptr), value :: resource, ptr, stream
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_query(path, number) bind(c, name="hipmm_query")
      import
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), intent(inout) :: number
    end function
    integer(c_int) function c_statistics_get(resource, statistics) bind(c, name="hipmm_statistics_get")
      import
      type(c_ptr), value :: resource
      type(hipmm_statistics), intent(inout) :: statistics
    end function
    integer(c_int) function c_resource_by_name(device, name, resource) bind(c, name="hipmm_resource_get_by_name")
      import
      integer(c_int), value :: device
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: resource
    end function
    subroutine c_resource_release(resource) bind(c, name="hipmm_resource_release")
      import
      type(c_ptr), value :: resource
    end subroutine
    type(c_ptr) function c_last_error_message() bind(c, name="hipmm_last_error_message")
      import
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
  end interface

  interface hipmm_allocate
    procedure allocate_bytes, allocate_float, allocate_double, allocate_int32, allocate_int64, allocate_float_complex, &
      allocate_double_complex
  end interface
  interface hipmm_deallocate
    procedure deallocate_bytes, deallocate_float, deallocate_double, deallocate_int32, deallocate_int64, &
      deallocate_float_complex, deallocate_double_complex
  end interface

contains

  ! The message of the calling thread's last failed call.
  function hipmm_error_message() result(message)
    character(len=:), allocatable :: message
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(c_last_error_message(), letters, [c_strlen(c_last_error_message())])
    allocate (character(len=size(letters)) :: message)
    do i = 1, size(letters)
      message(i:i) = letters(i)
    end do
  end function

  subroutine finish(status, message, stat, errmsg)
    integer, intent(in) :: status
    character(len=*), intent(in) :: message
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(stat)) stat = status
    if (status == HIPMM_OK) return
    if (present(errmsg)) errmsg = message
    if (present(stat)) return
    write (error_unit, '(a)') 'hipmm: '//message
    error stop 1
  end subroutine

  subroutine finish_call(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (status == HIPMM_OK) then
      call finish(HIPMM_OK, '', stat, errmsg)
    else
      call finish(int(status), hipmm_error_message(), stat, errmsg)
    end if
  end subroutine

  ! hipmm_init() takes the graph as the C function does, hipmm_init(file=) from a file, hipmm_init(json=) from a text.
  subroutine hipmm_init(file, json, stat, errmsg)
    character(len=*), intent(in), optional :: file, json
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(file) .and. present(json)) then
      call finish(HIPMM_E_ARGUMENT, 'hipmm_init: give file= or json=, not both', stat, errmsg)
    else if (present(file)) then
      call finish_call(c_init_from_file(file//c_null_char), stat, errmsg)
    else if (present(json)) then
      call finish_call(c_init_from_string(json//c_null_char), stat, errmsg)
    else
      call finish_call(c_init(), stat, errmsg)
    end if
  end subroutine

  subroutine hipmm_finalize(stat, errmsg)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish_call(c_finalize(), stat, errmsg)
  end subroutine

  ! A resource of the graph, such as "pool"; the caller releases it.
  subroutine hipmm_get_resource(resource, name, device, stat, errmsg)
    type(c_ptr), intent(out) :: resource
    character(len=*), intent(in) :: name
    integer, intent(in), optional :: device
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: number
    number = 0
    if (present(device)) number = int(device, c_int)
    resource = c_null_ptr
    call finish_call(c_resource_by_name(number, name//c_null_char, resource), stat, errmsg)
  end subroutine

  subroutine hipmm_release_resource(resource)
    type(c_ptr), intent(inout) :: resource
    call c_resource_release(resource)
    resource = c_null_ptr
  end subroutine

  ! A value by its path, such as "devices/0/pool/reserved_bytes".
  subroutine hipmm_value(path, number, stat, errmsg)
    character(len=*), intent(in) :: path
    integer(c_int64_t), intent(out) :: number
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    number = 0
    call finish_call(c_query(path//c_null_char, number), stat, errmsg)
  end subroutine

  ! The counters of a `statistics` in the stack.
  subroutine hipmm_get_statistics(statistics, resource, stat, errmsg)
    type(hipmm_statistics), intent(out) :: statistics
    type(c_ptr), intent(in), optional :: resource
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish_call(c_statistics_get(or_null(resource), statistics), stat, errmsg)
  end subroutine

  type(c_ptr) function or_null(pointer)
    type(c_ptr), intent(in), optional :: pointer
    or_null = c_null_ptr
    if (present(pointer)) or_null = pointer
  end function

  subroutine allocate_bytes(ptr, bytes, stream, resource, stat, errmsg)
    type(c_ptr), intent(out) :: ptr
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(in), optional :: stream, resource
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    ptr = c_null_ptr
    if (bytes < 0) then
      call finish(HIPMM_E_ARGUMENT, 'hipmm_allocate: the number of bytes is negative', stat, errmsg)
    else
      call finish_call(c_allocate(or_null(resource), bytes, or_null(stream), ptr), stat, errmsg)
    end if
  end subroutine

  ! bytes=: the size that was allocated, if the caller knows it.
  subroutine deallocate_bytes(ptr, bytes, stream, resource, stat, errmsg)
    type(c_ptr), intent(inout) :: ptr
    integer(c_size_t), intent(in), optional :: bytes
    type(c_ptr), intent(in), optional :: stream, resource
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_size_t) :: known
    integer(c_int) :: status
    known = 0
    if (present(bytes)) known = bytes
    status = HIPMM_OK
    if (c_associated(ptr)) status = c_deallocate(or_null(resource), ptr, known, or_null(stream))
    if (status == HIPMM_OK) ptr = c_null_ptr
    call finish_call(status, stat, errmsg)
  end subroutine

  ! Allocates the memory of an array of `rank` dimensions. Its shape must have as many extents, none of them negative.
  subroutine allocate_shape(ptr, rank, element_bits, shape, is_good, stream, resource, stat, errmsg)
    type(c_ptr), intent(out) :: ptr
    integer, intent(in) :: rank, element_bits, shape(:)
    logical, intent(out) :: is_good
    type(c_ptr), intent(in), optional :: stream, resource
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_size_t) :: bytes
    integer(c_int) :: status
    integer :: i
    character(len=120) :: message
    ptr = c_null_ptr
    is_good = .false.
    if (rank /= size(shape)) then
      write (message, '(a, i0, a, i0, a)') 'hipmm_allocate: the array has rank ', rank, ', and its shape ', size(shape), &
        ' extents; give one extent for each dimension'
      call finish(HIPMM_E_ARGUMENT, trim(message), stat, errmsg)
      return
    end if
    if (rank == 0) then
      call finish(HIPMM_E_ARGUMENT, 'hipmm_allocate: the pointer is a scalar; use an array of one element', stat, errmsg)
      return
    end if
    bytes = element_bits/8
    if (any(shape == 0)) bytes = 0
    do i = 1, size(shape)
      if (shape(i) < 0) then
        write (message, '(a, i0, a, i0)') 'hipmm_allocate: extent ', i, ' of the shape is negative: ', shape(i)
        call finish(HIPMM_E_ARGUMENT, trim(message), stat, errmsg)
        return
      end if
      if (bytes > 0) then
        if (bytes > huge(bytes)/shape(i)) then
          call finish(HIPMM_E_OUT_OF_MEMORY, 'hipmm_allocate: the array has more bytes than there are addresses', stat, errmsg)
          return
        end if
        bytes = bytes*shape(i)
      end if
    end do
    status = HIPMM_OK
    if (bytes > 0) status = c_allocate(or_null(resource), bytes, or_null(stream), ptr)
    is_good = status == HIPMM_OK .and. bytes > 0
    call finish_call(status, stat, errmsg)
  end subroutine

  ! Frees the memory of an array, which must be whole: a pointer to a part of it has another address or size.
  subroutine deallocate_array(ptr, elements, element_bits, is_contiguous, is_freed, stream, resource, stat, errmsg)
    type(c_ptr), intent(in) :: ptr
    integer(c_size_t), intent(in) :: elements
    integer, intent(in) :: element_bits
    logical, intent(in) :: is_contiguous
    logical, intent(out) :: is_freed
    type(c_ptr), intent(in), optional :: stream, resource
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: status
    is_freed = .false.
    if (.not. is_contiguous) then
      call finish(HIPMM_E_POINTER, 'hipmm_deallocate: the pointer is to a part of an array; free the whole array', stat, errmsg)
      return
    end if
    status = c_deallocate(or_null(resource), ptr, elements*(element_bits/8), or_null(stream))
    is_freed = status == HIPMM_OK
    call finish_call(status, stat, errmsg)
  end subroutine

  subroutine allocate_float(array, shape, stream, resource, stat, errmsg)
    real(c_float), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_float(array, stream, resource, stat, errmsg)
    real(c_float), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine

  subroutine allocate_double(array, shape, stream, resource, stat, errmsg)
    real(c_double), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_double(array, stream, resource, stat, errmsg)
    real(c_double), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine

  subroutine allocate_int32(array, shape, stream, resource, stat, errmsg)
    integer(c_int32_t), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_int32(array, stream, resource, stat, errmsg)
    integer(c_int32_t), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine

  subroutine allocate_int64(array, shape, stream, resource, stat, errmsg)
    integer(c_int64_t), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_int64(array, stream, resource, stat, errmsg)
    integer(c_int64_t), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine

  subroutine allocate_float_complex(array, shape, stream, resource, stat, errmsg)
    complex(c_float_complex), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_float_complex(array, stream, resource, stat, errmsg)
    complex(c_float_complex), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine

  subroutine allocate_double_complex(array, shape, stream, resource, stat, errmsg)
    complex(c_double_complex), pointer, intent(out) :: array(..)
    include 'hipmm_allocate.inc'
  end subroutine
  subroutine deallocate_double_complex(array, stream, resource, stat, errmsg)
    complex(c_double_complex), pointer, intent(inout) :: array(..)
    include 'hipmm_deallocate.inc'
  end subroutine
end module

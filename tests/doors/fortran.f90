! SPDX-License-Identifier: MIT
! fortran.f90: the module over hipmm on the software device, whose memory the host reads: data, counters, and every error.
program fortran
  use hipmm
  implicit none
  real(c_double), pointer :: matrix(:, :), part(:, :), scalar => null()
  real(c_float), pointer :: line(:) => null()
  integer(c_int32_t), pointer :: cube(:, :, :)
  integer(c_int64_t), pointer :: many(:, :, :, :, :, :, :, :, :, :, :, :, :, :, :)
  complex(c_float_complex), pointer :: wave(:)
  complex(c_double_complex), pointer :: waves(:, :, :, :, :, :, :)
  type(hipmm_statistics) :: counters
  type(c_ptr) :: bytes, pool
  integer(c_int64_t) :: reserved
  integer :: i, j, stat
  character(len=200) :: message

  call hipmm_allocate(line, [10], stat=stat)
  call expect(stat == HIPMM_E_STATE, 'before the initialisation')
  call hipmm_init(file='missing.json', stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_IO .and. index(message, 'missing.json') > 0, 'a file that is missing')
  call hipmm_init(file='a', json='b', stat=stat)
  call expect(stat == HIPMM_E_ARGUMENT, 'two graphs')
  call hipmm_init(json='{"runtime": "software", "stack": ["statistics", "pool", "device"]}')

  call hipmm_allocate(matrix, [300, 200])
  call expect(associated(matrix) .and. all(shape(matrix) == [300, 200]), 'the shape of a matrix')
  do j = 1, 200
    do i = 1, 300
      matrix(i, j) = i + 1000*j
    end do
  end do
  call hipmm_allocate(line, [1000])
  line = 1.5
  call hipmm_allocate(cube, [3, 4, 5])
  cube = 7
  call hipmm_allocate(many, [2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3])
  many = 2_c_int64_t**40
  call hipmm_allocate(wave, [16])
  wave = (1.0, -1.0)
  call hipmm_allocate(waves, [2, 2, 2, 2, 2, 2, 2])
  waves = (2.0, 3.0)
  call hipmm_get_statistics(counters)
  call expect(counters%current_count == 6, 'the number of blocks')
  call expect(counters%current_bytes == 300*200*8 + 1000*4 + 60*4 + 6*8 + 16*8 + 128*16, 'the bytes of the blocks')
  call expect(all(matrix(300, :) == [(300 + 1000*j, j=1, 200)]) .and. sum(line) == 1500, 'data of reals')
  call expect(sum(cube) == 420 .and. sum(many) == 6*2_c_int64_t**40, 'data of integers')
  call expect(sum(wave) == (16.0, -16.0) .and. sum(waves) == (256.0, 384.0), 'data of complex numbers')
  call hipmm_value('devices/0/pool/reserved_bytes', reserved)
  call expect(reserved >= counters%current_bytes, 'the bytes that the pool has')
  call hipmm_value('devices/0/pool/reserved', reserved, stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_ARGUMENT .and. index(message, '"reserved"') > 0, 'a value that does not exist')

  ! Wrong ranks and shapes, parts, and what no memory can hold.
  call hipmm_allocate(part, [10], stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_ARGUMENT .and. .not. associated(part), 'a shape of another rank')
  call expect(index(message, 'rank 2') > 0 .and. index(message, '1 extents') > 0, 'its message')
  call hipmm_allocate(scalar, [1], stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_ARGUMENT, 'a scalar')
  call hipmm_allocate(part, [10, -1], stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_ARGUMENT .and. index(message, 'extent 2') > 0, 'a negative extent')
  call hipmm_allocate(part, [2147483647, 2147483647], stat=stat)
  call expect(stat == HIPMM_E_OUT_OF_MEMORY, 'more bytes than addresses')
  call hipmm_allocate(part, [1000000, 1000000], stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_OUT_OF_MEMORY .and. len_trim(message) > 0, 'more memory than the device has')
  call hipmm_allocate(part, [5, 0])
  call expect(.not. associated(part), 'an array without elements')
  call hipmm_deallocate(part)
  part => matrix(1:10, 1:10)
  call hipmm_deallocate(part, stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_POINTER .and. associated(part), 'a part with holes')
  part => matrix(:, 1:10)
  call hipmm_deallocate(part, stat=stat)
  call expect(stat == HIPMM_E_SIZE, 'the first columns')
  part => matrix(:, 2:10)
  call hipmm_deallocate(part, stat=stat)
  call expect(stat == HIPMM_E_POINTER, 'other columns')

  call hipmm_deallocate(matrix)
  call expect(.not. associated(matrix), 'a pointer that was freed')
  call hipmm_deallocate(line)
  call hipmm_deallocate(cube)
  call hipmm_deallocate(many)
  call hipmm_deallocate(wave)
  call hipmm_deallocate(waves)

  ! Bytes, a resource by its name.
  call hipmm_get_resource(pool, 'pol', stat=stat, errmsg=message)
  call expect(stat == HIPMM_E_ARGUMENT .and. index(message, 'pool') > 0, 'a resource that does not exist')
  call hipmm_get_resource(pool, 'pool')
  call hipmm_allocate(bytes, 5000_c_size_t, resource=pool)
  call hipmm_get_statistics(counters)
  write (message, '(2i5)') counters%current_count, counters%total_count
  call expect(counters%current_count == 0 .and. counters%total_count == 6, 'the counters at the end')
  call hipmm_deallocate(bytes, 4999_c_size_t, resource=pool, stat=stat)
  call expect(stat == HIPMM_E_SIZE, 'another size')
  call hipmm_deallocate(bytes, resource=pool)
  call hipmm_allocate(bytes, -1_c_size_t, stat=stat)
  call expect(stat == HIPMM_E_ARGUMENT, 'a negative size')
  call hipmm_release_resource(pool)
  call hipmm_finalize()
  print '(a)', 'good'
  call hipmm_finalize() ! without stat= this ends the program
  print '(a)', 'not reached'

contains

  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(3a)', 'wrong: ', what, ': '//trim(message)
    stop 2
  end subroutine
end program

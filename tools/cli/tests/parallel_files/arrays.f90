! Files by Fortran's numbers of them: a matrix in blocks of columns, written and read again.
program arrays
  use mpi
  implicit none
  integer, parameter :: rows = 19, columns = 7
  integer :: error, rank, ranks, file, filetype, at, bytes, unit, etype, tile
  integer :: status(MPI_STATUS_SIZE), request
  integer :: whole(2), part(2), start(2)
  integer(kind=MPI_OFFSET_KIND) :: none, length, position
  double precision :: mine(rows, columns), got(rows, columns)
  character(len=32) :: name
  character(len=MPI_MAX_DATAREP_STRING) :: representation

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  write (name, '("said.", i0)') rank
  open (newunit=unit, file=name)
  do at = 1, columns
    mine(:, at) = rank * 1000 + at
  end do
  whole = (/ rows, columns * ranks /)
  part = (/ rows, columns /)
  start = (/ 0, columns * rank /)
  none = 0
  call MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, filetype, error)
  call MPI_Type_commit(filetype, error)
  call MPI_File_open(MPI_COMM_WORLD, 'arrays.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error)
  write (unit, *) 'open', error == MPI_SUCCESS
  call MPI_File_set_view(file, none, MPI_DOUBLE_PRECISION, filetype, 'native', MPI_INFO_NULL, error)
  call MPI_File_write_all(file, mine, rows * columns, MPI_DOUBLE_PRECISION, status, error)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, at, error)
  write (unit, *) 'wrote', at
  call MPI_File_sync(file, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  got = 0
  call MPI_File_read_at_all(file, none, got, rows * columns, MPI_DOUBLE_PRECISION, status, error)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, at, error)
  write (unit, *) 'got', at, all(got == mine)
  got = 0
  call MPI_File_iread_at(file, none, got, rows, MPI_DOUBLE_PRECISION, request, error)
  call MPI_Wait(request, status, error)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, at, error)
  write (unit, *) 'got', at, all(got(:, 1) == mine(:, 1))
  call MPI_File_get_view(file, length, etype, tile, representation, error)
  call MPI_Type_size(tile, bytes, error)
  write (unit, *) 'view', length, etype == MPI_DOUBLE_PRECISION, bytes, trim(representation)
  call MPI_File_get_position(file, position, error)
  call MPI_File_get_size(file, length, error)
  write (unit, *) 'position', position, 'length', length
  call MPI_File_seek(file, none, MPI_SEEK_END, error)
  call MPI_File_get_position(file, position, error)
  write (unit, *) 'end', position
  call MPI_File_close(file, error)
  write (unit, *) 'closed', file == MPI_FILE_NULL
  call MPI_File_open(MPI_COMM_WORLD, 'none.dat', MPI_MODE_RDONLY, MPI_INFO_NULL, file, error)
  call MPI_Error_class(error, at, error)
  write (unit, *) 'nothing', at == MPI_ERR_NO_SUCH_FILE
  call MPI_Barrier(MPI_COMM_WORLD, error)
  close (unit)
  call MPI_Finalize(error)
end program arrays

! The same calls through each of Fortran's ways to MPI.
program mpi_calls
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: ierror, rank
#ifdef F08
  type(MPI_File) :: file
#else
  integer :: file
#endif
  integer(kind=MPI_OFFSET_KIND) :: displacement
  double precision :: values(100)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  values = rank
  call MPI_File_open(MPI_COMM_WORLD, 'fortran', MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, ierror)
  displacement = rank * 800
  call MPI_File_set_view(file, displacement, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, 'native', MPI_INFO_NULL, ierror)
  call MPI_File_write_all(file, values, 100, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierror)
  call MPI_File_close(file, ierror)
  if (rank == 0) call MPI_Send(values, 10, MPI_DOUBLE_PRECISION, 1, 5, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_Recv(values, 10, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
end program

! Error handlers that were made in Fortran are called with Fortran's number of the file.
subroutine met(file, code)
  use mpi
  implicit none
  integer :: file, code, opened
  common /files/ opened
  write (10, *) 'met, of it: ', file == opened, code == MPI_ERR_IO
end subroutine

program main
  use mpi
  implicit none
  integer :: rank, ierr, handler, found, opened
  character(len=6) :: name
  external :: met
  common /files/ opened
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  write (name, '(a,i1)') 'said.', rank
  open (10, file=name)
  call MPI_File_create_errhandler(met, handler, ierr)
  call MPI_File_open(MPI_COMM_WORLD, 'data', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, opened, ierr)
  call MPI_File_set_errhandler(opened, handler, ierr)
  call MPI_File_get_errhandler(opened, found, ierr)
  write (10, *) 'found: ', found == handler
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Errhandler_free(found, ierr)
  call MPI_File_call_errhandler(opened, MPI_ERR_IO, ierr)
  call MPI_File_close(opened, ierr)
  close (10)
  call MPI_Finalize(ierr)
end program

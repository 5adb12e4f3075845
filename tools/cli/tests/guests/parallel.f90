! Ranks write one shared file by MPI-IO and a formatted and an unformatted file of their own.
program parallel
  use mpi
  implicit none
  integer :: rank, ranks, ierr, file, i
  integer(kind=MPI_OFFSET_KIND) :: offset
  double precision :: values(50)
  character(len=32) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  values = rank + 0.5d0
  call MPI_File_open(MPI_COMM_WORLD, 'shared', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
  do i = 0, 19
    offset = int(i * ranks + rank, MPI_OFFSET_KIND) * 400
    call MPI_File_write_at(file, offset, values, 50, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierr)
  end do
  call MPI_File_close(file, ierr)
  write(name, '(a,i0)') 'formatted.', rank
  open(10, file=name, form='formatted')
  do i = 1, 500
    write(10, '(i6,f12.4)') i, sqrt(dble(i + rank))
  end do
  close(10)
  write(name, '(a,i0)') 'unformatted.', rank
  open(11, file=name, form='unformatted', access='direct', recl=400)
  do i = 20, 1, -1
    write(11, rec=i) values * i
  end do
  read(11, rec=7) values
  close(11)
  if (rank == 0) print '(a,f8.2)', 'record 7 holds ', values(1)
  call MPI_Finalize(ierr)
end program parallel

! Each rank writes a formatted and an unformatted file of its own.
program ranks
    use mpi
    implicit none
    integer :: rank, count, error, call
    character(len=32) :: name
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, count, error)
    write (name, '(a,i0)') 'rank', rank
    open (unit=10, file=name, form='formatted')
    do call = 1, 1000
        write (10, '(i6,f10.3)') call, call * 0.5
    end do
    close (10)
    open (unit=11, file=trim(name)//'.bin', form='unformatted', access='stream')
    write (11) (call, call = 1, 1000)
    close (11)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (rank == 0) print '(i0,a)', count, ' ranks'
    call MPI_Finalize(error)
end program

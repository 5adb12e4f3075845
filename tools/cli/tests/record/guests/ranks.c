/* Each rank writes a file of its own and its part of a shared one. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int rank, ranks;
    char buffer[64] = {0}, name[32];
    MPI_File shared;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "rank%d", rank);
    int fd = open(name, O_WRONLY | O_CREAT, 0644);
    for (int call = 0; call < 10; call++)
        if (write(fd, buffer, sizeof buffer) != sizeof buffer) return 1;
    close(fd);
    MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &shared);
    MPI_File_write_at(shared, rank * 64, buffer, 64, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&shared);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks\n", ranks);
    MPI_Finalize();
    return 0;
}

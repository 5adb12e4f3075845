/* A message that one rank has begun to send before a collective call, and that another one waits for before it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 8 << 20 };

int main(int argc, char **argv) {
    int rank, size;
    char name[32];
    MPI_File file;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    FILE *out = fopen(name, "w");
    char *large = calloc(1, LARGE);
    MPI_File_open(MPI_COMM_WORLD, "progress.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int round = 0; round < 4; round++) {
        if (rank == 0) {
            MPI_Isend(large, LARGE, MPI_CHAR, size - 1, round, MPI_COMM_WORLD, &request);
            MPI_File_write_at_all(file, 0, large, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            if (rank == size - 1) MPI_Recv(large, LARGE, MPI_CHAR, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_File_write_at_all(file, 1000 * rank, large, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
        }
    }
    MPI_File_close(&file);
    fprintf(out, "done\n");
    fclose(out);
    MPI_Finalize();
    return 0;
}

/* A program that is linked with a tool which counts its calls (tool.c). */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Request request;
    int rank;
    char part[100] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < 3; i++) {
        sprintf(part, "%d.%d", rank, i);
        MPI_File_write_at(file, (rank * 4 + i) * 100, part, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_iwrite_at(file, (rank * 4 + 3) * 100, part, 100, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

/* CPU ns per call of MPI, and per 64-byte write through MPI-IO: mpi PATH CALLS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int count, char **arguments) {
    long calls = atol(arguments[2]);
    double from, exchanged, written;
    char buffer[64] = {0}, other[64];
    MPI_File file;
    MPI_Init(&count, &arguments);
    from = cpu_ns();
    for (long call = 0; call < calls; call++)
        MPI_Sendrecv(buffer, 64, MPI_BYTE, 0, 1, other, 64, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    exchanged = (cpu_ns() - from) / calls;
    MPI_File_open(MPI_COMM_SELF, arguments[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    from = cpu_ns();
    for (long call = 0; call < calls; call++)
        MPI_File_write_at(file, 64 * (call % 1024), buffer, 64, MPI_BYTE, MPI_STATUS_IGNORE);
    written = (cpu_ns() - from) / calls;
    MPI_File_close(&file);
    MPI_Finalize();
    printf("%.1f %.1f\n", exchanged, written);
    return 0;
}

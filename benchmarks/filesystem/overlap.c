/* What started calls gain: a checkpoint is written while the program computes for as long as it takes to write it.
 * overlap FILE REPEATS MIB: per repeat the file is written alone, computed alone, both one after the other, and both at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static volatile double sink;

static void compute(long steps) {
    double x = 1.0;
    for (long step = 0; step < steps; step++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int repeats = atoi(argv[2]), rank;
    long bytes = atol(argv[3]) << 20;
    MPI_File file;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = malloc(bytes);
    for (long at = 0; at < bytes; at++) data[at] = at * 7 + rank;
    double *ratios = malloc(repeats * sizeof *ratios), *shares = malloc(repeats * sizeof *shares);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Offset own = (MPI_Offset)rank * bytes;
    MPI_File_write_at(file, own, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int repeat = 0; repeat < repeats; repeat++) {
        double from = MPI_Wtime();
        MPI_File_write_at(file, own, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        double writing = MPI_Wtime() - from;
        long steps = 1 << 20;
        from = MPI_Wtime();
        compute(steps);
        steps *= writing / (MPI_Wtime() - from);
        from = MPI_Wtime();
        MPI_File_write_at(file, own, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        compute(steps);
        double apart = MPI_Wtime() - from;
        from = MPI_Wtime();
        MPI_File_iwrite_at(file, own, data, bytes, MPI_BYTE, &request);
        double started = MPI_Wtime() - from;
        compute(steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        double together = MPI_Wtime() - from;
        ratios[repeat] = together / apart;
        shares[repeat] = started / together;
    }
    qsort(ratios, repeats, sizeof *ratios, by_size);
    qsort(shares, repeats, sizeof *shares, by_size);
    if (rank == 0)
        printf("at once / apart: median %.2f (%.2f to %.2f); of it in the call that starts: %.0f %%\n", ratios[repeats / 2],
               ratios[repeats / 4], ratios[repeats - 1 - repeats / 4], 100 * shares[repeats / 2]);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

/* Independent writes of pieces that ranks have in turn: `turns FILE PIECE BYTES-PER-RANK`. Prints the bytes, and seconds
   of the slowest rank for a first pass and a second one, each from its first write to the end of a sync of all; every byte is
   compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int piece = atoi(argv[2]);
    long calls = atol(argv[3]) / piece, bytes = calls * piece;
    char *data = malloc(bytes), *got = malloc(piece);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    double seconds[2], slowest[2];
    for (int pass = 0; pass < 2; pass++) {
        for (long at = 0; at < bytes; at++) data[at] = (char)(at * 31 + rank + pass);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (long call = 0; call < calls; call++)
            if (MPI_File_write_at(file, (MPI_Offset)(call * size + rank) * piece, data + call * piece, piece, MPI_BYTE, MPI_STATUS_IGNORE))
                MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_File_sync(file);
        seconds[pass] = MPI_Wtime() - begin;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (long call = 0; call < calls; call++) {
        MPI_File_read_at(file, (MPI_Offset)(call * size + rank) * piece, got, piece, MPI_BYTE, MPI_STATUS_IGNORE);
        if (memcmp(got, data + call * piece, piece)) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Reduce(seconds, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_File_close(&file);
    if (!rank) printf("%ld %f %f\n", bytes * size, slowest[0], slowest[1]);
    MPI_Finalize();
    return 0;
}

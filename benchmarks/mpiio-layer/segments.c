/* Collective accesses of segments: each rank has a stretch of the file for itself. Prints the bytes, and seconds of the
   first write, of a second one and of a read, of the slowest rank; every byte is compared. With blocks, each call goes through
   a view of blocks with holes as long between them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    int piece = atoi(argv[2]);
    long bytes = atol(argv[3]) / piece * piece, calls = bytes / piece;
    char *data = malloc(bytes), *got = malloc(bytes);
    for (long at = 0; at < bytes; at++) data[at] = (char)(at * 31 + rank);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Offset base = (MPI_Offset)rank * bytes;
    int block = atoi(argv[4]);
    if (block) {
        MPI_Datatype run, tile;
        MPI_Type_contiguous(block, MPI_BYTE, &run);
        MPI_Type_create_resized(run, 0, 2 * (MPI_Aint)block, &tile);
        MPI_Type_commit(&tile);
        MPI_File_set_view(file, 2 * base, MPI_BYTE, tile, "native", MPI_INFO_NULL);
        base = 0;
    }
    double seconds[3], slowest[3];
    for (int phase = 0; phase < 3; phase++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (long call = 0; call < calls; call++) {
            MPI_Offset at = base + call * piece;
            int answer = phase < 2 ? MPI_File_write_at_all(file, at, data + call * piece, piece, MPI_BYTE, MPI_STATUS_IGNORE)
                                   : MPI_File_read_at_all(file, at, got + call * piece, piece, MPI_BYTE, MPI_STATUS_IGNORE);
            if (answer) MPI_Abort(MPI_COMM_WORLD, 3);
        }
        seconds[phase] = MPI_Wtime() - begin;
    }
    if (memcmp(data, got, bytes)) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Reduce(seconds, slowest, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_File_close(&file);
    if (!rank) printf("%ld %f %f %f\n", bytes * size, slowest[0], slowest[1], slowest[2]);
    MPI_Finalize();
    return 0;
}

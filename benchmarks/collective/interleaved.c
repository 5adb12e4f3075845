/* Collective writes and reads of pieces that ranks have in turn: `interleaved FILE PIECE BYTES-PER-RANK`.
   Prints bytes and the seconds of the slowest rank for a first write, a second one, a read and a second
   read; every byte is compared. Waiting between phases polls politely: ranks may share processors. */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static double slowest(double seconds) {
    double most;
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) sched_yield();
    return most;
}

static unsigned char stamp(uint64_t at) { return (unsigned char)((at * 2654435761u >> 13) ^ (rank * 37)); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) return fprintf(stderr, "usage: interleaved FILE PIECE BYTES-PER-RANK\n"), 2;
    int piece = atoi(argv[2]), bytes = atoi(argv[3]) / piece * piece;
    MPI_Datatype run, tile;
    MPI_Type_contiguous(piece, MPI_BYTE, &run);
    MPI_Type_create_resized(run, 0, (MPI_Aint)piece * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        return fprintf(stderr, "%s cannot be opened\n", argv[1]), 2;
    MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    unsigned char *memory = malloc(bytes);
    for (int at = 0; at < bytes; at++) memory[at] = stamp(at);
    double seconds[4];
    long wrong = 0;
    for (int phase = 0; phase < 4; phase++) {
        int writes = phase < 2, code;
        if (!writes) memset(memory, 0, bytes);
        slowest(0);
        double start = MPI_Wtime();
        code = writes ? MPI_File_write_at_all(file, 0, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                      : MPI_File_read_at_all(file, 0, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        seconds[phase] = slowest(MPI_Wtime() - start);
        wrong += code != 0;
        for (int at = 0; !writes && at < bytes; at++) wrong += memory[at] != stamp(at);
    }
    MPI_File_close(&file);
    if (wrong) fprintf(stderr, "rank %d: %ld bytes are wrong\n", rank, wrong);
    if (!rank) {
        printf("%ld", (long)bytes * size);
        for (int phase = 0; phase < 4; phase++) printf(" %.9f", seconds[phase]);
        printf("\n");
    }
    MPI_Finalize();
    return wrong != 0;
}

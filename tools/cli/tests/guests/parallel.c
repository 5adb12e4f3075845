/* Ranks write one shared file by MPI-IO, collectively and alone, and a file of their own by
 * stdio, read back and compare. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS 64
#define BLOCK 100

int main(int count, char **arguments) {
    int rank, size, bad = 0, total;
    char block[BLOCK], back[BLOCK], name[32];
    MPI_File file;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    memset(block, 'a' + rank, BLOCK);
    for (int i = 0; i < BLOCKS; i++)
        MPI_File_write_at(file, (MPI_Offset)(i * size + rank) * BLOCK, block, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, (MPI_Offset)(BLOCKS * size + rank) * BLOCK, block, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    for (int i = 0; i < BLOCKS; i++) {
        int other = (rank + 1) % size;
        MPI_File_read_at(file, (MPI_Offset)(i * size + other) * BLOCK, back, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
        for (int j = 0; j < BLOCK; j++) bad += back[j] != 'a' + other;
    }
    MPI_File_close(&file);
    sprintf(name, "own.%d", rank);
    FILE *own = fopen(name, "w");
    for (int i = 0; i < 500; i++) fprintf(own, "rank %d line %d\n", rank, i);
    fclose(own);
    MPI_Reduce(&bad, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, %d bad bytes\n", size, total);
    MPI_Finalize();
    return 0;
}

/* Ranks write pieces of one file in turn: turns PATH BYTES COUNT [all]
 *
 * Rank r of n writes COUNT pieces of BYTES at (i * n + r) * BYTES, each byte 'a' + r; with `all` by collective calls. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int bytes = atoi(words[2]), pieces = atoi(words[3]), is_collective = count > 4;
    char *piece = memset(malloc(bytes), 'a' + rank, bytes);
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
    if (MPI_File_open(MPI_COMM_WORLD, words[1], mode, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int number = 0; number < pieces; number++) {
        MPI_Offset at = ((MPI_Offset)number * ranks + rank) * bytes;
        if (is_collective) MPI_File_write_at_all(file, at, piece, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else MPI_File_write_at(file, at, piece, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
}

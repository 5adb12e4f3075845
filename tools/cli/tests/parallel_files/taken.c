/* Fills a device through caches: what a write has answered is there for a sync, and the program goes on when there is room again. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;

static int class_of(int code) {
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    return class;
}

int main(int argc, char **argv) {
    int rank, count = 0, wrong = 0, piece = 1 << 20, code;
    char name[64], *data = malloc(piece), *read = malloc(piece);
    MPI_File file, ballast;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_File_open(MPI_COMM_WORLD, "ballast.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &ballast);
    MPI_File_open(MPI_COMM_WORLD, "a.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    memset(data, 'a' + rank, piece);
    MPI_File_write_at_all(ballast, rank * (MPI_Offset)piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE);
    while (count < 64 && !(code = MPI_File_write_at_all(file, (2 * count + rank) * (MPI_Offset)piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE))) count++;
    fprintf(out, "full %d, sync %d, close %d\n", class_of(code) == MPI_ERR_NO_SPACE, class_of(MPI_File_sync(file)), class_of(MPI_File_close(&ballast)));
    for (int at = 0; at < count; at++) {
        memset(read, 0, piece);
        MPI_File_read_at_all(file, (2 * at + rank) * (MPI_Offset)piece, read, piece, MPI_BYTE, MPI_STATUS_IGNORE);
        wrong += memcmp(data, read, piece) != 0;
    }
    MPI_File_set_size(file, 0);
    if (!rank) MPI_File_delete("ballast.dat", MPI_INFO_NULL);
    /* Servers remove what is large beside their other work. */
    double end = MPI_Wtime() + 100;
    do code = MPI_File_write_at_all(file, rank * (MPI_Offset)piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE);
    while (code && MPI_Wtime() < end);
    fprintf(out, "wrong %d, again %d, sync %d\n", wrong, class_of(code), class_of(MPI_File_sync(file)));
    MPI_File_close(&file);
    fclose(out);
    MPI_Finalize();
    return 0;
}

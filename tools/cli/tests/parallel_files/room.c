/* Room that a file is given ahead: it is there, or it is refused and the file as it was. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;

static void check(const char *what, int code, int wanted) {
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    if (class != wanted) fprintf(out, "%s: class %d instead of %d\n", what, class, wanted);
}

static void sized(MPI_File file, MPI_Offset wanted) {
    MPI_Offset bytes;
    MPI_File_get_size(file, &bytes);
    if (bytes != wanted) fprintf(out, "%lld bytes instead of %lld\n", (long long)bytes, (long long)wanted);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, piece = 1 << 20;
    char name[64], *data = calloc(1, piece);
    MPI_File file, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_File_open(MPI_COMM_WORLD, "a.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    check("write", MPI_File_write_at_all(file, rank * 4, "abcd", 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check("too much", MPI_File_preallocate(file, 64 << 20), MPI_ERR_QUOTA);
    sized(file, 8);
    check("half", MPI_File_preallocate(file, 4 << 20), MPI_SUCCESS);
    sized(file, 4 << 20);
    MPI_File_open(MPI_COMM_WORLD, "b.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &other);
    int refused = 0;
    for (int at = 0; at < 8 && !refused; at++) refused = MPI_File_write_at_all(other, (2 * at + rank) * (MPI_Offset)piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE);
    check("others", refused, MPI_ERR_QUOTA);
    /* Nobody else got what is this file's. */
    check("first", MPI_File_write_at_all(file, rank * (2 << 20), data, piece, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check("second", MPI_File_write_at_all(file, rank * (2 << 20) + piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_close(&other);
    MPI_File_close(&file);
    fprintf(out, "done\n");
    fclose(out);
    MPI_Finalize();
    return 0;
}

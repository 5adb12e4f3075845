/* Files that are there already: one is only read, one is changed in its middle, one is deleted. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, count, code, class;
    char text[64];
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(text, "said.%d", rank);
    FILE *out = fopen(text, "w");

    memset(text, 0, sizeof text);
    code = MPI_File_open(MPI_COMM_WORLD, "read.txt", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_read_at(file, 2 + rank, text, 40, MPI_CHAR, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    fprintf(out, "open %d, read %d: %s\n", code == MPI_SUCCESS, count, text);
    MPI_File_close(&file);

    code = MPI_File_open(MPI_COMM_WORLD, "changed.txt", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    memset(text, 0, sizeof text);
    MPI_File_read_at_all(file, 0, text, 30, MPI_CHAR, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    fprintf(out, "open %d, read %d: %s\n", code == MPI_SUCCESS, count, text);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_at_all(file, 5 + 2 * rank, "<>", 2, MPI_CHAR, &status);
    MPI_File_close(&file);

    code = MPI_File_open(MPI_COMM_WORLD, "changed.txt", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                         MPI_INFO_NULL, &file);
    MPI_Error_class(code, &class);
    fprintf(out, "exclusive %d\n", class == MPI_ERR_FILE_EXISTS || class == MPI_ERR_IO);
    if (rank == 0) {
        code = MPI_File_open(MPI_COMM_SELF, "deleted.txt", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write(file, "x", 1, MPI_CHAR, &status);
        MPI_File_close(&file);
        fprintf(out, "deleted %d\n", MPI_File_delete("deleted.txt", MPI_INFO_NULL) == MPI_SUCCESS);
        fprintf(out, "deleted %d\n", MPI_File_delete("also.txt", MPI_INFO_NULL) == MPI_SUCCESS);
    }
    fclose(out);
    MPI_Finalize();
    return 0;
}

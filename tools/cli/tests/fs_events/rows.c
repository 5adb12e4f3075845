/* Each rank writes its part of rows.dat through a view, and reads it again. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, ranks, bytes[64], again[64];
    MPI_Offset at;
    MPI_File file;
    MPI_Datatype part;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Type_vector(8, 8, 8 * ranks, MPI_INT, &part);
    MPI_Type_commit(&part);
    for (int i = 0; i < 64; i++) bytes[i] = rank * 64 + i;
    if (MPI_File_open(MPI_COMM_WORLD, "rows.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) return 1;
    MPI_File_set_view(file, 32 * rank, MPI_INT, part, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, bytes, 64, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_seek(file, -32, MPI_SEEK_CUR);
    MPI_File_get_position(file, &at);
    MPI_File_read(file, again, 32, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    for (int i = 0; i < 32; i++) if (again[i] != bytes[i + 32]) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return at == 32 ? 0 : 3;
}

/* Files that are no plain files in the end: one goes when it is closed, one has a name of the file system's. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_File_open(MPI_COMM_WORLD, "gone.dat", mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, "gone", 4, MPI_BYTE, MPI_STATUS_IGNORE);
    int failed = MPI_File_close(&file);
    if (argc > 1) {
        failed += MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file);
        failed += MPI_File_close(&file);
    }
    MPI_Finalize();
    return failed != 0;
}

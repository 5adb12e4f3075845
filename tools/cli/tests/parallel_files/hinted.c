/* Hints that have an effect, and one that has none; what MPI_File_get_info gives back is in `said`. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *names[] = {"iolab_durability", "iolab_layout", "striping_factor", "cb_nodes"};
    int rank, is_there;
    char value[MPI_MAX_INFO_VAL];
    MPI_File file;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "iolab_durability", "device");
    MPI_Info_set(info, "iolab_layout", "one");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_File_open(MPI_COMM_WORLD, "hinted.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
    MPI_Info_free(&info);
    MPI_File_get_info(file, &info);
    FILE *said = rank == 0 ? fopen("said", "w") : NULL;
    for (int at = 0; said && at < 4; at++) {
        MPI_Info_get(info, names[at], MPI_MAX_INFO_VAL - 1, value, &is_there);
        fprintf(said, "%s%s %s", at ? " " : "", names[at], is_there ? value : "-");
    }
    if (said)
        fclose(said);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

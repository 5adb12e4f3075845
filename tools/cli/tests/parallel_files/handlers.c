/* Error handlers of a program's own: what was set is what is found, and it outlives the handle that it was set by. */
#include <mpi.h>
#include <stdio.h>

static FILE *said;
static MPI_File open_file;

static void first(MPI_File *file, int *code, ...) { fprintf(said, "first, of it: %d\n", *file == open_file); }
static void second(MPI_File *file, int *code, ...) { fprintf(said, "second, of it: %d\n", *file == open_file); }

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Errhandler set, found, other;
    int rank;
    char name[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "said.%d", rank);
    said = fopen(name, "w");
    MPI_File_create_errhandler(first, &set);
    MPI_File_set_errhandler(MPI_FILE_NULL, set);
    MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    open_file = file;
    MPI_File_get_errhandler(file, &found);
    fprintf(said, "inherited %d\n", found == set);
    MPI_Errhandler_free(&found);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&set);
    /* Its number is free for another one, if the file does not keep it. */
    MPI_File_create_errhandler(second, &other);
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    MPI_File_set_errhandler(file, other);
    MPI_File_get_errhandler(file, &found);
    fprintf(said, "set %d\n", found == other);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&other);
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    MPI_File_get_errhandler(MPI_FILE_NULL, &found);
    fprintf(said, "null file returns %d\n", found == MPI_ERRORS_RETURN);
    MPI_File_close(&file);
    fclose(said);
    MPI_Finalize();
    return 0;
}

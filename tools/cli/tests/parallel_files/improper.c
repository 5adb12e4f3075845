/* Views of datatypes that MPI forbids: before the displacement, going back, overlapping; for writing and for reading. */
#include <mpi.h>
#include <stdio.h>

static FILE *out;

static const char *name_of(int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    return class == MPI_SUCCESS ? "ok" : class == MPI_ERR_IO ? "io" : class == MPI_ERR_TYPE ? "type" : "other";
}

static void try(MPI_File file, const char *what, int first, int length, int second) {
    int lengths[2] = {length, 1}, places[2] = {first, second};
    MPI_Datatype datatype;
    MPI_Type_indexed(2, lengths, places, MPI_INT, &datatype);
    MPI_Type_commit(&datatype);
    int filetype = MPI_File_set_view(file, 0, MPI_INT, datatype, "native", MPI_INFO_NULL);
    int both = MPI_File_set_view(file, 0, datatype, datatype, "native", MPI_INFO_NULL);
    fprintf(out, "%s: filetype %s, etype %s\n", what, name_of(filetype), name_of(both));
    MPI_Type_free(&datatype);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    char name[64];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    int modes[2] = {MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_MODE_RDONLY};
    const char *ways[2] = {"write", "read"};
    /* Held open for writing: what is only read is then read in the file system, too. */
    MPI_File held, file;
    MPI_File_open(MPI_COMM_WORLD, "improper.dat", modes[0], MPI_INFO_NULL, &held);
    for (int way = 0; way < 2; way++) {
        MPI_File_open(MPI_COMM_WORLD, "improper.dat", modes[way], MPI_INFO_NULL, &file);
        sprintf(name, "%s before", ways[way]);
        try(file, name, -2, 1, 2);
        sprintf(name, "%s back", ways[way]);
        try(file, name, 3, 1, 0);
        sprintf(name, "%s overlap", ways[way]);
        try(file, name, 0, 3, 1);
        sprintf(name, "%s proper", ways[way]);
        try(file, name, 0, 3, 4);
        MPI_File_close(&file);
    }
    MPI_File_close(&held);
    fclose(out);
    MPI_Finalize();
    return 0;
}

/* Datatypes that no call may name: not committed, or none at all, also where nothing is moved of them. */
#include <mpi.h>
#include <stdio.h>

static FILE *out;

static int say(const char *what, int code) {
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    const char *name = class == MPI_SUCCESS ? "ok" : class == MPI_ERR_TYPE ? "type" : class == MPI_ERR_ARG ? "arg" : "other";
    fprintf(out, "%s: %s\n", what, name);
    return code == MPI_SUCCESS;
}

static void all(MPI_File file, MPI_Datatype datatype) {
    char data[64] = "abcdefgh";
    MPI_Status status;
    MPI_Request request;
    MPI_Aint extent;
    say("write_at", MPI_File_write_at(file, 0, data, 1, datatype, &status));
    say("nothing", MPI_File_write_at(file, 0, data, 0, datatype, &status));
    say("read_at", MPI_File_read_at(file, 0, data, 1, datatype, &status));
    say("write", MPI_File_write(file, data, 1, datatype, &status));
    say("write_shared", MPI_File_write_shared(file, data, 1, datatype, &status));
    say("write_all", MPI_File_write_all(file, data, 1, datatype, &status));
    say("nothing by all", MPI_File_read_all(file, data, 0, datatype, &status));
    if (say("iwrite", MPI_File_iwrite(file, data, 1, datatype, &request))) MPI_Wait(&request, &status);
    if (say("iread_at_all", MPI_File_iread_at_all(file, 0, data, 1, datatype, &request))) MPI_Wait(&request, &status);
    if (say("write_all_begin", MPI_File_write_all_begin(file, data, 1, datatype))) MPI_File_write_all_end(file, data, &status);
    say("write_ordered", MPI_File_write_ordered(file, data, 1, datatype, &status));
    say("etype", MPI_File_set_view(file, 0, datatype, datatype, "native", MPI_INFO_NULL));
    say("filetype", MPI_File_set_view(file, 0, MPI_BYTE, datatype, "native", MPI_INFO_NULL));
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    say("extent", MPI_File_get_type_extent(file, datatype, &extent));
}

int main(int argc, char **argv) {
    int rank;
    char name[64], data[64] = "ijklmnop";
    MPI_File file;
    MPI_Datatype datatype;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_File_open(MPI_COMM_WORLD, "a.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Type_contiguous(4, MPI_BYTE, &datatype);
    all(file, datatype);
    all(file, MPI_DATATYPE_NULL);
    MPI_Type_commit(&datatype);
    say("committed", MPI_File_write_at_all(file, 4 * rank, data, 1, datatype, MPI_STATUS_IGNORE));
    MPI_File_close(&file);
    fclose(out);
    MPI_Finalize();
    return 0;
}

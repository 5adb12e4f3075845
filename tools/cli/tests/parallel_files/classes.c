/* One rank's mistake in a call of all ranks: all are told the class of it, and what MPI wants to be the same is. */
#include <mpi.h>
#include <stdio.h>

static FILE *out;
static int rank;

static void check(const char *what, int code, int wanted) {
    int class = 0;
    MPI_Error_class(code, &class);
    if (class != wanted) fprintf(out, "%s: class %d instead of %d\n", what, class, wanted);
}

int main(int argc, char **argv) {
    char name[32], data[8] = "abcdefg";
    MPI_File file;
    MPI_Offset size;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_File_open(MPI_COMM_WORLD, "a.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int wrong = 0; wrong < 2; wrong++) {
        int count = rank == wrong ? -1 : 1;
        MPI_Datatype datatype = rank == wrong ? MPI_DATATYPE_NULL : MPI_BYTE;
        const char *form = rank == wrong ? "strange" : "native";
        check("count", MPI_File_write_all(file, data, count, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
        check("datatype", MPI_File_write_at_all(file, 0, data, 1, datatype, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        check("read count", MPI_File_read_all(file, data, count, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
        check("ordered count", MPI_File_write_ordered(file, data, count, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
        check("ordered datatype", MPI_File_read_ordered(file, data, 1, datatype, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        check("representation", MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, form, MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
        int code = MPI_File_iwrite_all(file, data, count, MPI_BYTE, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        check("started count", code, MPI_ERR_COUNT);
        code = MPI_File_write_all_begin(file, data, count, MPI_BYTE);
        if (code == MPI_SUCCESS) code = MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE);
        check("count in halves", code, MPI_ERR_COUNT);
    }
    /* Several mistakes are that of the lowest rank. */
    check("two", MPI_File_write_all(file, data, rank ? 1 : -1, rank ? MPI_DATATYPE_NULL : MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    check("two ordered", MPI_File_write_ordered(file, data, rank ? 1 : -1, rank ? MPI_DATATYPE_NULL : MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);

    check("size", MPI_File_set_size(file, 5000), MPI_SUCCESS);
    check("different sizes", MPI_File_set_size(file, 10 + rank), MPI_ERR_ARG);
    check("different room", MPI_File_preallocate(file, 10000 + rank), MPI_ERR_ARG);
    MPI_File_get_size(file, &size);
    if (size != 5000) fprintf(out, "%lld bytes\n", (long long)size);
    MPI_Offset at;
    MPI_File_get_position_shared(file, &at);
    check("different ways", MPI_File_seek_shared(file, rank ? at : 0, rank ? MPI_SEEK_SET : MPI_SEEK_CUR), MPI_ERR_ARG);
    check("same way", MPI_File_seek_shared(file, 0, MPI_SEEK_CUR), MPI_SUCCESS);
    check("after them", MPI_File_write_all(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_close(&file);
    fprintf(out, "done\n");
    fclose(out);
    MPI_Finalize();
    return 0;
}

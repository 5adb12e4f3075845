/* Collective accesses whose parts are apart, and others beside them. The file is left for comparison, and what each
   call said (`said`). With an argument: the program's own hint. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1000 };

static int rank, size;
static FILE *out;
static MPI_File file;
static char data[BYTES], got[BYTES];

static void say(const char *what, int answer, MPI_Status *status, MPI_Datatype type) {
    int count = -1, class = 0;
    MPI_Offset position = -1;
    if (!answer) MPI_Get_count(status, type, &count);
    MPI_Error_class(answer, &class);
    MPI_File_get_position(file, &position);
    fprintf(out, "%s: class %d, count %d, position %lld\n", what, class, count, (long long)position);
}

int main(int argc, char **argv) {
    char name[64], value[MPI_MAX_INFO_VAL + 1];
    int flag = 0, keys = 0;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "said.%d", rank);
    out = fopen(name, "w");
    for (int at = 0; at < BYTES; at++) data[at] = 'a' + (rank * 7 + at) % 26;

    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", argc > 1 ? argv[1] : "automatic");
    /* Each rank names the file in its own way. */
    const char *path = rank ? "./out.dat" : "out.dat";
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
    /* Libraries write what was in their memory where nobody has written yet. */
    MPI_File_set_size(file, 70000);

    int answer = MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, data, BYTES, MPI_BYTE, &status);
    say("segments", answer, &status, MPI_BYTE);
    MPI_File_seek(file, 10000 + (MPI_Offset)rank * BYTES, MPI_SEEK_SET);
    answer = MPI_File_write_all(file, data, BYTES / 2, MPI_BYTE, &status);
    say("by the pointer", answer, &status, MPI_BYTE);
    answer = MPI_File_write_all(file, data, 7, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &(MPI_Offset){0});
    answer = MPI_File_write_at_all(file, 20000 + (MPI_Offset)(size - 1 - rank) * BYTES, data, BYTES, MPI_BYTE, &status);
    say("in another order", answer, &status, MPI_BYTE);

    MPI_Datatype inter, apart;
    MPI_Type_vector(10, 50, 50 * size, MPI_BYTE, &inter);
    MPI_Type_commit(&inter);
    MPI_File_set_view(file, 30000 + 50 * rank, MPI_BYTE, inter, "native", info);
    answer = MPI_File_write_all(file, data, 500, MPI_BYTE, &status);
    say("interleaved", answer, &status, MPI_BYTE);
    MPI_Type_vector(10, 5, 10, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    MPI_File_set_view(file, 50000 + 4000 * rank, MPI_INT, apart, "native", MPI_INFO_NULL);
    answer = MPI_File_write_all(file, data, rank ? 50 : 0, MPI_INT, &status);
    say("one has nothing", answer, &status, MPI_INT);
    answer = MPI_File_write_at_all(file, 5, data, 40, MPI_INT, &status);
    say("with holes", answer, &status, MPI_INT);
    answer = MPI_File_read_at_all(file, 5, got, 40, MPI_INT, &status);
    say("read", answer, &status, MPI_INT);
    fprintf(out, "same: %d\n", !memcmp(data, got, 40 * sizeof(int)));

    MPI_File_set_atomicity(file, 1);
    answer = MPI_File_write_at_all(file, 50, data, 10, MPI_INT, &status);
    say("atomic", answer, &status, MPI_INT);
    MPI_File_set_atomicity(file, 0);
    MPI_File_write_at_all_begin(file, 60, data, 10, MPI_INT);
    answer = MPI_File_write_at_all_end(file, data, &status);
    say("split", answer, &status, MPI_INT);
    MPI_Request request;
    MPI_File_iwrite_at_all(file, 70, data, 10, MPI_INT, &request);
    answer = MPI_Wait(&request, &status);
    say("non-blocking", answer, &status, MPI_INT);
    answer = MPI_File_write_at_all(file, -5, data, 10, MPI_INT, &status);
    say("no offset", answer, &status, MPI_INT);
    answer = MPI_File_write_at_all(file, 80, data, 10, MPI_INT, &status);
    say("after it", answer, &status, MPI_INT);

    MPI_File_set_info(file, info);
    MPI_Info_get_nkeys(info, &keys);
    MPI_Info_get(info, "romio_cb_write", MPI_MAX_INFO_VAL, value, &flag);
    fprintf(out, "own hints: %d, %s\n", keys, flag ? value : "none");
    MPI_Info_free(&info);
    MPI_Type_free(&inter);
    MPI_Type_free(&apart);
    MPI_File_close(&file);

    /* Alone, read-only, and opened where it cannot be. */
    if (MPI_File_open(MPI_COMM_SELF, "out.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
    answer = MPI_File_read_at_all(file, 69990, got, 100, MPI_BYTE, &status);
    fprintf(out, "at the end: %d\n", answer);
    answer = MPI_File_write_at_all(file, 0, got, 1, MPI_BYTE, &status);
    fprintf(out, "read-only: %d\n", answer != 0);
    MPI_File_close(&file);
    answer = MPI_File_open(MPI_COMM_WORLD, "nowhere/out.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    fprintf(out, "nowhere: %d\n", answer != 0);
    fclose(out);
    MPI_Finalize();
    return 0;
}

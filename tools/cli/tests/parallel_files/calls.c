/* Every other function on files: modes, sizes, ends of files, pointers, errors, hints, requests, handlers. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static FILE *out;

static const char *name_of(int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    if (class == MPI_SUCCESS) return "ok";
    if (class == MPI_ERR_ARG) return "arg";
    if (class == MPI_ERR_IO) return "io";
    if (class == MPI_ERR_AMODE) return "amode";
    if (class == MPI_ERR_BAD_FILE) return "bad file";
    if (class == MPI_ERR_NO_SUCH_FILE) return "no such file";
    if (class == MPI_ERR_FILE_EXISTS) return "file exists";
    if (class == MPI_ERR_READ_ONLY) return "read only";
    if (class == MPI_ERR_ACCESS) return "access";
    if (class == MPI_ERR_COUNT) return "count";
    if (class == MPI_ERR_NOT_SAME) return "not same";
    if (class == MPI_ERR_UNSUPPORTED_DATAREP) return "datarep";
    return "another";
}

static void check(const char *what, int code) { fprintf(out, "%s: %s\n", what, name_of(code)); }

static void say(const char *form, ...) {
    va_list rest;
    va_start(rest, form);
    vfprintf(out, form, rest);
    va_end(rest);
}

static long long position(MPI_File file) {
    MPI_Offset at = -1;
    MPI_File_get_position(file, &at);
    return at;
}

static long long length(MPI_File file) {
    MPI_Offset at = -1;
    MPI_File_get_size(file, &at);
    return at;
}

static int count_of(MPI_Status *status, MPI_Datatype type) {
    int count = -7;
    MPI_Get_count(status, type, &count);
    return count;
}

static int calls;
static void own_handler(MPI_File *file, int *code, ...) {
    calls++;
    say("handler: %s\n", name_of(*code));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[64], buffer[4096], got[4096];
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_File file, other;
    MPI_Status status;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    for (int at = 0; at < 4096; at++) buffer[at] = 'a' + (at * 7 + rank) % 26;

    /* Modes and names. */
    check("nothing to read", MPI_File_open(all, "no.dat", MPI_MODE_RDONLY, none, &file));
    check("nothing to write", MPI_File_open(all, "no.dat", MPI_MODE_WRONLY, none, &file));
    check("no directory", MPI_File_open(all, "no/no.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file));
    if (rank == 0) fclose(fopen("plain.dat", "w"));
    MPI_Barrier(all);
    check("under a file", MPI_File_open(all, "plain.dat/no.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file));
    check("deeper", MPI_File_open(all, "plain.dat/no/deep.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file));
    check("exclusive, not created", MPI_File_open(all, "plain.dat", MPI_MODE_EXCL | MPI_MODE_RDWR, none, &file));
    check("its end", MPI_File_close(&file));
    check("two ways", MPI_File_open(all, "no.dat", MPI_MODE_RDONLY | MPI_MODE_RDWR, none, &file));
    check("create to read", MPI_File_open(all, "no.dat", MPI_MODE_CREATE | MPI_MODE_RDONLY, none, &file));
    check("delete nothing", rank ? 0 : MPI_File_delete("no.dat", none));
    MPI_Barrier(all);
    check("exclusive", MPI_File_open(all, "calls.dat", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, none, &file));
    int mode, flag;
    MPI_File_get_amode(file, &mode);
    say("mode %d\n", mode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR));
    check("again", MPI_File_open(all, "calls.dat", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, none, &other));
    MPI_Group group, world;
    MPI_File_get_group(file, &group);
    MPI_Comm_group(all, &world);
    int result;
    MPI_Group_compare(group, world, &result);
    say("group %d\n", result == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_File_get_atomicity(file, &flag);
    say("atomic %d\n", flag);

    /* Length and the end of the file. */
    say("length %lld\n", length(file));
    MPI_Barrier(all);
    check("write", MPI_File_write_at(file, rank * 100, buffer, 100, MPI_CHAR, &status));
    say("wrote %d\n", count_of(&status, MPI_CHAR));
    MPI_File_sync(file);
    MPI_Barrier(all);
    MPI_File_sync(file);
    say("length %lld\n", length(file));
    for (int back = 0; back < 3; back++) {
        memset(got, '-', sizeof got);
        check("read at end", MPI_File_read_at(file, size * 100 - back * 25, got, 60, MPI_CHAR, &status));
        say("got %d %.62s\n", count_of(&status, MPI_CHAR), got);
    }
    check("set size", MPI_File_set_size(file, size * 100 + 50));
    say("length %lld\n", length(file));
    check("negative size", MPI_File_set_size(file, -1));
    memset(got, '-', sizeof got);
    MPI_File_read_at(file, size * 100, got, 20, MPI_CHAR, &status);
    say("hole %d %d %d\n", count_of(&status, MPI_CHAR), got[0], got[19]);
    check("preallocate", MPI_File_preallocate(file, 10));
    say("length %lld\n", length(file));
    check("shorter", MPI_File_set_size(file, 70));
    say("length %lld\n", length(file));

    /* Pointers. */
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 40 * rank, MPI_INT, MPI_INT, "native", none);
    check("write", MPI_File_write(file, buffer, 10, MPI_INT, &status));
    say("position %lld count %d\n", position(file), count_of(&status, MPI_INT));
    MPI_Barrier(all);
    check("seek", MPI_File_seek(file, 3, MPI_SEEK_SET));
    check("seek on", MPI_File_seek(file, 2, MPI_SEEK_CUR));
    say("position %lld\n", position(file));
    check("before", MPI_File_seek(file, -6, MPI_SEEK_CUR));
    say("position %lld\n", position(file));
    check("end", MPI_File_seek(file, -1, MPI_SEEK_END));
    say("position %lld\n", position(file));
    check("no whence", MPI_File_seek(file, 0, 7777));
    check("half etypes", MPI_File_write(file, buffer, 3, MPI_CHAR, &status));
    check("negative offset", MPI_File_read_at(file, -1, got, 1, MPI_INT, &status));
    check("negative count", MPI_File_read_at(file, 0, got, -1, MPI_INT, &status));
    check("no multiple", MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", none));
    check("negative displacement", MPI_File_set_view(file, -4, MPI_INT, MPI_INT, "native", none));
    check("representation", MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "roman", none));
    MPI_Offset at;
    MPI_File_get_byte_offset(file, 5, &at);
    say("byte %lld\n", (long long)at);
    MPI_Aint extent;
    MPI_File_get_type_extent(file, MPI_DOUBLE, &extent);
    say("extent %ld\n", (long)extent);

    /* What goes on. */
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_File_set_view(file, 400 * rank, MPI_BYTE, MPI_BYTE, "native", none);
    check("iwrite_at", MPI_File_iwrite_at(file, 0, buffer, 100, MPI_BYTE, &requests[0]));
    check("iwrite_at", MPI_File_iwrite_at(file, 100, buffer + 100, 100, MPI_BYTE, &requests[1]));
    MPI_File_seek(file, 200, MPI_SEEK_SET);
    check("iwrite", MPI_File_iwrite(file, buffer + 200, 50, MPI_INT, &requests[2]));
    MPI_Waitall(3, requests, statuses);
    say("counts %d %d %d\n", count_of(&statuses[0], MPI_BYTE), count_of(&statuses[1], MPI_BYTE), count_of(&statuses[2], MPI_INT));
    say("null %d position %lld\n", requests[0] == MPI_REQUEST_NULL, position(file));
    MPI_Barrier(all);
    check("iread_at", MPI_File_iread_at(file, 20, got, 100, MPI_BYTE, &requests[0]));
    MPI_Wait(&requests[0], &status);
    say("got %d %s\n", count_of(&status, MPI_BYTE), memcmp(got, buffer + 20, 100) ? "DIFFERENT" : "same");
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    memset(got, 0, sizeof got);
    check("iread", MPI_File_iread(file, got, 400, MPI_BYTE, &requests[0]));
    do MPI_Test(&requests[0], &flag, &status); while (!flag);
    say("got %d %s\n", count_of(&status, MPI_BYTE), memcmp(got, buffer, 400) ? "DIFFERENT" : "same");
    memset(got, 0, sizeof got);
    check("iread_at_all", MPI_File_iread_at_all(file, 0, got, 400, MPI_BYTE, &requests[0]));
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    say("got %s\n", memcmp(got, buffer, 400) ? "DIFFERENT" : "same");

    /* In two halves. */
    check("begin", MPI_File_write_at_all_begin(file, 0, buffer, 200, MPI_BYTE));
    check("end", MPI_File_write_at_all_end(file, buffer, &status));
    say("wrote %d\n", count_of(&status, MPI_BYTE));
    MPI_Barrier(all);
    memset(got, 0, sizeof got);
    MPI_File_seek(file, 50, MPI_SEEK_SET);
    check("begin", MPI_File_read_all_begin(file, got, 100, MPI_BYTE));
    check("end", MPI_File_read_all_end(file, got, &status));
    say("got %d %s\n", count_of(&status, MPI_BYTE), memcmp(got, buffer + 50, 100) ? "DIFFERENT" : "same");

    /* In the order of ranks. */
    MPI_File_set_view(file, 64, MPI_INT, MPI_INT, "native", none);
    MPI_File_get_position_shared(file, &at);
    say("shared %lld\n", (long long)at);
    MPI_Barrier(all);
    check("ordered", MPI_File_write_ordered(file, buffer, 3 + rank, MPI_INT, &status));
    check("ordered", MPI_File_write_ordered(file, buffer + 100, rank == 1 ? 0 : 2, MPI_INT, &status));
    say("wrote %d\n", count_of(&status, MPI_INT));
    MPI_Barrier(all);
    MPI_File_get_position_shared(file, &at);
    say("shared %lld\n", (long long)at);
    MPI_Barrier(all);
    check("seek shared", MPI_File_seek_shared(file, 2, MPI_SEEK_SET));
    memset(got, 0, sizeof got);
    check("begin", MPI_File_read_ordered_begin(file, got, 2, MPI_INT));
    check("end", MPI_File_read_ordered_end(file, got, &status));
    say("got %d %.8s\n", count_of(&status, MPI_INT), got);
    MPI_Barrier(all);
    MPI_File_get_position_shared(file, &at);
    say("shared %lld\n", (long long)at);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", none);

    /* The shared pointer of a file that nobody else has, and its atomic mode. */
    sprintf(name, "shared.%d.dat", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, none, &other);
    check("write shared", MPI_File_write_shared(other, buffer, 30, MPI_CHAR, &status));
    check("iwrite shared", MPI_File_iwrite_shared(other, buffer + 30, 12, MPI_CHAR, &requests[0]));
    MPI_Wait(&requests[0], &status);
    say("wrote %d\n", count_of(&status, MPI_CHAR));
    check("seek shared", MPI_File_seek_shared(other, 5, MPI_SEEK_SET));
    check("read shared", MPI_File_read_shared(other, got, 20, MPI_CHAR, &status));
    MPI_File_get_position_shared(other, &at);
    say("got %d %.20s position %lld\n", count_of(&status, MPI_CHAR), got, (long long)at);
    check("atomic", MPI_File_set_atomicity(other, 1));
    MPI_File_get_atomicity(other, &flag);
    say("atomic %d\n", flag != 0);
    MPI_File_close(&other);

    /* Two files at once, ignored statuses, nothing at all, ranks with unequal amounts. */
    MPI_File_open(all, "other.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &other);
    check("unequal", MPI_File_write_at_all(other, 1000 * rank, buffer, 1000 - 333 * (rank % 3), MPI_BYTE, MPI_STATUS_IGNORE));
    check("nothing", MPI_File_write_at_all(file, 0, NULL, 0, MPI_BYTE, &status));
    say("wrote %d\n", count_of(&status, MPI_BYTE));
    check("some nothing", MPI_File_read_at_all(other, 0, got, rank % 2 ? 0 : 77, MPI_BYTE, &status));
    say("got %d\n", count_of(&status, MPI_BYTE));
    MPI_Barrier(all);
    say("lengths %lld %lld\n", length(file), length(other));
    check("close", MPI_File_close(&other));
    check("close", MPI_File_close(&file));
    say("null %d\n", file == MPI_FILE_NULL);

    /* One file for each rank, and one that is not there any more. */
    sprintf(name, "own.%d.dat", rank);
    check("own", MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, none, &file));
    check("write own", MPI_File_write_all(file, buffer, 777 + rank, MPI_BYTE, &status));
    check("read own", MPI_File_read_at(file, 0, got, 1, MPI_BYTE, &status));
    MPI_File_close(&file);
    check("append", MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_APPEND | MPI_MODE_WRONLY, none, &file));
    say("position %lld\n", position(file));
    MPI_File_write(file, "end", 3, MPI_CHAR, &status);
    MPI_File_close(&file);
    check("read", MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, none, &file));
    check("write read only", MPI_File_write_at(file, 0, buffer, 1, MPI_BYTE, &status));
    check("size read only", MPI_File_set_size(file, 3));
    say("length %lld\n", length(file));
    MPI_File_close(&file);
    check("temporary", MPI_File_open(all, "gone.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, none, &file));
    MPI_File_write_at(file, 0, buffer, 10, MPI_BYTE, &status);
    MPI_File_close(&file);
    MPI_Barrier(all);
    check("gone", MPI_File_open(MPI_COMM_SELF, "gone.dat", MPI_MODE_RDONLY, none, &file));
    MPI_Barrier(all);
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, "deleted.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file);
        MPI_File_close(&file);
        check("delete", MPI_File_delete("deleted.dat", none));
        check("delete again", MPI_File_delete("deleted.dat", none));
    }
    MPI_Barrier(all);

    /* Handlers. */
    MPI_Errhandler handler, found;
    MPI_File_open(all, "handled.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file);
    MPI_File_get_errhandler(file, &found);
    say("returns %d\n", found == MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(own_handler, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_Errhandler_free(&handler);
    check("seen", MPI_File_seek(file, -1, MPI_SEEK_SET));
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    check("unseen", MPI_File_seek(file, -1, MPI_SEEK_SET));
    say("calls %d\n", calls);

    /* Hints. */
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "1048576");
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
    check("hints", MPI_File_get_info(file, &info));
    say("info %d\n", info != MPI_INFO_NULL);
    MPI_Info_free(&info);

    /* Fortran's number of a file and back. */
#ifdef MPI_ABI_VERSION
    say("number %d\n", MPI_File_fromint(MPI_File_toint(file)) == file);
#else
    say("number %d\n", MPI_File_f2c(MPI_File_c2f(file)) == file);
#endif
    MPI_File_close(&file);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    fclose(out);
    MPI_Finalize();
    return 0;
}

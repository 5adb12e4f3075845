/* What goes wrong on one rank only, or in an order no library checks: nobody waits for ever. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;
static int rank, size;
static MPI_File file;

static int class_of(int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    return class;
}

static void check(const char *what, int code, int wanted) {
    if (class_of(code) != wanted) fprintf(out, "%s: class %d instead of %d\n", what, class_of(code), wanted);
}

static void *write_part(void *part) {
    long at = (long)part;
    char bytes[1000];
    MPI_Status status;
    memset(bytes, 'a' + at, sizeof bytes);
    for (int round = 0; round < 20; round++)
        MPI_File_write_at(file, (rank * 4 + at) * 20000 + round * 1000, bytes, 1000, MPI_BYTE, &status);
    return NULL;
}

int main(int argc, char **argv) {
    char name[32], data[100], got[100];
    int provided, count;
    MPI_File other;
    MPI_Status status;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    memset(data, 'x', sizeof data);
    int create = MPI_MODE_CREATE | MPI_MODE_RDWR;

    /* Ranks that do not mean the same. */
    check("names", MPI_File_open(MPI_COMM_WORLD, rank ? "b.dat" : "a.dat", create, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    check("modes", MPI_File_open(MPI_COMM_WORLD, "a.dat", rank ? create | MPI_MODE_APPEND : create, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    if (file != MPI_FILE_NULL) fprintf(out, "a file is left\n");

    /* One rank's mistake is everybody's error in a collective call. */
    MPI_File_open(MPI_COMM_WORLD, "c.dat", create, MPI_INFO_NULL, &file);
    int code = MPI_File_write_at_all(file, rank ? 0 : -5, data, 10, MPI_BYTE, &status);
    check("negative offset on rank 0", code, MPI_ERR_ARG);
    code = MPI_File_write_at_all(file, 0, data, 10, rank ? MPI_DATATYPE_NULL : MPI_BYTE, &status);
    if (size > 1 && code == MPI_SUCCESS) fprintf(out, "no datatype on rank 1 is no error\n");
    code = MPI_File_set_view(file, 0, MPI_INT, rank ? MPI_INT : MPI_CHAR, "native", MPI_INFO_NULL);
    check("filetype of rank 0", code, MPI_ERR_ARG);
    check("after it", MPI_File_write_at_all(file, rank * 10, data, 10, MPI_BYTE, &status), MPI_SUCCESS);
    check("representation", MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "strange", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);

    /* Halves that do not fit. */
    check("end of nothing", MPI_File_read_all_end(file, got, &status), MPI_ERR_IO);
    MPI_File_read_at_all_begin(file, 0, got, 10, MPI_BYTE);
    check("second begin", MPI_File_read_at_all_begin(file, 0, got, 10, MPI_BYTE), MPI_ERR_IO);
    check("other end", MPI_File_write_all_end(file, got, &status), MPI_ERR_IO);
    check("end", MPI_File_read_at_all_end(file, got, &status), MPI_SUCCESS);
    if (rank == 0) check("shared alone", MPI_File_write_shared(file, data, 1, MPI_BYTE, &status), MPI_SUCCESS);
    MPI_File_close(&file);

    /* No view goes back and forth; one whose offsets overlap is for reading only. */
#ifdef OPEN_MPI
    const int improper = MPI_ERR_TYPE;
#else
    const int improper = MPI_ERR_IO;
#endif
    MPI_File_open(MPI_COMM_WORLD, "c.dat", create, MPI_INFO_NULL, &file);
    int lengths[3] = {2, 3, 2}, places[3] = {7, 0, 7}, pair[2] = {3, 2}, overlapping[2] = {0, 2};
    MPI_Datatype back, twice;
    MPI_Type_indexed(3, lengths, places, MPI_CHAR, &back);
    MPI_Type_commit(&back);
    MPI_Type_indexed(2, pair, overlapping, MPI_CHAR, &twice);
    MPI_Type_commit(&twice);
    check("written view", MPI_File_set_view(file, 0, MPI_CHAR, back, "native", MPI_INFO_NULL), improper);
    check("overlapping view", MPI_File_set_view(file, 0, MPI_CHAR, twice, "native", MPI_INFO_NULL), improper);
    for (int at = 0; at < 100; at++) data[at] = '0' + at % 10;
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, data, rank ? 0 : 12, MPI_BYTE, &status);
    MPI_File_set_size(file, 12);
    MPI_File_close(&file);
    if (rank == 0) {
        check("read", MPI_File_open(MPI_COMM_SELF, "c.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &other), MPI_SUCCESS);
        check("read view", MPI_File_set_view(other, 0, MPI_CHAR, back, "native", MPI_INFO_NULL), improper);
        check("read twice", MPI_File_set_view(other, 0, MPI_CHAR, twice, "native", MPI_INFO_NULL), MPI_SUCCESS);
        memset(got, 0, sizeof got);
        MPI_File_read_at(other, 1, got, 20, MPI_CHAR, &status);
        MPI_Get_count(&status, MPI_CHAR, &count);
        if (count != 14 || memcmp(got, "12234566789001", 14)) fprintf(out, "read %d: %s\n", count, got);
        MPI_File_close(&other);
    }

    /* Threads on one handle, and the two halves of memory of a large amount. */
    MPI_File_open(MPI_COMM_WORLD, "threads.dat", create, MPI_INFO_NULL, &file);
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_t threads[4];
        for (long part = 0; part < 4; part++) pthread_create(&threads[part], NULL, write_part, (void *)part);
        for (int part = 0; part < 4; part++) pthread_join(threads[part], NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        char *all = malloc(80000);
        MPI_File_read_at_all(file, rank * 80000, all, 80000, MPI_BYTE, &status);
        for (int at = 0; at < 80000; at++)
            if (all[at] != 'a' + at / 20000) {
                fprintf(out, "byte %d is %c\n", at, all[at]);
                break;
            }
    }
    MPI_File_close(&file);
    fprintf(out, "done\n");
    fclose(out);
    MPI_Finalize();
    return 0;
}

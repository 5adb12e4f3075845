/* Reads at, over and behind the end of a file, in all forms; each must say how many bytes there were. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static FILE *out;
static int right;
static char got[512];

static void check(const char *what, MPI_Status *status, long wanted, const char *data) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    int ok = count == wanted && memcmp(got, data, wanted) == 0;
    for (long at = wanted; at < (long)sizeof got; at++) ok = ok && got[at] == '-';
    if (ok) right++;
    else fprintf(out, "%s: %d for %ld\n", what, count, wanted);
    memset(got, '-', sizeof got);
}

/* `data` is what the view shows from `offset` on, `there` bytes of it. */
static void all_forms(MPI_File file, long offset, long wanted, long there, const char *data) {
    MPI_Status status;
    MPI_Request request;
    memset(got, '-', sizeof got);
    MPI_File_read_at(file, offset, got, wanted, MPI_BYTE, &status);
    check("read_at", &status, there, data);
    MPI_File_read_at_all(file, offset, got, wanted, MPI_BYTE, &status);
    check("read_at_all", &status, there, data);
    MPI_File_iread_at(file, offset, got, wanted, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    check("iread_at", &status, there, data);
    MPI_File_iread_at_all(file, offset, got, wanted, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    check("iread_at_all", &status, there, data);
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    MPI_File_read(file, got, wanted, MPI_BYTE, &status);
    check("read", &status, there, data);
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    MPI_File_read_all(file, got, wanted, MPI_BYTE, &status);
    check("read_all", &status, there, data);
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    MPI_File_iread(file, got, wanted, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    check("iread", &status, there, data);
    MPI_File_read_at_all_begin(file, offset, got, wanted, MPI_BYTE);
    MPI_File_read_at_all_end(file, got, &status);
    check("read_at_all_begin", &status, there, data);
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, got, wanted, MPI_BYTE);
    MPI_File_read_all_end(file, got, &status);
    check("read_all_begin", &status, there, data);
    MPI_Datatype gaps;
    MPI_Type_vector(2, 8, 16, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    char apart[64];
    memset(apart, '-', sizeof apart);
    MPI_File_read_at(file, offset, apart, 1, gaps, &status);
    long both = there < 16 ? there : 16;
    memcpy(got, apart, both < 8 ? both : 8);
    if (both > 8) memcpy(got + 8, apart + 16, both - 8);
    for (long at = both; at < 16; at++) got[at] = apart[at < 8 ? at : at + 8];
    check("with gaps in memory", &status, both, data);
    MPI_Type_free(&gaps);
}

int main(int argc, char **argv) {
    char name[32], data[300], seen[150];
    int rank;
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    for (int at = 0; at < 300; at++) data[at] = 'a' + at % 26;
    MPI_File_open(MPI_COMM_WORLD, "ends.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 0, data, rank ? 0 : 300, MPI_BYTE, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    all_forms(file, 100, 100, 100, data + 100);
    all_forms(file, 270, 100, 30, data + 270);
    all_forms(file, 300, 100, 0, data);
    all_forms(file, 100000, 100, 0, data);

    /* Every other four bytes: 148 from the second on are there. */
    MPI_Datatype four, every;
    MPI_Type_contiguous(4, MPI_BYTE, &four);
    MPI_Type_create_resized(four, 0, 8, &every);
    MPI_Type_commit(&every);
    MPI_File_set_view(file, 4, MPI_BYTE, every, "native", MPI_INFO_NULL);
    for (int at = 0; at < 148; at++) seen[at] = data[4 + at / 4 * 8 + at % 4];
    all_forms(file, 130, 100, 18, seen + 130);

    /* Each rank at its own end. */
    memset(got, '-', sizeof got);
    MPI_File_read_at_all(file, 140 + 100 * rank, got, 10, MPI_BYTE, &status);
    check("one rank behind it", &status, rank ? 0 : 8, seen + 140);
    MPI_File_set_size(file, 400);
    memset(seen, 0, sizeof seen);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 310, got, 200, MPI_BYTE, &status);
    check("a hole", &status, 90, seen);
    fprintf(out, "%d right\n", right);
    fclose(out);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

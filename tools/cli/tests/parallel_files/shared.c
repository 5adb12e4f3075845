/* The shared pointer of several ranks: what is written through it, one rank at a time or in their order, where
   it stands, and what other calls do to it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 40

static int rank, size, right;
static FILE *out;
static MPI_File file;

static void expect(int is_right, const char *what)
{
    if (is_right) right++;
    else fprintf(out, "wrong: %s\n", what);
}

static MPI_Offset shared(void)
{
    MPI_Offset at = -1;
    /* All have come here, and nobody goes on before all have seen it. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(file, &at);
    MPI_Barrier(MPI_COMM_WORLD);
    return at;
}

static int class_of(int code)
{
    int class = 0;
    MPI_Error_class(code, &class);
    return class;
}

/* Every record of every rank is there once, those of a rank in their order; gives how many there are. */
static int all_there(const int *records, int count)
{
    int *next = calloc(size, sizeof(int)), good = 0;
    for (int i = 0; i < count; i++) {
        const int *record = records + 3 * i;
        good += record[0] < size && record[1] == next[record[0]]++ && record[2] == record[0] * record[1];
    }
    free(next);
    return good;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[32];
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    MPI_Status status;
    MPI_Datatype record;
    MPI_Type_contiguous(3, MPI_INT, &record);
    MPI_Type_commit(&record);
    int total = RECORDS * size, count, *records = malloc(3 * sizeof(int) * total);

    /* One after the other, in whatever order. */
    MPI_File_open(all, "shared.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, none, &file);
    MPI_File_set_view(file, 20, record, record, "native", none);
    for (int i = 0; i < RECORDS; i++) {
        int own[3] = {rank, i, rank * i};
        MPI_Request request;
        if (i % 3) MPI_File_write_shared(file, own, 1, record, &status);
        else {
            MPI_File_iwrite_shared(file, own, 1, record, &request);
            MPI_Wait(&request, &status);
        }
    }
    expect(shared() == total, "where the pointer is behind all records");
    MPI_File_read_at_all(file, 0, records, total, record, &status);
    expect(all_there(records, total) == total, "a record twice or never");

    /* Read so, too; what meets the end moves the pointer as far as was asked. */
    expect(MPI_File_seek_shared(file, -total, MPI_SEEK_CUR) == 0 && shared() == 0, "back to the start");
    int mine = 0, sum = 0;
    while (MPI_File_read_shared(file, records + 3 * mine, 1, record, &status) == 0) {
        MPI_Get_count(&status, record, &count);
        if (count < 1) break;
        mine++;
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
    expect(sum == total, "a record read twice or never");
    expect(shared() == total + size, "where the pointer is behind the end");

    /* In the order of ranks, from where the pointer is; and in two halves. */
    MPI_File_seek_shared(file, 0, MPI_SEEK_END);
    expect(shared() == total, "the end");
    if (rank == size - 1) {
        int own[3] = {7, 7, 7};
        MPI_File_write_shared(file, own, 1, record, &status);
    }
    MPI_Barrier(all);
    int own[6] = {rank, 1, 2, rank, 3, 4}, got[6];
    MPI_File_write_ordered(file, own, 1 + rank % 2, record, &status);
    int behind = total + 1 + size + size / 2;
    expect(shared() == behind, "where the pointer is behind ordered records");
    MPI_File_write_ordered_begin(file, own + 3, 1, record);
    MPI_File_write_ordered_end(file, own + 3, &status);
    MPI_File_read_at(file, total + 1 + rank + rank / 2, got, 1, record, &status);
    expect(got[0] == rank && got[2] == 2, "what is ordered");
    MPI_File_seek_shared(file, behind, MPI_SEEK_SET);
    MPI_File_read_ordered(file, got, 1, record, &status);
    expect(got[0] == rank && got[2] == 4, "what is ordered in halves");

    /* A view puts it to the start; the own pointer is another one. */
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", none);
    MPI_File_seek(file, 9, MPI_SEEK_SET);
    expect(shared() == 0, "the start of a view");
    /* Ranks that mean different places, and a place that is none: it stays where it is. */
    int refused = MPI_File_seek_shared(file, rank, MPI_SEEK_SET);
    expect(size == 1 || class_of(refused) == MPI_ERR_ARG, "ranks seek different places");
    expect(MPI_File_seek_shared(file, -1, MPI_SEEK_SET) != 0, "a place before the view");
    expect(shared() == 0 || size == 1, "where it is after that");
    MPI_File_close(&file);

    /* It begins at the end of a file that is opened to append. */
    MPI_File_open(all, "shared.dat", MPI_MODE_APPEND | MPI_MODE_RDWR, none, &file);
    MPI_Offset length;
    MPI_File_get_size(file, &length);
    expect(shared() == length, "the end of what is there");
    MPI_File_write_shared(file, "x", 1, MPI_CHAR, &status);
    expect(shared() == length + size, "behind what was appended");
    MPI_File_close(&file);

    /* A sequential file has no other pointer; its view begins there. */
    MPI_File_open(all, "shared.dat", MPI_MODE_SEQUENTIAL | MPI_MODE_RDONLY, none, &file);
    char letters[20];
    MPI_File_read_ordered(file, letters, 10, MPI_CHAR, &status);
    MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", none);
    MPI_Offset at;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_File_get_view(file, &at, &etype, &filetype, representation);
    expect(at == 10 * size, "where the view of a sequential file begins");
    expect(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) != 0, "nobody seeks in it");
    MPI_File_close(&file);
    fprintf(out, "%d right\n", right);
    fclose(out);
    free(records);
    MPI_Type_free(&record);
    MPI_Finalize();
    return 0;
}

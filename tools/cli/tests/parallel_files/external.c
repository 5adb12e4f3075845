/* Files of data representation external32: in them, numbers are big-endian, and a long has four bytes. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 10 };

struct pair {
    short first;
    double second;
};

int main(int argc, char **argv) {
    int rank, size, count, seen[2 * COUNT], numbers[COUNT];
    long longs[COUNT], back[COUNT];
    struct pair pairs[COUNT], same[COUNT];
    char name[32], bytes[64], representation[128];
    MPI_Aint extent;
    MPI_Offset at;
    MPI_Datatype every, record, one, other;
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    FILE *out = fopen(name, "w");
    memset(pairs, 0, sizeof pairs);
    memset(same, 0, sizeof same);
    for (int index = 0; index < COUNT; index++) {
        numbers[index] = rank * 1000 + index;
        longs[index] = index % 2 ? -index : index;
        pairs[index].first = -index, pairs[index].second = index * 2.5;
    }
    MPI_File_open(MPI_COMM_WORLD, "external.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);

    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    MPI_File_write_at_all(file, rank * COUNT, numbers, COUNT, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    memset(seen, 0x55, sizeof seen);
    MPI_File_read_at_all(file, rank * COUNT, seen, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    fprintf(out, "%d integers, same %d\n", count, !memcmp(numbers, seen, sizeof numbers));
    memset(seen, 0x55, sizeof seen);
    MPI_File_read_at_all(file, size * COUNT - 5, seen, COUNT, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    fprintf(out, "%d before the end, the rest left alone %d\n", count, seen[5] == 0x55555555);

    MPI_File_get_type_extent(file, MPI_LONG, &extent);
    MPI_Type_vector(COUNT, 1, 2, MPI_LONG, &every);
    MPI_Type_commit(&every);
    MPI_File_set_view(file, 4096 * (rank + 1), MPI_LONG, every, "external32", MPI_INFO_NULL);
    MPI_File_get_byte_offset(file, 3, &at);
    MPI_Type_free(&every);
    MPI_File_iwrite_at(file, 0, longs, COUNT, MPI_LONG, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_LONG, &count);
    MPI_File_iread_at_all(file, 0, back, COUNT, MPI_LONG, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fprintf(out, "%d longs of %d bytes, the fourth at %d, same %d\n", count, (int)extent,
            (int)at - 4096 * (rank + 1), !memcmp(longs, back, sizeof longs));

    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_SHORT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, types, &record);
    MPI_Type_commit(&record);
    MPI_File_set_view(file, 4096 * (rank + 1) + 1024, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
    MPI_File_write_all(file, pairs, COUNT, record, &status);
    MPI_Get_count(&status, record, &count);
    MPI_File_get_position(file, &at);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, same, COUNT, record, MPI_STATUS_IGNORE);
    MPI_Type_free(&record);
    MPI_File_get_view(file, &extent, &one, &other, representation);
    fprintf(out, "%d records in %d bytes, same %d, %s\n", count, (int)at, !memcmp(pairs, same, sizeof same), representation);

    /* Pairs, some with gaps, and wide letters: kept, or refused as what cannot be converted. */
    MPI_Datatype hard[] = {MPI_WCHAR, MPI_2INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_FLOAT_INT,
                           MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT};
    int kept = 0;
    for (int index = 0; index < 9; index++) {
        char before[COUNT * 32], after[COUNT * 32];
        int written = MPI_SUCCESS, read = MPI_SUCCESS, told = MPI_SUCCESS;
        int second = hard[index] == MPI_SHORT_INT ? 4 : 8;
        memset(before, 0, sizeof before);
        memset(after, 0, sizeof after);
        for (int at = 0; at < COUNT * 16; at += second * 2) before[at] = at, before[at + second] = at + 1;
        MPI_Error_class(MPI_File_write_at(file, 2000, before, COUNT, hard[index], MPI_STATUS_IGNORE), &written);
        MPI_Error_class(MPI_File_read_at(file, 2000, after, COUNT, hard[index], &status), &read);
        MPI_Error_class(MPI_File_get_type_extent(file, hard[index], &extent), &told);
        MPI_Get_count(&status, hard[index], &count);
        MPI_Type_get_extent(hard[index], &places[0], &places[1]);
        int same = count == COUNT && !memcmp(before, after, COUNT * places[1]);
        kept += read == written && told == written && (written ? written == MPI_ERR_CONVERSION : same);
    }
    fprintf(out, "%d of 9 kept or refused\n", kept);

    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 4096 * (rank + 1), bytes, 16, MPI_BYTE, MPI_STATUS_IGNORE);
    fprintf(out, "in the file:");
    for (int index = 0; index < 16; index++) fprintf(out, " %02x", bytes[index] & 0xff);
    MPI_File_read_at(file, 4096 * (rank + 1) + 1034, bytes, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int index = 0; index < 10; index++) fprintf(out, " %02x", bytes[index] & 0xff);
    fprintf(out, "\n");
    MPI_File_close(&file);
    fclose(out);
    MPI_Finalize();
    return 0;
}

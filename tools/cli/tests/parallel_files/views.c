/* Writes and reads through views of all kinds; says what came of it in a file for each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static FILE *out;

static void check(const char *what, int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    const char *name = class == MPI_SUCCESS ? "ok"
                       : class == MPI_ERR_ARG ? "arg"
                       : class == MPI_ERR_TYPE ? "type"
                       : class == MPI_ERR_IO ? "io"
                                               : "other";
    fprintf(out, "%s %s\n", what, name);
}

static unsigned char value(long at) { return (unsigned char)((at * 2654435761u) >> 13); }

static unsigned sum(const unsigned char *bytes, long count) {
    unsigned hash = 17;
    for (long at = 0; at < count; at++) hash = hash * 31 + bytes[at];
    return hash;
}

/* Each rank writes its part of the file through a view, and reads it again in several ways. */
static void through(const char *name, MPI_Datatype etype, MPI_Datatype filetype, MPI_Offset displacement,
                    int tiles) {
    MPI_File file;
    MPI_Status status;
    int bytes, unit, count;
    MPI_Type_size(filetype, &bytes);
    MPI_Type_size(etype, &unit);
    long all = (long)bytes * tiles;
    unsigned char *data = malloc(all + 1), *got = malloc(all + 1);
    for (long at = 0; at < all; at++) data[at] = value(at + 1000 * rank);

    check("open", MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    check("view", MPI_File_set_view(file, displacement, etype, filetype, "native", MPI_INFO_NULL));
    if (unit > 0 && all > 0) {
        /* Where nobody writes, some libraries leave what they like. */
        MPI_Offset end = 0, ends;
        MPI_File_get_byte_offset(file, all / unit - 1, &end);
        end += unit;
        MPI_Allreduce(&end, &ends, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_File zeros;
            void *nothing = calloc(1, ends);
            MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &zeros);
            MPI_File_write(zeros, nothing, ends, MPI_BYTE, &status);
            MPI_File_close(&zeros);
            free(nothing);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check("write_all", MPI_File_write_all(file, data, all, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Offset position, at;
    MPI_File_get_position(file, &position);
    fprintf(out, "%s wrote %d, position %lld\n", name, count, (long long)position);
    if (unit > 0 && all >= 3L * unit) {
        MPI_File_get_byte_offset(file, all / unit - 1, &at);
        fprintf(out, "last etype at %lld\n", (long long)at);
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);

    memset(got, 0, all + 1);
    check("read_at_all", MPI_File_read_at_all(file, 0, got, all, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    fprintf(out, "read %d: %s\n", count, memcmp(data, got, all) ? "DIFFERENT" : "same");

    /* The same, one etype after the other from the back, independently. */
    memset(got, 0, all + 1);
    long units = unit ? all / unit : 0, step = units / 7 + 1;
    for (long first = units - 1; first >= 0; first -= step) {
        long from = first - step + 1 < 0 ? 0 : first - step + 1;
        MPI_File_read_at(file, from, got + from * unit, (first - from + 1) * unit, MPI_BYTE, &status);
    }
    fprintf(out, "read back to front: %s\n", memcmp(data, got, all) ? "DIFFERENT" : "same");

    /* With pointers. */
    memset(got, 0, all + 1);
    check("seek", MPI_File_seek(file, 0, MPI_SEEK_SET));
    for (long from = 0; from < units; from += step) {
        long more = units - from < step ? units - from : step;
        MPI_File_read(file, got + from * unit, more * unit, MPI_BYTE, &status);
    }
    fprintf(out, "read on: %s\n", memcmp(data, got, all) ? "DIFFERENT" : "same");
    MPI_File_get_position(file, &position);
    fprintf(out, "position %lld\n", (long long)position);

    MPI_Offset shown;
    MPI_Datatype e, f;
    char representation[MPI_MAX_DATAREP_STRING];
    int combiner, a, b, c;
    MPI_File_get_view(file, &shown, &e, &f, representation);
    MPI_Type_get_envelope(f, &a, &b, &c, &combiner);
    int shown_bytes;
    MPI_Type_size(f, &shown_bytes);
    fprintf(out, "view %lld %d %s named %d\n", (long long)shown, shown_bytes, representation,
            combiner == MPI_COMBINER_NAMED);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&f);
    MPI_Type_get_envelope(e, &a, &b, &c, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&e);
    MPI_File_close(&file);
    fprintf(out, "closed %d\n", file == MPI_FILE_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    free(got);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[64];
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");

    through("bytes.dat", MPI_BYTE, MPI_BYTE, rank * 10007L, 10007);
    through("ints.dat", MPI_INT, MPI_INT, 3 + rank * 4L * 1013, 1013);

    MPI_Datatype vector, resized;
    MPI_Type_vector(37, 3, 3 * size, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 37L * 3 * size * 4, &resized);
    MPI_Type_commit(&resized);
    through("vector.dat", MPI_INT, resized, rank * 12L, 11);

    MPI_Datatype odd;
    MPI_Type_vector(1000, 5, 5 * size, MPI_BYTE, &odd);
    MPI_Type_commit(&odd);
    through("odd.dat", MPI_BYTE, odd, 1 + rank * 5L, 1);

    int sizes[2] = {61, 17 * size}, subsizes[2] = {61, 17}, starts[2] = {0, 17 * rank};
    MPI_Datatype columns;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    through("columns.dat", MPI_DOUBLE, columns, 0, 3);

    int fortran[3] = {7 * size, 5, 9}, part[3] = {7, 5, 9}, from[3] = {7 * rank, 0, 0};
    MPI_Datatype blocks;
    MPI_Type_create_subarray(3, fortran, part, from, MPI_ORDER_FORTRAN, MPI_SHORT, &blocks);
    MPI_Type_commit(&blocks);
    through("blocks.dat", MPI_SHORT, blocks, 128, 2);

    int gsizes[2] = {97, 53}, distributions[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
        arguments[2] = {3, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {size, 1};
    MPI_Datatype cyclic;
    MPI_Type_create_darray(size, rank, 2, gsizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &cyclic);
    MPI_Type_commit(&cyclic);
    through("cyclic.dat", MPI_INT, cyclic, 0, 2);

    int halves[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, usual[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Datatype halved;
    MPI_Type_create_darray(size, rank, 2, gsizes, halves, usual, grid, MPI_ORDER_FORTRAN, MPI_DOUBLE, &halved);
    MPI_Type_commit(&halved);
    through("halved.dat", MPI_DOUBLE, halved, 0, 1);

    int lengths[50], places[50];
    MPI_Aint addresses[50];
    for (int at = 0, x = 0; at < 50; at++) {
        lengths[at] = 1 + at * 7 % 5;
        places[at] = x + 6 * rank;
        addresses[at] = places[at] * 2 + 1;
        x += 6 * size;
    }
    MPI_Datatype indexed, hindexed, record, part_of[2] = {MPI_INT, MPI_DOUBLE}, whole;
    MPI_Type_indexed(50, lengths, places, MPI_CHAR, &indexed);
    MPI_Type_commit(&indexed);
    through("indexed.dat", MPI_CHAR, indexed, 0, 1);
    MPI_Type_create_hindexed(50, lengths, addresses, MPI_SHORT, &hindexed);
    MPI_Type_commit(&hindexed);
    through("hindexed.dat", MPI_SHORT, hindexed, 5, 1);

    /* More places than fit a text, and none at regular distances. */
    enum { MANY = 70000 };
    int *many = malloc(MANY * sizeof *many);
    for (int at = 0; at < MANY; at++) many[at] = at * 3 * size + 3 * rank + (at * 40503 >> 4) % 3;
    MPI_Datatype scattered;
    MPI_Type_create_indexed_block(MANY, 1, many, MPI_SHORT, &scattered);
    MPI_Type_commit(&scattered);
    through("scattered.dat", MPI_SHORT, scattered, 0, 1);
    free(many);

    int counts[2] = {2, 1};
    MPI_Aint offsets[2] = {rank * 16, size * 16 + rank * 8};
    MPI_Type_create_struct(2, counts, offsets, part_of, &record);
    MPI_Type_create_resized(record, 0, size * 24, &whole);
    MPI_Type_commit(&whole);
    through("record.dat", MPI_INT, whole, 24, 40);

    /* Memory that is no row: columns of a matrix, read and written; and a type that begins before its address. */
    MPI_File file;
    MPI_Status status;
    int matrix[30][20], count;
    for (int row = 0; row < 30; row++)
        for (int column = 0; column < 20; column++) matrix[row][column] = rank * 10000 + row * 100 + column;
    MPI_Datatype column, before;
    MPI_Type_vector(30, 1, 20, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, 4, &vector);
    MPI_Type_commit(&vector);
    MPI_File_open(MPI_COMM_WORLD, "memory.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    check("columns", MPI_File_write_at_all(file, rank * 2400L, matrix, 20, vector, &status));
    MPI_Get_count(&status, vector, &count);
    fprintf(out, "%d columns\n", count);
    memset(matrix, 0xff, sizeof matrix);
    check("columns", MPI_File_read_at_all(file, rank * 2400L + 480, matrix, 7, vector, &status));
    MPI_Get_count(&status, vector, &count);
    fprintf(out, "%d columns %u\n", count, sum((unsigned char *)matrix, sizeof matrix));
    /* What another rank has written may be read after it, this and it again. */
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_Aint back[3] = {-8, 0, 8};
    MPI_Type_create_hindexed_block(3, 4, back, MPI_BYTE, &before);
    MPI_Type_commit(&before);
    memset(matrix, 0xff, sizeof matrix);
    check("before", MPI_File_read_at(file, 0, &matrix[3][3], 2, before, &status));
    fprintf(out, "before %u\n", sum((unsigned char *)matrix, sizeof matrix));
    MPI_File_close(&file);

    MPI_Type_free(&resized);
    fclose(out);
    MPI_Finalize();
    return 0;
}

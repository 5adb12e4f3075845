/* Atomic calls of several ranks on the same bytes: whoever reads sees one of them, whole. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define WORDS 9000
#define ROUNDS 60

static int words[WORDS];

static int is_whole(int count)
{
    for (int i = 1; i < count; i++)
        if (words[i] != words[0]) return 0;
    return 1;
}

static void fill(int value)
{
    for (int i = 0; i < WORDS; i++) words[i] = value;
}

int main(int argc, char **argv)
{
    int rank, size, flag = 0, mixed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[32];
    sprintf(name, "said.%d", rank);
    FILE *out = fopen(name, "w");
    MPI_File file;
    MPI_Status status;
    MPI_Datatype gaps;
    MPI_Type_vector(WORDS / 100, 100, 150, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);

    /* The group's file, then files of their own that are the same one. */
    for (int own = 0; own < 2; own++) {
        MPI_File_open(own ? MPI_COMM_SELF : MPI_COMM_WORLD, "atomic.dat",
            MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_File_set_atomicity(file, 1);
        MPI_File_get_atomicity(file, &flag);
        fprintf(out, "atomic %d\n", flag != 0);
        MPI_File_set_view(file, 0, MPI_INT, own ? MPI_INT : gaps, "native", MPI_INFO_NULL);
        fill(-1);
        if (rank == 0) MPI_File_write_at(file, 0, words, WORDS, MPI_INT, &status);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < ROUNDS; i++) {
            if ((rank + i / 10) % 2) {
                fill(1000 * rank + i);
                MPI_File_write_at(file, 0, words, WORDS, MPI_INT, &status);
            } else {
                fill(-2);
                MPI_File_read_at(file, 0, words, WORDS, MPI_INT, &status);
                mixed += !is_whole(WORDS) || words[0] == -2;
            }
        }
        /* Together: every rank writes the same bytes, and all see one of them. */
        for (int i = 0; i < 10; i++) {
            fill(5000 + 100 * i + rank);
            MPI_File_write_at_all(file, 0, words, WORDS, MPI_INT, &status);
            MPI_Barrier(MPI_COMM_WORLD);
            fill(-2);
            MPI_File_read_at_all(file, 0, words, WORDS, MPI_INT, &status);
            mixed += !is_whole(WORDS) || words[0] / 100 != 50 + i;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_File_close(&file);
    }
    /* All ranks must say the same. */
    MPI_File_open(MPI_COMM_WORLD, "atomic.dat", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    int refused = MPI_File_set_atomicity(file, rank == 0), class = 0;
    MPI_Error_class(refused, &class);
    MPI_File_get_atomicity(file, &flag);
    fprintf(out, "differs %d, atomic %d\n", size > 1 ? class == MPI_ERR_ARG : refused == 0, size > 1 ? flag : 0);
    MPI_File_close(&file);
    fprintf(out, "mixed %d\n", mixed);
    fclose(out);
    MPI_Type_free(&gaps);
    MPI_Finalize();
    return 0;
}

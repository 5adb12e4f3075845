/* What the programs of this directory share: a promise is kept on all ranks, or the program says where not. */
#ifndef SEMANTICS_H
#define SEMANTICS_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, rank_count, is_broken;

/* Notes that the promise is broken, and how. */
static void broken(const char *text, ...)
{
    va_list words;
    va_start(words, text);
    if (!is_broken) {
        fprintf(stderr, "rank %d: ", rank);
        vfprintf(stderr, text, words);
        fputc('\n', stderr);
    }
    va_end(words);
    is_broken = 1;
}

/* A call that must succeed. */
static void must(int result, const char *call)
{
    if (result != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(result, text, &length);
        broken("%s: %s", call, text);
    }
}
#define MUST(call) must(call, #call)

static MPI_File opened(const char *name)
{
    MPI_File file;
    MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (is_broken)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static void begin(int *count, char ***words)
{
    MPI_Init(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
}

/* The end of every program: exit code 0 and `kept` if no rank saw the promise broken. */
static int end(void)
{
    int any;
    MPI_Allreduce(&is_broken, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        puts(any ? "broken" : "kept");
    MPI_Finalize();
    return any;
}

#endif

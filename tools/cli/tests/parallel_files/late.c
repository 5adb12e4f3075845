/* Writes that fail when they go out, since rank 1 may not make files of more than 100,000 bytes. What each call said,
   and how often the file's error handler was called, is in `said`. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PIECE = 1000 };

static int rank, size, handled;
static FILE *out;
static MPI_File file;
static char data[PIECE];

static void handler(MPI_File *file, int *code, ...) { handled++; }

static int say(const char *what, int answer) {
    fprintf(out, "%s: %s, handled %d\n", what, answer ? "error" : "done", handled);
    handled = 0;
    return answer;
}

/* Pieces in turn, from there on. */
static int write_at(MPI_Offset from) {
    int answer = 0;
    for (int at = 0; at < 3 && !answer; at++)
        answer = MPI_File_write_at(file, from + (at * size + rank) * PIECE, data, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    return answer;
}

int main(int argc, char **argv) {
    char name[64];
    MPI_Errhandler own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "said.%d", rank);
    out = fopen(name, "w");
    memset(data, 'a' + rank, PIECE);
    if (rank == 1) {
        struct rlimit limit = {100000, 100000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (MPI_File_open(MPI_COMM_WORLD, "out.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_create_errhandler(handler, &own);
    MPI_File_set_errhandler(file, own);
    say("write", write_at(0));
    say("sync", MPI_File_sync(file));
    say("write behind the limit", write_at(200000));
    say("sync", MPI_File_sync(file));
    say("sync again", MPI_File_sync(file));
    /* Alone: each rank before a read of what it wrote. */
    say("write behind the limit", write_at(200000));
    char got[PIECE];
    say("read", MPI_File_read_at(file, 200000 + rank * PIECE, got, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    say("write", write_at(10000));
    say("write", write_at(20000));
    say("write behind the limit", write_at(200000));
    say("read", MPI_File_read_at(file, 200000 + rank * PIECE, got, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    /* A request can be waited for, whatever the call has answered. */
    MPI_Request request = MPI_REQUEST_NULL;
    say("begun", MPI_File_iwrite_at(file, 40000 + rank * PIECE, data, PIECE, MPI_BYTE, &request));
    say("waited", MPI_Wait(&request, MPI_STATUS_IGNORE));
    say("view", MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    say("write behind the limit", write_at(200000));
    say("close", MPI_File_close(&file));
    fprintf(out, "closed: %d\n", file == MPI_FILE_NULL);
    MPI_Errhandler_free(&own);
    fclose(out);
    MPI_Finalize();
    return 0;
}

/* The servers are stopped while all ranks move data together: `program LOCK write|read`, with their process in LOCK. Each rank
   says the class that its first failing call told, and whether that call took less than 10 s. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 1 << 20, CALLS = 1000000 };

int main(int argc, char **argv)
{
    int rank, class = 0, code = 0, writes = strcmp(argv[argc - 1], "write") == 0;
    long servers = 0;
    double begin = 0, took = 0;
    pid_t stopping = 0;
    char name[32], *part = malloc(PART);
    MPI_File file;
    FILE *lock = fopen(argv[argc - 2], "r"), *said;
    if (!lock || fscanf(lock, "%ld", &servers) != 1)
        return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(part, 'a' + rank, PART);
    MPI_File_open(MPI_COMM_WORLD, "halted.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * PART, part, PART, MPI_BYTE, MPI_STATUS_IGNORE);
    if (rank == 0 && (stopping = fork()) == 0) {
        usleep(200000);
        kill(servers, SIGSTOP);
        sleep(12);
        kill(servers, SIGCONT);
        _exit(0);
    }
    for (int call = 0; call < CALLS && code == MPI_SUCCESS; call++) {
        begin = MPI_Wtime();
        code = writes
            ? MPI_File_write_at_all(file, (MPI_Offset)rank * PART, part, PART, MPI_BYTE, MPI_STATUS_IGNORE)
            : MPI_File_read_at_all(file, (MPI_Offset)rank * PART, part, PART, MPI_BYTE, MPI_STATUS_IGNORE);
        took = MPI_Wtime() - begin;
    }
    MPI_Error_class(code, &class);
    sprintf(name, "said.%d", rank);
    said = fopen(name, "w");
    fprintf(said, "%s within 10 s: %d", class == MPI_ERR_IO ? "IO" : class == MPI_SUCCESS ? "none" : "other", took < 10);
    fclose(said);
    if (rank == 0)
        waitpid(stopping, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

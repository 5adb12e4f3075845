/* Each rank writes a file line by line; the rank of the argument is killed in the middle. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int rank, killed = count > 1 && arguments[1][0] != 'n' ? atoi(arguments[1]) : -1;
    char name[20];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "spin%d", rank);
    FILE *file = fopen(name, "w");
    for (int line = 0; line < 30; line++) {
        fprintf(file, "line %02d\n", line);
        fflush(file);
        if (line == 24) MPI_Barrier(MPI_COMM_WORLD);
        if (line == 25 && rank == killed) raise(SIGKILL);
        usleep(10000);
    }
    fclose(file);
    MPI_Finalize();
    return rank == 1 ? 7 : 0;
}

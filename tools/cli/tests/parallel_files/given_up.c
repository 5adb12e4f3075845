/* Calls that go on, and a program that is in a hurry: requests given up, cancelled, left open at close, a fork. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 << 20 };

int main(int argc, char **argv) {
    int rank, size, code, count, flag, ended;
    char name[32], *data = malloc(BYTES), *seen = malloc(BYTES);
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    FILE *out = fopen(name, "w");
    MPI_Offset own = (MPI_Offset)rank * BYTES;
    memset(data, 'a' + rank, BYTES);

    MPI_File_open(MPI_COMM_WORLD, "given_up.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_iwrite_at(file, own, data, BYTES, MPI_BYTE, &request);
    code = MPI_Request_free(&request);
    fprintf(out, "freed %d\n", code == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_File_iread_at(file, own, seen, BYTES, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    fprintf(out, "carried out %d\n", !memcmp(data, seen, BYTES));
    MPI_File_iwrite_at_all(file, own, data, BYTES, MPI_BYTE, &request);
    MPI_Request_free(&request);

    MPI_File_iread_at(file, own, seen, BYTES, MPI_BYTE, &request);
    fflush(out);
    pid_t child = fork();
    if (child == 0) _exit(7);
    waitpid(child, &ended, 0);
    code = MPI_Wait(&request, &status);
    fprintf(out, "child %d, call %d\n", WEXITSTATUS(ended), code == MPI_SUCCESS);

    MPI_File_iread_at(file, own, seen, BYTES, MPI_BYTE, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    fprintf(out, "cancelled %d\n", flag);

    MPI_File_iwrite_at(file, own + (MPI_Offset)size * BYTES, data, BYTES, MPI_BYTE, &request);
    MPI_File_close(&file);
    code = MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    fprintf(out, "left open %d\n", code == MPI_SUCCESS && count == BYTES);

    MPI_File_open(MPI_COMM_WORLD, "last.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_iread_at(file, 0, seen, 1, MPI_BYTE, &request) == MPI_SUCCESS || fprintf(out, "refused\n");
    MPI_File_iwrite_at(file, own, data, BYTES, MPI_BYTE, &request);
    MPI_Request_free(&request);
    fclose(out);
    MPI_Finalize();
    return 0;
}

/* Files of a program that has no world: sessions, and communicators of their sets of processes. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm all;
    MPI_File file;
    MPI_Request request;
    int rank, size, failed = 0;
    char part[5000], again[5000];
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "files", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    memset(part, 'a' + rank, sizeof part);
    if (MPI_File_open(all, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 3;
    failed |= MPI_File_write_at_all(file, rank * 5000, part, 5000, MPI_BYTE, MPI_STATUS_IGNORE);
    failed |= MPI_File_iread_at(file, rank * 5000, again, 5000, MPI_BYTE, &request);
    failed |= MPI_Wait(&request, MPI_STATUS_IGNORE);
    failed |= memcmp(part, again, sizeof part);
    /* Given up, and carried out all the same. MPICH 4.0 has no network in a session of one, and ends in MPI_Request_free. */
    failed |= MPI_File_iwrite_at(file, (size + rank) * 5000, part, 5000, MPI_BYTE, &request);
    failed |= size > 1 ? MPI_Request_free(&request) : MPI_Wait(&request, MPI_STATUS_IGNORE);
    failed |= MPI_File_close(&file);
    MPI_Comm_free(&all);
    MPI_Group_free(&group);
    failed |= MPI_Session_finalize(&session);
    return failed != 0;
}

/* Calls of MPI of every kind that a recording has rows for, on two ranks. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

#define INTS 64
/* Where there is nobody to send to, MPICH looks at no datatype; Open MPI wants one. */
#ifdef OPEN_MPI
#define NO_TYPE MPI_BYTE
#else
#define NO_TYPE MPI_DATATYPE_NULL
#endif

static int ints[4 * INTS];
static double doubles[INTS];

static void views(int rank, int size) {
    MPI_File file;
    MPI_Datatype strided, tile, part;
    int whole[2] = {8, 8 * size}, own[2] = {8, 8}, start[2] = {0, 8 * rank};
    MPI_Type_vector(4, 4, 4 * size, MPI_INT, &strided);
    MPI_Type_create_resized(strided, 0, 16 * size * 4, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_create_subarray(2, whole, own, start, MPI_ORDER_C, MPI_DOUBLE, &part);
    MPI_Type_commit(&part);

    MPI_File_open(MPI_COMM_WORLD, "strided", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 100 + 16 * rank, MPI_INT, tile, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, ints, 16, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_all(file, ints + 16, 16, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 4, MPI_SEEK_SET);
    MPI_File_write(file, ints + 4, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 100 + 16 * rank, ints, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    MPI_File_open(MPI_COMM_WORLD, "matrix", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, doubles, INTS, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&strided);
    MPI_Type_free(&tile);
    MPI_Type_free(&part);
}

static int started(int rank) {
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    int got = -1;
    MPI_File_open(MPI_COMM_WORLD, "plain", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_iwrite_at(file, rank * 256, ints, INTS, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_begin(file, 1024 + rank * 256, ints, INTS, MPI_INT);
    MPI_File_write_at_all_end(file, ints, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 1024 + 512 - 40, ints, INTS, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(file, 1024);
    MPI_File_close(&file);
    return got;
}

static void messages(int rank, int size) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, flag = 0;
    MPI_Request both[2], again;
    MPI_Status statuses[2];
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    MPI_Sendrecv(ints, 1, MPI_INT, next, 7, ints + 1, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(ints, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, both);
    MPI_Isend(ints + 2, 2, MPI_INT, next, 9, MPI_COMM_WORLD, both + 1);
    MPI_Waitall(2, both, statuses);
    if (rank == 0) MPI_Send(ints, 100, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(ints, INTS * 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(ints, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Send_init(ints, 3, MPI_INT, 1, 4, MPI_COMM_WORLD, &again);
    else MPI_Recv_init(ints, 3, MPI_INT, 0, 4, MPI_COMM_WORLD, &again);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&again);
        for (flag = 0; !flag;) MPI_Test(&again, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&again);
    MPI_Bcast(ints, INTS, MPI_INT, 0, reversed);
    MPI_Comm_free(&reversed);
}

/* Requests that end at once may share a handle, and some never end. */
static void odd_messages(int rank, int size) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Request some[3];
    MPI_Message message;
    for (int at = 0; at < 3; at++) MPI_Isend(ints, 1, MPI_INT, next, 20 + at, MPI_COMM_WORLD, some + at);
    for (int at = 0; at < 3; at++) MPI_Recv(ints, 1, MPI_INT, last, 20 + at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(3, some, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Send(ints, 5, MPI_INT, 1, 30, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Mprobe(0, 30, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(ints, 5, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Isend(ints, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, some);
    MPI_Wait(some, MPI_STATUS_IGNORE);
    MPI_Irecv(ints, 1, MPI_INT, next, 99, MPI_COMM_WORLD, some);
    MPI_Cancel(some);
    MPI_Wait(some, MPI_STATUS_IGNORE);
    MPI_Recv(NULL, 0, NO_TYPE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int let_go(MPI_Comm outer, int key, void *inner, void *unused) {
    (void)outer, (void)key, (void)unused;
    return MPI_Comm_free(inner);
}

/* A communicator goes while another one is freed, and its handle is somebody else's next. */
static void cached(int rank) {
    MPI_Comm inner, outer, alone[3];
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, let_go, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &outer);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &inner);
    MPI_Bcast(ints, 3, MPI_INT, 0, inner);
    MPI_Comm_set_attr(outer, key, &inner);
    MPI_Comm_free(&outer);
    for (int round = 0; round < 3; round++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank, 0, alone + round);
        MPI_Bcast(ints, 2, MPI_INT, 0, alone[round]);
    }
    for (int round = 0; round < 3; round++) MPI_Comm_free(alone + round);
    MPI_Comm_free_keyval(&key);
}

static void collectives(int rank) {
    int counts[2] = {4, 8}, places[2] = {0, 4};
    void *in_place = MPI_IN_PLACE;
    MPI_Request request;
    MPI_Allreduce(in_place, ints, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(ints, ints + 100, 3, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
    if (rank == 0) MPI_Gather(in_place, 0, MPI_DATATYPE_NULL, ints, 4, MPI_INT, 0, MPI_COMM_WORLD);
    else MPI_Gather(ints, 4, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    MPI_Gatherv(ints, counts[rank], MPI_INT, ints + 50, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(ints, counts, places, MPI_INT, ints + 50, counts[rank], MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allgather(in_place, 0, MPI_DATATYPE_NULL, ints, 5, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(in_place, 0, MPI_DATATYPE_NULL, ints, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(ints, 6, MPI_INT, ints + 50, 6, MPI_INT, MPI_COMM_WORLD);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static jmp_buf out;

static void jump(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    longjmp(out, 1);
}

/* A handler that never returns to MPI. */
static void jumps(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    if (setjmp(out) == 0) MPI_Send(ints, 1, MPI_INT, 77, 0, MPI_COMM_SELF);
    MPI_Bcast(ints, 1, MPI_INT, 0, MPI_COMM_SELF);
    MPI_Errhandler_free(&handler);
}

/* What fails must go on failing as it did, and end nobody. */
static int fails(void) {
    MPI_File file;
    int answers = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    answers += MPI_File_open(MPI_COMM_SELF, "no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS;
    answers += MPI_Send(ints, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    answers += MPI_Send(ints, 1, MPI_INT, 77, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    answers += MPI_Bcast(ints, -1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    return answers;
}

int main(int count, char **arguments) {
    int rank, size, got;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int at = 0; at < 4 * INTS; at++) ints[at] = 1000 * rank + at;
    for (int at = 0; at < INTS; at++) doubles[at] = rank + at / 100.0;
    views(rank, size);
    got = started(rank);
    messages(rank, size);
    odd_messages(rank, size);
    cached(rank);
    collectives(rank);
    jumps();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 0) printf("%d ints read, %d calls failed\n", got, fails());
    MPI_Finalize();
    return 0;
}

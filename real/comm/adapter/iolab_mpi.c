/* iolab's MPI adapter: the one piece of code that is compiled against the site's mpi.h.
 *
 * MPI has no common binary interface: handles are ints in one library and pointers in another, a
 * status has 20, 24 or 32 bytes. So everything of MPI stays in this file, behind a table of
 * functions that speak int64_t and byte pointers. iolab compiles it with the site's mpicc on first
 * use and loads the result; the iolab binary itself depends on no MPI.
 *
 * Every function returns 0 or an MPI error code. Waiting is test + sched_yield, because the
 * blocking calls of some libraries spin for milliseconds when ranks share a processor.
 */
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ABI 1
#define DEPTH_MAX 16

/* Above INT_MAX bytes a transfer is one element of a made datatype, which is `own` then. */
struct part {
    MPI_Datatype type;
    int count, own;
};

struct request {
    MPI_Request request;
    struct part part;
};

static int64_t type_to_handle(MPI_Datatype type)
{
    int64_t handle = 0;
    memcpy(&handle, &type, sizeof type);
    return handle;
}

/* Handle 0 with a count of bytes means plain bytes. */
static MPI_Datatype handle_to_type(int64_t handle)
{
    MPI_Datatype type;
    if (handle == 0)
        return MPI_BYTE;
    memcpy(&type, &handle, sizeof type);
    return type;
}

static MPI_File to_file(int64_t handle)
{
    return *(MPI_File *)(intptr_t)handle;
}

static int wait_politely(MPI_Request *request, MPI_Status *status)
{
    int done = 0, error;
    while ((error = MPI_Test(request, &done, status)) == MPI_SUCCESS && !done)
        sched_yield();
    return error;
}

static int adapter_init(int64_t *rank, int64_t *size)
{
    int provided, own, all, error;
    error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (error != MPI_SUCCESS)
        return error;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    *rank = own;
    *size = all;
    return provided < MPI_THREAD_MULTIPLE ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int adapter_finalize(void)
{
    return MPI_Finalize();
}

static int adapter_version(char *text, int64_t room)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, error = MPI_Get_library_version(whole, &length);
    if (error == MPI_SUCCESS) {
        strncpy(text, whole, (size_t)room - 1);
        text[room - 1] = 0;
    }
    return error;
}

static int adapter_error_text(int64_t code, char *text, int64_t room)
{
    char whole[MPI_MAX_ERROR_STRING];
    int length, error = MPI_Error_string((int)code, whole, &length);
    if (error == MPI_SUCCESS) {
        strncpy(text, whole, (size_t)room - 1);
        text[room - 1] = 0;
    }
    return error;
}

static int adapter_barrier(void)
{
    MPI_Request request;
    int error = MPI_Ibarrier(MPI_COMM_WORLD, &request);
    return error == MPI_SUCCESS ? wait_politely(&request, MPI_STATUS_IGNORE) : error;
}

static int adapter_gather(const void *own, int64_t bytes, void *all)
{
    MPI_Request request;
    int error;
    if (bytes > INT_MAX)
        return MPI_ERR_COUNT;
    error = MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD,
                           &request);
    return error == MPI_SUCCESS ? wait_politely(&request, MPI_STATUS_IGNORE) : error;
}

/* So many bytes as one datatype, also more than an int counts: large pieces, then the rest. */
static int make_bytes(int64_t bytes, MPI_Datatype *made)
{
    const int piece = 1 << 30;
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE}, one;
    MPI_Aint places[2] = {0, (MPI_Aint)(bytes / piece * piece)};
    int counts[2] = {1, (int)(bytes % piece)}, error;
    if (bytes <= INT_MAX)
        return MPI_Type_contiguous((int)bytes, MPI_BYTE, made);
    error = MPI_Type_contiguous(piece, MPI_BYTE, &one);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Type_contiguous((int)(bytes / piece), one, &types[0]);
    MPI_Type_free(&one);
    if (error != MPI_SUCCESS)
        return error;
    if (counts[1] == 0) {
        *made = types[0];
        return MPI_SUCCESS;
    }
    error = MPI_Type_create_struct(2, counts, places, types, made);
    MPI_Type_free(&types[0]);
    return error;
}

/* One nested-strided set: a block, repeated level by level with hvector, innermost first. */
static int make_set(int64_t block, int64_t depth, const int64_t *levels, MPI_Datatype *made)
{
    int error = make_bytes(block, made);
    for (int64_t level = 0; level < depth && error == MPI_SUCCESS; level++) {
        MPI_Datatype inner = *made;
        int64_t count = levels[2 * level], stride = levels[2 * level + 1];
        if (count > INT_MAX)
            error = MPI_ERR_COUNT;
        else
            error = MPI_Type_create_hvector((int)count, 1, (MPI_Aint)stride, inner, made);
        MPI_Type_free(&inner);
    }
    return error;
}

/* `sets` times: offset, block, depth, then depth times count, stride. */
static int adapter_type_make(int64_t sets, const int64_t *text, int64_t *handle)
{
    MPI_Datatype made, *parts = calloc((size_t)sets + 1, sizeof *parts);
    MPI_Aint *places = calloc((size_t)sets + 1, sizeof *places);
    int *ones = calloc((size_t)sets + 1, sizeof *ones);
    int64_t done = 0;
    int error = parts && places && ones ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (; done < sets && error == MPI_SUCCESS; done++) {
        int64_t depth = text[2];
        places[done] = (MPI_Aint)text[0];
        ones[done] = 1;
        error = depth > DEPTH_MAX ? MPI_ERR_ARG : make_set(text[1], depth, text + 3, &parts[done]);
        text += 3 + 2 * depth;
    }
    if (error == MPI_SUCCESS)
        error = sets > INT_MAX ? MPI_ERR_COUNT
                               : MPI_Type_create_struct((int)sets, ones, places, parts, &made);
    if (error == MPI_SUCCESS)
        error = MPI_Type_commit(&made);
    if (error == MPI_SUCCESS) {
        *handle = type_to_handle(made);
        while (done > 0)
            MPI_Type_free(&parts[--done]);
    }
    free(parts);
    free(places);
    free(ones);
    return error;
}

static int adapter_type_free(int64_t handle)
{
    MPI_Datatype type = handle_to_type(handle);
    return MPI_Type_free(&type);
}

/* Hints are `count` pairs of zero-terminated texts after each other. */
static int make_info(const char *hints, int64_t count, MPI_Info *info)
{
    int error = MPI_Info_create(info);
    for (int64_t pair = 0; pair < count && error == MPI_SUCCESS; pair++) {
        const char *value = hints + strlen(hints) + 1;
        error = MPI_Info_set(*info, (char *)hints, (char *)value);
        hints = value + strlen(value) + 1;
    }
    return error;
}

/* write: 0 for reading only, 1 an existing file, 2 made when it is not there,
 * 3 made where nothing is. */
static int adapter_open(const char *path, int64_t write, int64_t truncate, int64_t shared,
                        const char *hints, int64_t hint_count, int64_t *handle)
{
    MPI_Info info;
    MPI_Comm comm = shared ? MPI_COMM_WORLD : MPI_COMM_SELF;
    int made = (write > 1 ? MPI_MODE_CREATE : 0) | (write > 2 ? MPI_MODE_EXCL : 0);
    int mode = (write ? MPI_MODE_RDWR : MPI_MODE_RDONLY) | made;
    MPI_File *file = malloc(sizeof *file);
    int error = file ? make_info(hints, hint_count, &info) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS) {
        error = MPI_File_open(comm, (char *)path, mode, info, file);
        MPI_Info_free(&info);
    }
    if (error == MPI_SUCCESS && truncate)
        error = MPI_File_set_size(*file, 0);
    if (error == MPI_SUCCESS)
        *handle = (int64_t)(intptr_t)file;
    else
        free(file);
    return error;
}

static int adapter_close(int64_t handle)
{
    MPI_File *file = (MPI_File *)(intptr_t)handle;
    int error = MPI_File_close(file);
    free(file);
    return error;
}

static int adapter_sync(int64_t handle)
{
    return MPI_File_sync(to_file(handle));
}

static int adapter_view(int64_t handle, int64_t displacement, int64_t type)
{
    return MPI_File_set_view(to_file(handle), (MPI_Offset)displacement, MPI_BYTE,
                             handle_to_type(type), (char *)"native", MPI_INFO_NULL);
}

/* With a datatype, one of it; without, so many bytes. */
static int part_of(int64_t handle, int64_t bytes, struct part *part)
{
    int error = MPI_SUCCESS;
    part->type = handle_to_type(handle);
    part->own = handle == 0 && bytes > INT_MAX;
    part->count = handle == 0 && !part->own ? (int)bytes : (bytes > 0 ? 1 : 0);
    if (part->own && (error = make_bytes(bytes, &part->type)) == MPI_SUCCESS
        && (error = MPI_Type_commit(&part->type)) != MPI_SUCCESS)
        MPI_Type_free(&part->type);
    part->own = part->own && error == MPI_SUCCESS;
    return error;
}

static void part_done(struct part *part)
{
    if (part->own)
        MPI_Type_free(&part->type);
}

static int bytes_moved(MPI_Status *status, MPI_Datatype type, int64_t *moved)
{
    MPI_Count elements = 0;
    int error = MPI_Get_elements_x(status, type, &elements);
    *moved = (int64_t)elements;
    return error;
}

/* way: 0 read, 1 write. kind: 0 independent, 1 collective, 2 split collective. */
static int adapter_transfer(int64_t handle, int64_t way, int64_t kind, int64_t at, void *memory,
                            int64_t type_handle, int64_t bytes, int64_t *moved)
{
    MPI_File f = to_file(handle);
    MPI_Offset offset = (MPI_Offset)at;
    MPI_Status status;
    MPI_Datatype type;
    struct part part;
    int count, error = part_of(type_handle, bytes, &part);
    if (error != MPI_SUCCESS)
        return error;
    type = part.type;
    count = part.count;
    switch (kind * 2 + way) {
    case 0: error = MPI_File_read_at(f, offset, memory, count, type, &status); break;
    case 1: error = MPI_File_write_at(f, offset, memory, count, type, &status); break;
    case 2: error = MPI_File_read_at_all(f, offset, memory, count, type, &status); break;
    case 3: error = MPI_File_write_at_all(f, offset, memory, count, type, &status); break;
    case 4:
        error = MPI_File_read_at_all_begin(f, offset, memory, count, type);
        if (error == MPI_SUCCESS)
            error = MPI_File_read_at_all_end(f, memory, &status);
        break;
    case 5:
        error = MPI_File_write_at_all_begin(f, offset, memory, count, type);
        if (error == MPI_SUCCESS)
            error = MPI_File_write_at_all_end(f, memory, &status);
        break;
    default: error = MPI_ERR_ARG;
    }
    if (error == MPI_SUCCESS)
        error = bytes_moved(&status, type, moved);
    part_done(&part);
    return error;
}

/* kind: 0 independent, 1 collective. */
static int adapter_start(int64_t handle, int64_t way, int64_t kind, int64_t at, void *memory,
                         int64_t type_handle, int64_t bytes, int64_t *started)
{
    MPI_File f = to_file(handle);
    MPI_Offset offset = (MPI_Offset)at;
    struct request *own = malloc(sizeof *own);
    int error = own ? part_of(type_handle, bytes, &own->part) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS) {
        MPI_Request *request = &own->request;
        MPI_Datatype type = own->part.type;
        int count = own->part.count;
        switch (kind * 2 + way) {
        case 0: error = MPI_File_iread_at(f, offset, memory, count, type, request); break;
        case 1: error = MPI_File_iwrite_at(f, offset, memory, count, type, request); break;
        case 2: error = MPI_File_iread_at_all(f, offset, memory, count, type, request); break;
        case 3: error = MPI_File_iwrite_at_all(f, offset, memory, count, type, request); break;
        default: error = MPI_ERR_ARG;
        }
        if (error != MPI_SUCCESS)
            part_done(&own->part);
    }
    if (error == MPI_SUCCESS)
        *started = (int64_t)(intptr_t)own;
    else
        free(own);
    return error;
}

/* `moved` is meaningful and the request gone once `done` is 1. */
static int adapter_test(int64_t started, int64_t *done, int64_t *moved)
{
    struct request *own = (struct request *)(intptr_t)started;
    MPI_Status status;
    int flag = 0, error = MPI_Test(&own->request, &flag, &status);
    *done = flag || error != MPI_SUCCESS;
    if (error == MPI_SUCCESS && flag)
        error = bytes_moved(&status, own->part.type, moved);
    if (*done) {
        part_done(&own->part);
        free(own);
    }
    return error;
}

struct table {
    int64_t abi, size;
    int (*init)(int64_t *, int64_t *);
    int (*finalize)(void);
    int (*version)(char *, int64_t);
    int (*error_text)(int64_t, char *, int64_t);
    int (*barrier)(void);
    int (*gather)(const void *, int64_t, void *);
    int (*type_make)(int64_t, const int64_t *, int64_t *);
    int (*type_free)(int64_t);
    int (*open)(const char *, int64_t, int64_t, int64_t, const char *, int64_t, int64_t *);
    int (*close)(int64_t);
    int (*sync)(int64_t);
    int (*view)(int64_t, int64_t, int64_t);
    int (*transfer)(int64_t, int64_t, int64_t, int64_t, void *, int64_t, int64_t, int64_t *);
    int (*start)(int64_t, int64_t, int64_t, int64_t, void *, int64_t, int64_t, int64_t *);
    int (*test)(int64_t, int64_t *, int64_t *);
};

const struct table iolab_mpi_table = {
    ABI,
    sizeof(struct table),
    adapter_init,
    adapter_finalize,
    adapter_version,
    adapter_error_text,
    adapter_barrier,
    adapter_gather,
    adapter_type_make,
    adapter_type_free,
    adapter_open,
    adapter_close,
    adapter_sync,
    adapter_view,
    adapter_transfer,
    adapter_start,
    adapter_test,
};

/* Filetypes whose second tile would begin before the first one ends, as PnetCDF makes them: a header, and
   behind it a subarray whose extent is all that counts for the whole one's. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "overlapping.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);

    int sizes[2] = {10, 16 * size}, own[2] = {10, 16}, starts[2] = {0, 16 * rank};
    MPI_Datatype part, behind, filetype;
    MPI_Type_create_subarray(2, sizes, own, starts, MPI_ORDER_C, MPI_BYTE, &part);
    int lengths[2] = {512, 1};
    MPI_Aint places[2] = {0, 512};
    MPI_Datatype parts[2] = {MPI_BYTE, part};
    MPI_Type_create_struct(2, lengths, places, parts, &behind);
    MPI_Type_create_resized(behind, 0, 160 * size, &filetype);
    MPI_Type_commit(&filetype);

    char header[512], bytes[160], back[160];
    memset(header, 'h', sizeof header);
    for (int i = 0; i < 160; i++) bytes[i] = 'a' + (rank * 7 + i) % 26;
    int failed = MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
    if (rank == 0) failed += MPI_File_write_at(file, 0, header, 512, MPI_BYTE, MPI_STATUS_IGNORE);
    failed += MPI_File_write_at_all(file, 512, bytes, 160, MPI_BYTE, MPI_STATUS_IGNORE);
    failed += MPI_File_read_at_all(file, 512, back, 160, MPI_BYTE, MPI_STATUS_IGNORE);
    int wrong = failed || memcmp(bytes, back, 160);

    /* Tiles that lie between each other's parts. */
    int ones[2] = {4, 4}, apart[2] = {0, 100 + 8 * rank};
    MPI_Datatype pairs, woven;
    MPI_Type_indexed(2, ones, apart, MPI_BYTE, &pairs);
    MPI_Type_create_resized(pairs, 0, 4, &woven);
    MPI_Type_commit(&woven);
    failed = MPI_File_set_view(file, 4096 * (rank + 1), MPI_BYTE, woven, "native", MPI_INFO_NULL);
    failed += MPI_File_write_all(file, bytes, 48, MPI_BYTE, MPI_STATUS_IGNORE);
    memset(back, 0, sizeof back);
    failed += MPI_File_read_at_all(file, 0, back, 48, MPI_BYTE, MPI_STATUS_IGNORE);
    wrong = wrong || failed || memcmp(bytes, back, 48);
    MPI_File_close(&file);
    MPI_Finalize();
    return wrong;
}

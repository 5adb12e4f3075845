/*
 * Solves Poisson's equation on the unit square with Jacobi's method, in parallel, and saves what
 * it computes the way such course and research codes do.
 *
 * The matrix is split into bands of rows, one per rank; neighbours exchange their border rows in
 * each iteration. Every CHECKPOINT_EVERY iterations
 *   - each rank writes its rows through MPI-IO, one MPI_File_write_at per row (`matrix-NNNN.bin`,
 *     the rows as doubles, in order, whatever the number of ranks),
 *   - each rank writes its part of a picture with POSIX, one 12-byte text cell at a time with a
 *     pwrite at its computed place (`picture.txt`, a table people can plot), and
 *   - rank 0 appends a line to `residuum.log`.
 * All of it is deterministic: equal arguments and rank counts give equal bytes. (Jacobi updates
 * and maxima do not depend on the split, so other rank counts give the same files, too.)
 *
 * Usage: mpiexec -n RANKS jacobi DIRECTORY [INTERLINES [ITERATIONS [CHECKPOINT_EVERY]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELL_BYTES = 12 };

/* The part of the matrix one rank works on: `rows` inner rows and a border row at each end. */
struct band {
	int rank, ranks;
	int columns; /* of the whole matrix, borders included */
	int first;   /* row of the matrix that is our row 1 */
	int rows;
	double *now, *next;
};

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "jacobi: cannot %s %s: %s\n", what, name, strerror(errno));
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void check(int code, const char *what, const char *name)
{
	char reason[MPI_MAX_ERROR_STRING];
	int length;
	if (code == MPI_SUCCESS)
		return;
	MPI_Error_string(code, reason, &length);
	fprintf(stderr, "jacobi: cannot %s %s: %s\n", what, name, reason);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Inner rows are dealt out as evenly as possible, the first ranks get the odd ones. */
static struct band split(int rank, int ranks, int columns)
{
	int inner = columns - 2, share = inner / ranks, odd = inner % ranks;
	struct band band = { rank, ranks, columns, 0, 0, NULL, NULL };
	band.rows = share + (rank < odd);
	band.first = 1 + rank * share + (rank < odd ? rank : odd);
	size_t cells = (size_t)(band.rows + 2) * (size_t)columns;
	band.now = calloc(cells, sizeof(double));
	band.next = calloc(cells, sizeof(double));
	if (band.now == NULL || band.next == NULL)
		fail("allocate", "the matrix");
	return band;
}

/* The edge of the square is held at values that fall from one corner to the opposite one. */
static void set_borders(struct band *band)
{
	double h = 1.0 / (band->columns - 1);
	double *both[2] = { band->now, band->next };
	for (int m = 0; m < 2; m++)
		for (int r = 0; r < band->rows + 2; r++) {
			int row = band->first - 1 + r;
			double *line = both[m] + (size_t)r * (size_t)band->columns;
			line[0] = 1.0 - h * row;
			line[band->columns - 1] = h * row;
			if (row == 0)
				for (int c = 0; c < band->columns; c++)
					line[c] = 1.0 - h * c;
			if (row == band->columns - 1)
				for (int c = 0; c < band->columns; c++)
					line[c] = h * c;
		}
}

/* Fetches the neighbours' border rows. */
static void exchange(struct band *band)
{
	int above = band->rank > 0 ? band->rank - 1 : MPI_PROC_NULL;
	int below = band->rank + 1 < band->ranks ? band->rank + 1 : MPI_PROC_NULL;
	size_t columns = (size_t)band->columns, rows = (size_t)band->rows;
	MPI_Sendrecv(band->now + columns, band->columns, MPI_DOUBLE, above, 0,
		band->now + (rows + 1) * columns, band->columns, MPI_DOUBLE, below, 0,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(band->now + rows * columns, band->columns, MPI_DOUBLE, below, 1, band->now,
		band->columns, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One Jacobi iteration; returns the largest change of any cell on any rank. */
static double iterate(struct band *band)
{
	double h = 1.0 / (band->columns - 1), change = 0.0, largest;
	int columns = band->columns;
	exchange(band);
	for (int r = 1; r <= band->rows; r++) {
		const double *line = band->now + (size_t)r * (size_t)columns;
		double *out = band->next + (size_t)r * (size_t)columns;
		double source = h * h * 2.0 * M_PI * M_PI * sin(M_PI * h * (band->first - 1 + r));
		for (int c = 1; c < columns - 1; c++) {
			double value = 0.25 * (line[c - 1] + line[c + 1] + line[c - columns]
				+ line[c + columns] + source * sin(M_PI * h * c));
			double difference = fabs(value - line[c]);
			if (difference > change)
				change = difference;
			out[c] = value;
		}
	}
	double *swap = band->now;
	band->now = band->next;
	band->next = swap;
	MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return largest;
}

/* The rows a rank answers for in files: its own, and the outermost ranks' border rows. */
static void rows_to_save(const struct band *band, int *from, int *to)
{
	*from = band->rank == 0 ? 0 : 1;
	*to = band->rank == band->ranks - 1 ? band->rows + 1 : band->rows;
}

static void save_matrix(const struct band *band, const char *directory, int iteration)
{
	char name[4096];
	int from, to;
	MPI_File file;
	rows_to_save(band, &from, &to);
	snprintf(name, sizeof name, "%s/matrix-%04d.bin", directory, iteration);
	check(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
		&file), "open", name);
	check(MPI_File_set_size(file, 0), "empty", name);
	for (int r = from; r <= to; r++) {
		MPI_Offset at = (MPI_Offset)(band->first - 1 + r) * band->columns
			* (MPI_Offset)sizeof(double);
		check(MPI_File_write_at(file, at, band->now + (size_t)r * (size_t)band->columns,
			band->columns, MPI_DOUBLE, MPI_STATUS_IGNORE), "write", name);
	}
	check(MPI_File_close(&file), "close", name);
}

static void save_picture(const struct band *band, const char *directory)
{
	char name[4096], cell[32];
	int from, to;
	rows_to_save(band, &from, &to);
	snprintf(name, sizeof name, "%s/picture.txt", directory);
	int fd = open(name, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		fail("open", name);
	for (int r = from; r <= to; r++)
		for (int c = 0; c < band->columns; c++) {
			long row = band->first - 1 + r;
			off_t at = (off_t)(row * band->columns + c) * CELL_BYTES;
			snprintf(cell, sizeof cell, "%11.4e%c",
				band->now[(size_t)r * (size_t)band->columns + (size_t)c],
				c == band->columns - 1 ? '\n' : ' ');
			if (pwrite(fd, cell, CELL_BYTES, at) != CELL_BYTES)
				fail("write", name);
		}
	if (close(fd) != 0)
		fail("close", name);
}

static void note(const char *directory, int iteration, double residuum)
{
	char name[4096], line[64];
	snprintf(name, sizeof name, "%s/residuum.log", directory);
	int length = snprintf(line, sizeof line, "%6d %.10e\n", iteration, residuum);
	int flags = O_WRONLY | O_CREAT | O_APPEND | (iteration == 1 ? O_TRUNC : 0);
	int fd = open(name, flags, 0644);
	if (fd < 0)
		fail("open", name);
	if (write(fd, line, (size_t)length) != length)
		fail("write", name);
	if (close(fd) != 0)
		fail("close", name);
}

static int count_of(int argc, char **argv, int index, int otherwise)
{
	if (index >= argc)
		return otherwise;
	char *end;
	long value = strtol(argv[index], &end, 10);
	if (*end != '\0' || value < 1 || value > 100000) {
		fprintf(stderr, "jacobi: `%s` is not a count from 1 to 100000\n", argv[index]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return (int)value;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 2 || argc > 5) {
		fputs("usage: jacobi DIRECTORY [INTERLINES [ITERATIONS [CHECKPOINT_EVERY]]]\n", stderr);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	const char *directory = argv[1];
	int interlines = count_of(argc, argv, 2, 48);
	int iterations = count_of(argc, argv, 3, 400);
	int every = count_of(argc, argv, 4, 100);
	int columns = 8 * interlines + 9;
	if (columns - 2 < ranks) {
		fprintf(stderr, "jacobi: %d ranks cannot share %d rows\n", ranks, columns - 2);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (rank == 0 && mkdir(directory, 0755) != 0 && errno != EEXIST)
		fail("create", directory);
	MPI_Barrier(MPI_COMM_WORLD);

	struct band band = split(rank, ranks, columns);
	set_borders(&band);
	double residuum = 0.0;
	for (int i = 1; i <= iterations; i++) {
		residuum = iterate(&band);
		if (rank == 0)
			note(directory, i, residuum);
		if (i % every == 0) {
			save_matrix(&band, directory, i);
			save_picture(&band, directory);
		}
	}
	if (rank == 0)
		printf("%d x %d cells, %d iterations, last change %.6e\n", columns, columns,
			iterations, residuum);
	free(band.now);
	free(band.next);
	MPI_Finalize();
	return 0;
}

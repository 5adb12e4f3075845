/*
 * A particle simulation that saves its state the way many research codes do: record by record.
 *
 * The physics is honest: particles in the field of eight moving wells, leapfrog integration.
 * The checkpoints are honest too, and slow:
 *   - every particle is written in four pieces of 16 to 48 bytes,
 *   - before each particle the program seeks to where it already is,
 *   - every 250 particles it goes back and rewrites the header "to be safe",
 *   - every 10,000 particles it asks for an fsync,
 *   - the log is opened, extended by one line and closed again for every step.
 * Nothing in it is random: the same arguments give the same bytes.
 *
 * Usage: checkpoint DIRECTORY [PARTICLES [CHECKPOINTS [STEPS_BETWEEN]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WELL_COUNT = 8, RECORD_BYTES = 104, HEADER_EVERY = 250, SYNC_EVERY = 10000 };

struct particle {
	double position[2];
	double velocity[2];
	double mass;
};

struct header {
	char magic[8];
	uint64_t checkpoint;
	uint64_t step;
	uint64_t particles_total;
	uint64_t particles_written;
	double time;
	double energy;
	uint64_t reserved;
};

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "checkpoint: cannot %s %s: %s\n", what, name, strerror(errno));
	exit(EXIT_FAILURE);
}

/* A small generator, so that the start is the same on every machine. */
static double next_uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

static void place(struct particle *particles, long count)
{
	uint64_t state = 42;
	for (long i = 0; i < count; i++) {
		particles[i].position[0] = next_uniform(&state);
		particles[i].position[1] = next_uniform(&state);
		particles[i].velocity[0] = next_uniform(&state) - 0.5;
		particles[i].velocity[1] = next_uniform(&state) - 0.5;
		particles[i].mass = 0.5 + next_uniform(&state);
	}
}

/* The wells circle the centre of the unit square. */
static void wells_at(double time, double wells[WELL_COUNT][2])
{
	for (int w = 0; w < WELL_COUNT; w++) {
		double angle = time + w * 2.0 * M_PI / WELL_COUNT;
		wells[w][0] = 0.5 + 0.3 * cos(angle);
		wells[w][1] = 0.5 + 0.3 * sin(angle);
	}
}

/* Moves everything by `dt` and returns the kinetic energy. */
static double advance(struct particle *particles, long count, double time, double dt)
{
	double wells[WELL_COUNT][2];
	double energy = 0.0;
	wells_at(time, wells);
	for (long i = 0; i < count; i++) {
		struct particle *p = &particles[i];
		double force[2] = { 0.0, 0.0 };
		for (int w = 0; w < WELL_COUNT; w++) {
			double dx = wells[w][0] - p->position[0];
			double dy = wells[w][1] - p->position[1];
			double square = dx * dx + dy * dy + 0.01;
			double pull = 0.02 / (square * sqrt(square));
			force[0] += pull * dx;
			force[1] += pull * dy;
		}
		for (int d = 0; d < 2; d++) {
			p->velocity[d] += force[d] * dt;
			p->position[d] += p->velocity[d] * dt;
		}
		energy += 0.5 * p->mass
			* (p->velocity[0] * p->velocity[0] + p->velocity[1] * p->velocity[1]);
	}
	return energy;
}

static void put(int fd, const void *bytes, size_t length, const char *name)
{
	const char *from = bytes;
	while (length > 0) {
		ssize_t written = write(fd, from, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			fail("write", name);
		from += written;
		length -= (size_t)written;
	}
}

static void put_header(int fd, const struct header *header, const char *name)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		fail("seek in", name);
	put(fd, header, sizeof *header, name);
}

static void save(const char *name, struct header header, const struct particle *particles)
{
	static const char padding[48];
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		fail("open", name);
	put_header(fd, &header, name);
	for (uint64_t i = 0; i < header.particles_total; i++) {
		uint64_t label[2] = { i, header.step };
		double velocity_and_mass[3] = { particles[i].velocity[0], particles[i].velocity[1],
			particles[i].mass };
		off_t start = (off_t)(sizeof header + i * RECORD_BYTES);
		if (lseek(fd, start, SEEK_SET) < 0)
			fail("seek in", name);
		put(fd, label, sizeof label, name);
		put(fd, particles[i].position, sizeof particles[i].position, name);
		put(fd, velocity_and_mass, sizeof velocity_and_mass, name);
		put(fd, padding, sizeof padding, name);
		header.particles_written = i + 1;
		if (header.particles_written % HEADER_EVERY == 0)
			put_header(fd, &header, name);
		if (header.particles_written % SYNC_EVERY == 0 && fsync(fd) != 0)
			fail("sync", name);
	}
	put_header(fd, &header, name);
	if (close(fd) != 0)
		fail("close", name);
}

static void note(const char *name, long step, double time, double energy)
{
	char line[80];
	int length = snprintf(line, sizeof line, "%8ld %12.6f %18.10e\n", step, time, energy);
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0)
		fail("open", name);
	put(fd, line, (size_t)length, name);
	if (close(fd) != 0)
		fail("close", name);
}

static long count_of(int argc, char **argv, int index, long otherwise)
{
	if (index >= argc)
		return otherwise;
	char *end;
	errno = 0;
	long value = strtol(argv[index], &end, 10);
	if (errno != 0 || *end != '\0' || value < 1 || value > 100000000) {
		fprintf(stderr, "checkpoint: `%s` is not a count from 1 to 100000000\n", argv[index]);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 5) {
		fputs("usage: checkpoint DIRECTORY [PARTICLES [CHECKPOINTS [STEPS_BETWEEN]]]\n", stderr);
		return 2;
	}
	const char *directory = argv[1];
	long count = count_of(argc, argv, 2, 25000);
	long checkpoints = count_of(argc, argv, 3, 6);
	long steps = count_of(argc, argv, 4, 20);
	struct particle *particles = calloc((size_t)count, sizeof *particles);
	if (particles == NULL)
		fail("allocate", "the particles");
	if (mkdir(directory, 0755) != 0 && errno != EEXIST)
		fail("create", directory);

	char name[4096], log_name[4096];
	snprintf(log_name, sizeof log_name, "%s/energy.log", directory);
	if (unlink(log_name) != 0 && errno != ENOENT)
		fail("remove", log_name);

	place(particles, count);
	double time = 0.0, energy = 0.0;
	const double dt = 0.001;
	long step = 0;
	for (long c = 0; c < checkpoints; c++) {
		for (long s = 0; s < steps; s++) {
			energy = advance(particles, count, time, dt);
			time += dt;
			note(log_name, ++step, time, energy);
		}
		struct header header = { "PARTCHK", (uint64_t)c, (uint64_t)step, (uint64_t)count, 0,
			time, energy, 0 };
		snprintf(name, sizeof name, "%s/checkpoint-%03ld.dat", directory, c);
		save(name, header, particles);
	}
	printf("%ld particles, %ld steps, %ld checkpoints, energy %.10e\n", count, step, checkpoints,
		energy);
	free(particles);
	return 0;
}

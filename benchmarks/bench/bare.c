/* The bare loop that the harness is compared with: pread of a cached file, nothing else.
 * Prints CPU nanoseconds per operation (user and system), the best of some passes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "usage: bare FILE BYTES COUNT PASSES\n"), 2;
    size_t bytes = strtoul(argv[2], NULL, 10);
    long count = atol(argv[3]), passes = atol(argv[4]);
    int fd = open(argv[1], O_RDONLY);
    char *buffer = malloc(bytes);
    double best = 1e30;
    if (fd < 0 || buffer == NULL)
        return perror(argv[1]), 1;
    for (long pass = 0; pass < passes; pass++) {
        double start = cpu();
        for (long i = 0; i < count; i++)
            if (pread(fd, buffer, bytes, (off_t)(i * bytes)) != (ssize_t)bytes)
                return perror("pread"), 1;
        double each = (cpu() - start) / count;
        best = each < best ? each : best;
    }
    printf("%.1f\n", best);
    return 0;
}

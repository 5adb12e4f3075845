/* The machine's price of the smallest things: nanoseconds of a system call that does nothing, and of
 * touching a page that the kernel has not given out yet. Ratios of small operations are ratios of these. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 15, CALLS = 20000, PAGES = 2048, PAGE = 4096 };

static double now_ns(void) {
    struct timespec time;
    /* CPU time: what else runs on the machine is not its price. */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void) {
    double call = 1e18, page = 1e18, taken;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++) syscall(SYS_getppid);
        taken = (now_ns() - start) / CALLS;
        call = taken < call ? taken : call;
        char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return perror("mmap"), 1;
        madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
        start = now_ns();
        for (size_t i = 0; i < PAGES; i++) memory[i * PAGE] = 1;
        taken = (now_ns() - start) / PAGES;
        page = taken < page ? taken : page;
        munmap(memory, (size_t)PAGES * PAGE);
    }
    printf("a system call costs %.0f ns here, a fresh page %.0f ns\n", call, page);
    return 0;
}

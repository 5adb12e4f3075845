/* Threads that share nothing: each has a file of its own, and starts programs. A checker of races has nothing to say. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *number)
{
    char name[16], text[64];
    snprintf(name, sizeof name, "thread%ld", (long)number);
    for (int round = 0; round < 20; round++) {
        int file = open(name, O_RDWR | O_CREAT | (round ? 0 : O_TRUNC), 0644);
        lseek(file, 0, SEEK_END);
        int length = snprintf(text, sizeof text, "round %d\n", round);
        if (write(file, text, length) != length)
            return "write";
        lseek(file, -length, SEEK_CUR);
        if (read(file, text, length) != length)
            return "read";
        pid_t child = fork();
        if (child == 0) {
            dup2(file, 1);
            execl("/bin/echo", "echo", "child", (char *)0);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0)
            return "child";
        close(file);
        FILE *stream = fopen(name, "a");
        fprintf(stream, "stream %d\n", round);
        fclose(stream);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (long number = 0; number < 4; number++)
        pthread_create(&threads[number], NULL, work, (void *)number);
    for (int number = 0; number < 4; number++) {
        void *failed;
        pthread_join(threads[number], &failed);
        puts(failed ? failed : "done");
    }
    return 0;
}

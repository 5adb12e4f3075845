/* Many small calls on a stream and nothing else: what recording them costs.
 *
 *   streams fputc|fgetc|fputs|fgets|fprintf|copy|unbuffered|write CALLS FILE [OTHER]
 *
 * Makes so many calls of the function (fprintf: each with an fputc behind it; copy: fgetc and putc;
 * unbuffered, write: 10 bytes that reach the system each).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int words, char **word) {
    if (words < 4) return 2;
    const char *what = word[1];
    long calls = atol(word[2]);
    int reads = !strcmp(what, "fgetc") || !strcmp(what, "fgets") || !strcmp(what, "copy");
    FILE *stream = fopen(word[3], reads ? "r" : "w");
    FILE *other = words > 4 ? fopen(word[4], "w") : NULL;
    char line[100];
    if (!stream) return 1;
    if (!strcmp(what, "unbuffered")) setvbuf(stream, NULL, _IONBF, 0);
    int descriptor = fileno(stream);
    for (long call = 0; call < calls; call++) {
        switch (what[0] == 'f' ? what[4] + (what[1] == 'g') : what[0]) {
        case 'c': /* fputc, copy */
            if (what[0] == 'f') fputc('x', stream);
            else putc(fgetc(stream), other);
            break;
        case 'd': fgetc(stream); break;
        case 's': fputs("a short line\n", stream); break;
        case 't': if (!fgets(line, sizeof line, stream)) rewind(stream); break;
        case 'n': /* fprintf */ fprintf(stream, "%ld", call % 10); fputc('\n', stream); break;
        case 'u': fwrite("012345678\n", 10, 1, stream); break;
        case 'w': if (write(descriptor, "012345678\n", 10) != 10) return 1; break;
        }
    }
    if (other) fclose(other);
    return fclose(stream) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads small text files that may contain secrets.
 *
 * Invariant: memory that held any part of a file is wiped before it is freed here.
 */
#include "client/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INITIAL_SPACE ((size_t)8 << 10)

void hf__wipe_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

void hf__trim_end(char *text) {
        size_t n = strlen(text);

        while (n > 0 && strchr(" \t\r\n", text[n - 1]))
                text[--n] = '\0';
}

/* Like realloc, but wipes the old memory. Frees `text` also on failure. */
static char *grow_and_wipe(char *text, size_t n, size_t space) {
        char *larger = malloc(space);

        if (larger)
                memcpy(larger, text, n);
        explicit_bzero(text, n);
        free(text);
        return larger;
}

/* Reads until the end of the file. Does not rely on st_size, because another program may write to
 * the file in the meantime. */
static int read_content(int fd, char **ret_text, size_t *ret_n) {
        size_t n = 0, space = INITIAL_SPACE;
        char *text = malloc(space);
        int r = 0;

        if (!text)
                return -ENOMEM;
        while (r == 0) {
                if (n + 1 == space) { /* the last byte is for the NUL */
                        space *= 2;
                        text = grow_and_wipe(text, n, space);
                        if (!text)
                                return -ENOMEM;
                }
                ssize_t n_read = read(fd, text + n, space - 1 - n);
                if (n_read < 0 && errno == EINTR)
                        continue;
                if (n_read < 0)
                        r = -errno;
                if (n_read <= 0)
                        break;
                n += (size_t)n_read;
                if (n > HF__FILE_TEXT_MAX)
                        r = -EFBIG;
        }
        if (r == 0 && memchr(text, '\0', n)) /* callers use a C string, which would end there */
                r = -EINVAL;
        if (r < 0) {
                explicit_bzero(text, n);
                free(text);
                return r;
        }
        text[n] = '\0';
        *ret_text = text;
        *ret_n = n;
        return 0;
}

int hf__file_text(const char *path, char **ret_text, size_t *ret_n) {
        struct stat st;
        /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                r = -EINVAL;
        if (r == 0)
                r = read_content(fd, ret_text, ret_n);
        (void)close(fd);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of a fuzz target in a build without libFuzzer: it gives the target each file of
 * the directories and files in its arguments. An input that takes longer than SECONDS ends the
 * program, and its name is the last that was printed.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECONDS 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int replay_file(const char *path) {
        FILE *file = fopen(path, "rbe");
        struct stat st;

        if (!file || fstat(fileno(file), &st) != 0) {
                perror(path);
                return 1;
        }
        /* Exactly as long as the input, so that a sanitizer sees a read beyond its end. */
        uint8_t *data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
        size_t n = data ? fread(data, 1, (size_t)st.st_size, file) : 0;
        fclose(file);
        printf("%s\n", path);
        fflush(stdout);
        (void)alarm(SECONDS);
        (void)LLVMFuzzerTestOneInput(data, n);
        (void)alarm(0);
        free(data);
        return 0;
}

static int replay_directory(const char *path) {
        struct dirent **names;
        int n = scandir(path, &names, NULL, alphasort), r = 0;

        if (n < 0) {
                perror(path);
                return 1;
        }
        for (int i = 0; i < n; i++) {
                char file[4096];

                (void)snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
                if (r == 0 && names[i]->d_name[0] != '.')
                        r = replay_file(file);
                free(names[i]);
        }
        free(names);
        return r;
}

int main(int argc, char **argv) {
        int r = 0;

        for (int i = 1; i < argc && r == 0; i++) {
                struct stat st;
                bool is_directory = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);

                r = is_directory ? replay_directory(argv[i]) : replay_file(argv[i]);
        }
        return r;
}

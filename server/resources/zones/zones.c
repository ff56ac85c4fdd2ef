/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and keeps the zones of the system.
 *
 * Invariants: a zone that is in the list stays, unchanged, until the process ends. The mutex guards
 * the list; no file is read with it held. Only names of existing zones take memory, and at most
 * ZONES_MAX of them.
 */
#include "server/resources/zones/zones.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/resources/zones/zone.h"

#define FOLDER "/usr/share/zoneinfo/"
/* Debian's tzdata has some 1,200 names, all of them shorter than NAME_MAX_BYTES. A zone beyond
 * ZONES_MAX is read at each look-up. */
#define NAME_MAX_BYTES 64
#define ZONES_MAX      1000

/* A zone that was read. */
struct entry {
        struct entry *next;
        struct hfd_zone *zone;
        char name[NAME_MAX_BYTES + 1];
};

static pthread_mutex_t zones_mu = PTHREAD_MUTEX_INITIALIZER;
static struct entry *zones;
static size_t n_zones;

/* Whether the name is the plainest spelling of its path. Only such names are kept: whoever writes
 * expressions could otherwise fill the list with "Europe//Berlin", "Europe/./Berlin" and so on. */
static bool is_plain(const char *name) {
        return strncmp(name, "./", 2) != 0 && !strstr(name, "//") && !strstr(name, "/./");
}

static const struct hfd_zone *find_zone(const char *name) {
        const struct hfd_zone *zone = NULL;

        pthread_mutex_lock(&zones_mu);
        for (const struct entry *e = zones; e && !zone; e = e->next)
                if (strcmp(e->name, name) == 0)
                        zone = e->zone;
        pthread_mutex_unlock(&zones_mu);
        return zone;
}

/* Reads the file of a zone. NULL: there is no such file, it is not a valid zone, or it cannot be
 * read, for example because memory runs out. */
static struct hfd_zone *load_zone(const char *name) {
        char path[sizeof FOLDER + NAME_MAX_BYTES];
        struct hfd_zone *zone = NULL;
        struct stat st;
        char *data;
        ssize_t n;
        int fd;

        (void)snprintf(path, sizeof path, FOLDER "%s", name);
        /* O_NONBLOCK: whatever the file is, opening it must not wait. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return NULL;
        data = malloc(HFD_ZONE_BYTES_MAX);
        if (data && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
                n = read(fd, data, HFD_ZONE_BYTES_MAX);
                if (n > 0 && hfd_zone_new(data, (size_t)n, &zone) != 0)
                        zone = NULL;
        }
        free(data);
        close(fd);
        return zone;
}

/* Keeps the zone. Two threads that read one zone at the same time keep it twice, which does no
 * harm. False: it was not kept, and the caller still owns it. */
static bool keep_zone(const char *name, struct hfd_zone *zone) {
        struct entry *entry = calloc(1, sizeof *entry);
        bool kept = false;

        if (!entry)
                return false;
        assert(zone && strlen(name) <= NAME_MAX_BYTES);
        entry->zone = zone;
        memcpy(entry->name, name, strlen(name) + 1);
        pthread_mutex_lock(&zones_mu);
        if (n_zones < ZONES_MAX) {
                entry->next = zones;
                zones = entry;
                n_zones++;
                kept = true;
        }
        pthread_mutex_unlock(&zones_mu);
        if (!kept)
                free(entry);
        return kept;
}

/* `offset` of struct hf__cel_zones. A zone that cannot be kept is read at each look-up. The caller
 * (cel/functions/times.c) has refused names with ".." and with a slash at the beginning, so no name
 * leads out of FOLDER. */
static bool offset_of(void *ctx, const char *name, size_t n, int64_t seconds, int64_t *ret_offset) {
        const struct hfd_zone *zone;
        struct hfd_zone *loaded;
        char text[NAME_MAX_BYTES + 1];

        if (n == 0 || n > NAME_MAX_BYTES || memchr(name, 0, n))
                return false;
        memcpy(text, name, n);
        text[n] = 0;
        zone = find_zone(text);
        if (zone) {
                *ret_offset = hfd_zone_offset(zone, seconds);
                return true;
        }
        loaded = load_zone(text);
        if (!loaded)
                return false;
        *ret_offset = hfd_zone_offset(loaded, seconds);
        if (!is_plain(text) || !keep_zone(text, loaded))
                hfd_zone_free(loaded);
        return true;
}

/* Whether there is a file of this name that begins as the files of zones do, as far as that can be
 * found out: a shortage of file descriptors does not make a zone unknown. */
static bool may_have_file(const char *name) {
        char path[sizeof FOLDER + NAME_MAX_BYTES], magic[4];

        if (strlen(name) > NAME_MAX_BYTES)
                return false;
        (void)snprintf(path, sizeof path, FOLDER "%s", name);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return errno != ENOENT && errno != ENOTDIR;
        ssize_t n = read(fd, magic, sizeof magic);
        bool may = n < 0 ? errno != EISDIR
                         : n == sizeof magic && memcmp(magic, "TZif", sizeof magic) == 0;
        close(fd);
        return may;
}

/* No zone has a dot in its name, and with one a name could lead out of FOLDER. US/Eastern stands
 * for the old names, because a machine has all of them or none: without US/Eastern, an unknown name
 * may be one of them. */
bool hfd_zone_may_exist(const char *name) {
        return strcmp(name, "UTC") == 0 || (!strchr(name, '.') && may_have_file(name)) ||
               !may_have_file("US/Eastern");
}

const struct hf__cel_zones *hfd_zones(void) {
        static const struct hf__cel_zones all = {.offset = offset_of};

        return &all;
}

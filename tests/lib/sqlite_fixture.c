/* SPDX-License-Identifier: Apache-2.0 */
/* See sqlite_fixture.h. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char directory[64];

int sqlite_fixture_setup(void **state) {
        (void)snprintf(directory, sizeof directory, "/tmp/hfd-sqlite-XXXXXX");
        return mkdtemp(directory) ? 0 : -1;
}

int sqlite_fixture_teardown(void **state) {
        char command[128];

        (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
        return system(command);
}

const char *sqlite_fixture_path(const char *name) {
        static char paths[4][128];
        static unsigned next;
        char *path = paths[next++ % 4];

        (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
        return path;
}

int64_t sqlite_fixture_sql(const char *name, const char *text) {
        sqlite3 *db;
        sqlite3_stmt *statement;
        int64_t value = 0;

        assert_int_equal(sqlite3_open(sqlite_fixture_path(name), &db), SQLITE_OK);
        /* An open store may be in a transaction. */
        assert_int_equal(sqlite3_busy_timeout(db, 60 * 1000), SQLITE_OK);
        for (const char *at = text; *at;) {
                if (sqlite3_prepare_v2(db, at, -1, &statement, &at) != SQLITE_OK)
                        fail_msg("%s: %s", text, sqlite3_errmsg(db));
                while (sqlite3_step(statement) == SQLITE_ROW)
                        value = sqlite3_column_int64(statement, 0);
                assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
        }
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        return value;
}

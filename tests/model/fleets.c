/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleets old|new --schedules N --seed SEED: prints what random fleets that move from one Lease to
 * another do, as leader/model/two_lease.pml knows it. tests/model/replay.py reads it.
 *
 * old: processes that know the old Lease, and such that know both. new: both, and the new one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "two_lease_fixture.h"

int main(int argc, char **argv) {
        enum two_lease_knowledge other;
        uint64_t n_schedules, seed;

        if (argc != 6 || strcmp(argv[2], "--schedules") != 0 || strcmp(argv[4], "--seed") != 0 ||
            (strcmp(argv[1], "old") != 0 && strcmp(argv[1], "new") != 0)) {
                fprintf(stderr, "fleets old|new --schedules N --seed SEED\n");
                return 2;
        }
        other = strcmp(argv[1], "old") == 0 ? KNOWS_OLD : KNOWS_NEW;
        n_schedules = strtoull(argv[3], NULL, 10);
        seed = strtoull(argv[5], NULL, 10);
        for (uint64_t i = 0; i < n_schedules; i++) {
                struct two_lease_fixture *f = two_lease_fixture_new(seed + i);

                f->steps = stdout;
                printf("schedule %" PRIu64 "\n", seed + i);
                two_lease_fixture_run_fleet(f, KNOWS_BOTH, other, 300 * SEC);
        }
        return 0;
}

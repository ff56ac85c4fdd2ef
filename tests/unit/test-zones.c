/* SPDX-License-Identifier: Apache-2.0 */
/* Named time zones: files of zones, their rules, and malformed files. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "server/resources/zones/zone.h"
#include "server/resources/zones/zone_rule.h"
#include "server/resources/zones/zones.h"

#define HOUR 3600

/* Seconds since 1970 of January and July 1 of years, at midnight UTC. */
#define JANUARY_2024 INT64_C(1704067200)
#define JULY_2024    INT64_C(1719792000)
#define JULY_2044    INT64_C(2350944000)

static void test_rules(void **state) {
        static const struct {
                const char *rule;
                int64_t seconds;
                int offset;
        } cases[] = {
                {"CET-1CEST,M3.5.0,M10.5.0/3", JANUARY_2024, HOUR},
                {"CET-1CEST,M3.5.0,M10.5.0/3", JULY_2024, 2 * HOUR},
                {"CET-1CEST,M3.5.0,M10.5.0/3", JULY_2044, 2 * HOUR},
                /* The last second of winter, and the first of summer: March 31, 01:00 UTC. */
                {"CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(1711846799), HOUR},
                {"CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(1711846800), 2 * HOUR},
                {"CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(1729990799), 2 * HOUR},
                {"CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(1729990800), HOUR},
                {"EST5EDT,M3.2.0,M11.1.0", JULY_2024, -4 * HOUR},
                {"NZST-12NZDT,M9.5.0,M4.1.0/3", JANUARY_2024, 13 * HOUR},
                {"NZST-12NZDT,M9.5.0,M4.1.0/3", JULY_2024, 12 * HOUR},
                {"<+0330>-3:30", JULY_2024, 3 * HOUR + 1800},
                {"IST-1GMT0,M10.5.0,M3.5.0/1", JANUARY_2024, 0},
                {"AAA11:30:15", 0, -(11 * HOUR + 1815)},
                {"AAA0BBB,J60/0,J300/0", INT64_C(1709251200), HOUR}, /* March 1 of a leap year */
                {"AAA0BBB,59/0,300/0", INT64_C(1709164800), HOUR},   /* February 29 */
                {"AAA3BBB,M3.5.0/-2,M10.5.0/-1", JULY_2024, -2 * HOUR},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_zone_rule rule;

                assert_true(hfd_zone_rule_parse(cases[i].rule, strlen(cases[i].rule), &rule));
                assert_int_equal(hfd_zone_rule_offset(&rule, cases[i].seconds), cases[i].offset);
        }
}

static void test_malformed_rules(void **state) {
        static const char *const rules[] = {
                "",
                "CE-1",
                "CET",
                "CET-25",
                "CET-1CEST",
                "CET-1CEST,M3",
                "<CET-1",
                "CET-1CEST,M13.1.0,M1.1.0",
                "CET-1:60",
                "CET-1CEST,J0,",
                "CET-1CEST,366,1",
                "CET-1CEST,M3.5.0,M10.5.0/168",
                "CET-1CEST,M3.5.0,M10.5.0 ",
                "CET-99999999999999999999",
        };
        struct hfd_zone_rule rule;

        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
                assert_false(hfd_zone_rule_parse(rules[i], strlen(rules[i]), &rule));
}

/* Two types and one change, in the format of version 2. */
static size_t make_file(uint8_t *out, const char *rule) {
        static const uint8_t tables[] = {
                0,   0, 0,    0,    0, 0, 0x10, 0, /* the change, at 4096 */
                1,                                 /* to type 1 */
                0,   0, 0,    0,    0, 0,          /* type 0: UTC */
                0,   0, 0x0e, 0x10, 0, 0,          /* type 1: an hour east */
                'A', 0,
        };
        uint8_t header[44] = {'T', 'Z', 'i', 'f', '2'};
        size_t n = 0;

        memcpy(out, header, sizeof header);
        n = sizeof header;
        header[35] = 1;
        header[39] = 2;
        header[43] = 2;
        memcpy(out + n, header, sizeof header);
        n += sizeof header;
        memcpy(out + n, tables, sizeof tables);
        n += sizeof tables;
        n += (size_t)sprintf((char *)out + n, "\n%s\n", rule);
        return n;
}

static void test_files(void **state) {
        struct hfd_zone *zone;
        uint8_t file[300];
        size_t n = make_file(file, "BBB-2");

        assert_int_equal(hfd_zone_new(file, n, &zone), 0);
        assert_int_equal(hfd_zone_offset(zone, INT64_C(-62135596800)), 0);
        assert_int_equal(hfd_zone_offset(zone, 4095), 0);
        assert_int_equal(hfd_zone_offset(zone, 4096), 2 * HOUR);
        assert_int_equal(hfd_zone_offset(zone, INT64_C(253402300799)), 2 * HOUR);
        hfd_zone_free(zone);
        n = make_file(file, "");
        assert_int_equal(hfd_zone_new(file, n, &zone), 0);
        assert_int_equal(hfd_zone_offset(zone, 4096), HOUR);
        hfd_zone_free(zone);
}

/* Each cut of a file is refused, and no change of a byte does harm. */
static void test_malformed_files(void **state) {
        struct hfd_zone *zone;
        uint8_t file[300];
        size_t n = make_file(file, "BBB-2CCC,M3.5.0,M10.5.0/3");

        for (size_t cut = 0; cut < n; cut++) {
                uint8_t *copy = malloc(cut + 1);
                int r;

                assert_non_null(copy);
                memcpy(copy, file, cut);
                r = hfd_zone_new(copy, cut, &zone);
                free(copy);
                if (r == 0) {
                        assert_true(cut == 44 + 44 + 23); /* a file may end without a rule */
                        hfd_zone_free(zone);
                }
        }
        for (size_t i = 0; i < n; i++)
                for (unsigned value = 0; value < 256; value += 17) {
                        uint8_t before = file[i];

                        file[i] = (uint8_t)value;
                        if (hfd_zone_new(file, n, &zone) == 0) {
                                hfd_zone_offset(zone, 0);
                                hfd_zone_offset(zone, INT64_C(253402300799));
                                hfd_zone_free(zone);
                        }
                        file[i] = before;
                }
}

static void test_zones_of_the_system(void **state) {
        static const char *const unknown[] = {"Mars/Phobos", "Europe", "zone.tab", "europe/berlin"};
        const struct hf__cel_zones *zones = hfd_zones();
        int64_t offset = 1;

        for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
                assert_false(zones->offset(zones->ctx, unknown[i], strlen(unknown[i]), 0, &offset));
        if (!zones->offset(zones->ctx, "Europe/Berlin", 13, 0, &offset))
                skip(); /* a system without tzdata */
        for (int i = 0; i < 2; i++) {
                assert_true(zones->offset(zones->ctx, "Europe/Berlin", 13, JULY_2024, &offset));
                assert_int_equal(offset, 2 * HOUR);
                assert_true(zones->offset(zones->ctx, "Asia/Kolkata", 12, JULY_2044, &offset));
                assert_int_equal(offset, 5 * HOUR + 1800);
                /* Other names of a file are read each time. */
                assert_true(zones->offset(zones->ctx, "Asia//.//Kolkata", 16, JULY_2044, &offset));
                assert_int_equal(offset, 5 * HOUR + 1800);
        }
}

/* Where the files are not complete, every name may be that of a zone. */
static void test_a_zone_is_known_by_its_file(void **state) {
        static const char *const known[] = {"UTC", "Europe/Berlin", "US/Eastern", "Etc/GMT+5",
                                            "America/Argentina/ComodRivadavia"},
                                 *const unknown[] = {"Mars/Phobos",
                                                     "Europe",
                                                     "zone.tab",
                                                     "leapseconds",
                                                     "europe/berlin",
                                                     "Europe/Berlin/x",
                                                     ("Europe/Berlin-Berlin-Berlin-Berlin-Berlin-"
                                                      "Berlin-Berlin-Berlin-Berlin")};
        struct stat st;
        bool is_complete = stat("/usr/share/zoneinfo/US/Eastern", &st) == 0;

        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
                assert_true(hfd_zone_may_exist(known[i]));
        for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
                assert_int_equal(hfd_zone_may_exist(unknown[i]), !is_complete);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_malformed_rules),
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_malformed_files),
                cmocka_unit_test(test_zones_of_the_system),
                cmocka_unit_test(test_a_zone_is_known_by_its_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

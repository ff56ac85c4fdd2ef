/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests of the rules of a pod's spec. Every function fails the test if it cannot do its work.
 */
#include <stddef.h>

#include "server/resources/causes.h"

struct hf__json;

/* In members, ' stands for ". They come first in the spec, so they replace those of VALID. causes:
 * "FIELD: TEXT", each on a line; "" = the spec is valid. */
struct spec_case {
        const char *members, *causes;
};

#define CONTAINER(name, more)                                                                      \
        "{'name':'" name "','image':'i','imagePullPolicy':'Always','terminationMessagePolicy':"    \
        "'File'" more "}"
#define VALID                                                                                      \
        "'containers':[" CONTAINER("c", "") "],'restartPolicy':'Always','dnsPolicy':"              \
                                            "'ClusterFirst','securityContext':{},"                 \
                                            "'terminationGracePeriodSeconds':30"

/* What the texts of rules end with. */
#define QUALIFIED                                                                                  \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "  \
        "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is "                                                            \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n"
#define LABEL                                                                                      \
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "   \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"
#define LABEL_VALUE                                                                                \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
        "'my_value',  or '12345', regex used for validation is "                                   \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n"
#define ADDRESS                                                                                    \
        "must be a valid IP address, (e.g. 10.9.8.7 or "                                           \
        "2001:db8::ffff)\n"

/* Parses the text that the three parts make together, in which ' stands for ". The caller frees the
 * value. */
struct hf__json *pod_spec_parse(const char *begin, const char *members, const char *end);
/* The causes of a spec with these members. */
struct hfd_causes pod_spec_causes(const char *members);
/* Fails unless the spec has these causes, in this order. */
void pod_spec_expect(const char *members, const char *causes);
void pod_spec_expect_all(const struct spec_case *cases, size_t n);
#define EXPECT_ALL(cases) pod_spec_expect_all(cases, sizeof(cases) / sizeof(cases)[0])

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cells of pods, services, volumes and so on in a Table that are not just the value of a
 * member. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

struct hf__json;
struct hf__strbuf;

/*
 * Appends the cell that path names, as a JSON string. now_s: seconds since 1970.
 *
 *      @audiences          the audiences of a CSIDriver's tokens; "<unset>" if there are none
 *      @claim              the claim of a volume: "ns/name"
 *      @class:<kind>       the name of a class, and " (default)" if it is the default one
 *      @endpoints          the addresses of an Endpoints
 *      @ingress:<what>     "hosts", "address" or "ports"
 *      @job:<what>         "status", "completions" or "duration"
 *      @known:<path>       a text; "<unknown>" if there is none
 *      @modes:<path>       access modes of a volume: "RWO,ROX"
 *      @n/a:<path>         a text or a number; "N/A" if there is none
 *      @node:<what>        "status", "roles", or the type of an address
 *      @none:<path>        a text; "<none>" if there is none
 *      @owner              the controller of the object
 *      @parameters         the parameters of an IngressClass
 *      @parent             the parent of an IPAddress
 *      @pod:<what>         "ready", "status", "restarts" or "gates"
 *      @ratio:<path>/<path>  two numbers: "1/3"
 *      @scaled             the object that a HorizontalPodAutoscaler scales
 *      @selector:<path>    a label selector
 *      @service:<what>     "external" or "ports"
 *      @since:<path>       the time since a time; "<none>" if there is none
 *      @slice:<what>       "ports" or "endpoints" of an EndpointSlice
 *      @targets            the metrics of a HorizontalPodAutoscaler, and their targets
 *      @texts:<path>       the texts of a list
 *      @truth:<path>       "True" or "False"; "<unset>" if there is neither
 *      @unset:<path>       a text or a number; "<unset>" if there is none
 *
 * False: path has none of these forms, and nothing was appended.
 */
bool hfd_workload_put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                           int64_t now_s);

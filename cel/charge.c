/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of calls when they are evaluated.
 *
 * Invariants: the numbers are those of Kubernetes (docs/cel.md has the exceptions). A call is
 * charged before it runs, so an evaluation whose budget is used up allocates no large result.
 */
#include "cel/charge.h"

/* Levels of a walk through a value. A deeper value makes the evaluation fail, because the walk
 * recurses on the stack of a worker. Objects are rarely nested deeper than ten levels. */
#define DEPTH_MAX 100
/* cel-go's StringTraversalCostFactor: reading a byte costs a tenth of visiting an element. */
#define TEXT_FACTOR 0.1
#define NEW_LIST    11 /* a call, and 10 for the list that it makes */

/* size / divisor, rounded up. */
static uint64_t part(uint64_t size, uint64_t divisor) {
        return size / divisor + (size % divisor > 0 ? 1 : 0);
}

/* The cost of a walk through a value: one for each scalar in it, and for each text a tenth of its
 * bytes, rounded down. */
static uint64_t walk_value(struct hf__cel_run *run, struct hf__cel_value value, unsigned depth) {
        uint64_t cost = 0;

        if (depth > DEPTH_MAX)
                run->work = run->work_limit; /* the next line then fails the run */
        if (!hf__cel_work(run, 1))
                return 0;
        switch (value.kind) {
        case HF__CEL_STRING:
        case HF__CEL_BYTES: return (uint64_t)((double)value.n * TEXT_FACTOR);
        case HF__CEL_LIST:
                for (size_t i = 0; i < value.as.list->n && run->failed == 0; i++)
                        cost += walk_value(run, hf__cel_list_at(value.as.list, i), depth + 1);
                return cost;
        case HF__CEL_MAP:
        case HF__CEL_OBJECT:
                for (size_t i = 0; i < value.as.map->n && run->failed == 0; i++) {
                        struct hf__cel_entry entry = hf__cel_map_at(value.as.map, i);

                        cost += walk_value(run, entry.key, depth + 1);
                        cost += walk_value(run, entry.value, depth + 1);
                }
                return cost;
        default: return 1;
        }
}

/* Products of sizes are computed in double precision, as in cel-go. A double from 2^64 on cannot be
 * converted to a uint64_t. No budget reaches 2^63, so a product of that or more is UINT64_MAX. */
static bool spend_list(struct hf__cel_run *run, double elements) {
        return hf__cel_spend(run, elements >= 0x1p63 ? UINT64_MAX : NEW_LIST + (uint64_t)elements);
}

/* Kubernetes charges sort and distinct as if they compared each element with each other one, twice.
 * The type of the first element stands for all. */
bool hf__cel_charge_pairs(struct hf__cel_run *run, const struct hf__cel_list *list) {
        double n = (double)list->n;
        enum hf__cel_kind kind = HF__CEL_NULL;

        if (list->n > 0)
                kind = (enum hf__cel_kind)hf__cel_list_at(list, 0).kind;
        return spend_list(run,
                          n * n *
                                  (kind == HF__CEL_STRING || kind == HF__CEL_BYTES ? 2 + TEXT_FACTOR
                                                                                   : 2));
}

/* The number of characters in the texts of a list and in the separators between them. */
static uint64_t joined_size(struct hf__cel_run *run, const struct hf__cel_overload *overload,
                            const struct hf__cel_value *args) {
        const struct hf__cel_list *list = args[0].as.list;
        uint64_t n = 0;

        for (size_t i = 0; i < list->n && hf__cel_work(run, 1); i++)
                n += hf__cel_size(run, hf__cel_list_at(list, i));
        /* The separator is counted once and multiplied: a short list of many elements must not read
         * a long separator again for each of them. */
        if (overload->n_args > 1 && list->n > 1)
                n += (list->n - 1) * hf__cel_size(run, args[1]);
        return n;
}

/* The size of a slice; 1 if its bounds are invalid: then the call makes an error and no list. */
static double slice_size(double list, const struct hf__cel_value *args) {
        if (args[1].as.i < 0 || args[1].as.i > args[2].as.i || (double)args[2].as.i > list)
                return 1;
        return (double)(args[2].as.i - args[1].as.i);
}

static double positive(int64_t number) { return number > 0 ? (double)number : 0; }

bool hf__cel_overload_charge(const struct hf__cel_overload *overload, struct hf__cel_run *run,
                             const struct hf__cel_value *args) {
        uint64_t first;
        uint64_t second;

        /* A call may read its texts to their ends even if it costs only one, such as a conversion
         * or a look-up by key. So the length of the texts counts as work. */
        for (unsigned i = 0; i < overload->n_args; i++)
                if ((args[i].kind == HF__CEL_STRING || args[i].kind == HF__CEL_BYTES) &&
                    !hf__cel_work(run, args[i].n / 32))
                        return false;
        if (overload->cost == HF__CEL_COST_ONE || overload->n_args == 0)
                return hf__cel_spend(run, 1);
        first = hf__cel_size(run, args[0]);
        second = overload->n_args > 1 ? hf__cel_size(run, args[1]) : 1;
        switch (overload->cost) {
        case HF__CEL_COST_FIRST: return hf__cel_spend(run, part(first, 10));
        case HF__CEL_COST_TWICE: return hf__cel_spend(run, part(first, 5));
        case HF__CEL_COST_JOIN:
                return hf__cel_spend(run, part(joined_size(run, overload, args), 5));
        case HF__CEL_COST_SHORTER:
                return hf__cel_spend(run, part(first < second ? first : second, 10));
        case HF__CEL_COST_BOTH: return hf__cel_spend(run, part(first + second, 10));
        /* In the worst case a search compares the part at each place of the text. */
        case HF__CEL_COST_CONTAINS: return hf__cel_spend(run, part(first, 10) * part(second, 10));
        /* An empty text costs, too, because the pattern is run. A character of the pattern counts
         * more than one of the text, as in Kubernetes. */
        case HF__CEL_COST_MATCHES: return hf__cel_spend(run, part(first + 1, 10) * part(second, 4));
        case HF__CEL_COST_WALK: return hf__cel_spend(run, walk_value(run, args[0], 0));
        case HF__CEL_COST_IN: return hf__cel_spend(run, second);
        case HF__CEL_COST_SETS:
        case HF__CEL_COST_SETS_TWICE:
                /* A fourth of the range leaves room for the factor 2 and for the 1 below. */
                if (first > 0 && second > UINT64_MAX / 4 / first)
                        return hf__cel_spend(run, UINT64_MAX);
                return hf__cel_spend(run,
                                     1 + first * second *
                                                     (overload->cost == HF__CEL_COST_SETS ? 1 : 2));
        case HF__CEL_COST_COPY: return spend_list(run, (double)first);
        case HF__CEL_COST_SLICE: return spend_list(run, slice_size((double)first, args));
        case HF__CEL_COST_RANGE: return spend_list(run, positive(args[0].as.i));
        case HF__CEL_COST_LEVELS:
                return spend_list(run, (double)first *
                                               (overload->n_args > 1 ? positive(args[1].as.i) : 1));
        case HF__CEL_COST_PAIRS:
                return hf__cel_charge_pairs(run, args[overload->n_args - 1].as.list);
        case HF__CEL_COST_AUTHORIZATION: return hf__cel_spend(run, HF__CEL_AUTHORIZATION_COST);
        /* A selector has at most one requirement for each two characters, and parsing one costs 50.
         */
        case HF__CEL_COST_SELECTOR:
                return hf__cel_spend(run, 10 + part(second, 10) + part(second, 2) * 50);
        case HF__CEL_COST_ONE: break;
        }
        return hf__cel_spend(run, 1);
}

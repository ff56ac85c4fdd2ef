/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unification of types, gradual: dyn fits everything.
 *
 * Invariants: a variable is never bound to a type that contains it. Every recursion that also goes
 * into what variables stand for counts a step, and STEPS_MAX bounds the steps, because a short
 * expression can make types that share parts many times over. Other recursions are bounded by the
 * weight of a type. A binding is undone through the trail if a later part does not fit.
 */
#include "cel/inference.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

/* Nested types can need exponentially many steps: a variable may occur twice in the type that
 * another variable stands for. STEPS_MAX ends such a check; usual expressions take some hundred
 * steps. DEPTH_MAX bounds the stack. */
#define STEPS_MAX 2000000
#define DEPTH_MAX 600

/* The type that a variable stood for before, to undo a failed attempt. */
struct hf__cel_change {
        uint32_t var;
        const struct hf__cel_type *before;
};

static bool count_step(struct hf__cel_inference *in, unsigned depth) {
        if (++in->steps > STEPS_MAX || depth > DEPTH_MAX)
                in->failed = true;
        return !in->failed;
}

uint32_t hf__cel_new_vars(struct hf__cel_inference *in, uint32_t n) {
        uint32_t first = in->n_vars;

        if (first + n > in->space) {
                uint32_t space = (first + n) * 2;
                const struct hf__cel_type **bound =
                        hf__arena_alloc(in->arena, space * sizeof *bound);

                if (!bound) {
                        in->failed = true;
                        return 0;
                }
                if (first > 0)
                        memcpy((void *)bound, (const void *)in->bound, first * sizeof *bound);
                /* The old array stays in the arena until the program is freed. As the space
                 * doubles, all old arrays together take less memory than the new one. */
                in->bound = bound;
                in->space = space;
        }
        for (uint32_t i = 0; i < n; i++)
                in->bound[first + i] = NULL;
        in->n_vars = first + n;
        return first;
}

const struct hf__cel_type *hf__cel_var(struct hf__cel_inference *in, uint32_t number) {
        struct hf__cel_type *type = hf__arena_alloc(in->arena, sizeof *type);

        if (!type) {
                in->failed = true;
                return hf__cel_type_of(HF__CEL_ERROR);
        }
        *type = (struct hf__cel_type){.kind = HF__CEL_VAR, .var = number, .weight = 1};
        return type;
}

static const struct hf__cel_type *rebuild_type(struct hf__cel_inference *in,
                                               const struct hf__cel_type *type,
                                               const struct hf__cel_type *a,
                                               const struct hf__cel_type *b) {
        const struct hf__cel_type *made;

        if (a == type->params[0] && (type->n_params < 2 || b == type->params[1]))
                return type;
        made = hf__cel_type_new(in->arena, type->kind, a, type->n_params > 1 ? b : NULL);
        if (made)
                return made;
        in->failed = true;
        return hf__cel_type_of(HF__CEL_ERROR);
}

/* Each call of a function has variables of its own, so list(A) can be a list of int in one place
 * and of strings in another. */
const struct hf__cel_type *hf__cel_instantiate(struct hf__cel_inference *in,
                                               const struct hf__cel_type *type, uint32_t base) {
        const struct hf__cel_type *a;
        const struct hf__cel_type *b = NULL;

        if (type->kind == HF__CEL_VAR)
                return hf__cel_var(in, base + type->var);
        if (type->n_params == 0)
                return type;
        /* Signatures are written by us and a few levels deep, so no step is counted here. */
        a = hf__cel_instantiate(in, type->params[0], base);
        if (type->n_params > 1)
                b = hf__cel_instantiate(in, type->params[1], base);
        return rebuild_type(in, type, a, b);
}

static const struct hf__cel_type *substitute_vars(struct hf__cel_inference *in,
                                                  const struct hf__cel_type *type, bool to_dyn,
                                                  unsigned depth) {
        const struct hf__cel_type *a;
        const struct hf__cel_type *b = NULL;

        if (!count_step(in, depth))
                return hf__cel_type_of(HF__CEL_ERROR);
        assert(type->kind != HF__CEL_VAR || type->var < in->n_vars);
        if (type->kind == HF__CEL_VAR && in->bound[type->var])
                return substitute_vars(in, in->bound[type->var], to_dyn, depth + 1);
        if (type->kind == HF__CEL_VAR)
                /* At the end of a check nothing can determine the variable any more, and dyn lets
                 * the evaluation decide. */
                return to_dyn ? hf__cel_type_of(HF__CEL_DYN) : type;
        if (type->n_params == 0)
                return type;
        a = substitute_vars(in, type->params[0], to_dyn, depth + 1);
        if (type->n_params > 1)
                b = substitute_vars(in, type->params[1], to_dyn, depth + 1);
        return rebuild_type(in, type, a, b);
}

const struct hf__cel_type *hf__cel_substitute(struct hf__cel_inference *in,
                                              const struct hf__cel_type *type, bool to_dyn) {
        return substitute_vars(in, type, to_dyn, 0);
}

static void bind_var(struct hf__cel_inference *in, uint32_t var, const struct hf__cel_type *type) {
        if (in->n_trail == in->trail_space) {
                size_t space = in->trail_space > 0 ? in->trail_space * 2 : 16;
                struct hf__cel_change *trail = hf__arena_alloc(in->arena, space * sizeof *trail);

                if (!trail) {
                        in->failed = true;
                        return;
                }
                if (in->n_trail > 0)
                        memcpy(trail, in->trail, in->n_trail * sizeof *trail);
                in->trail = trail;
                in->trail_space = space;
        }
        assert(var < in->n_vars && in->n_trail < in->trail_space);
        in->trail[in->n_trail++] = (struct hf__cel_change){.var = var, .before = in->bound[var]};
        in->bound[var] = type;
}

/* A variable must not stand for a type that contains it: such a type would be infinite. */
static bool var_occurs(struct hf__cel_inference *in, uint32_t var, const struct hf__cel_type *type,
                       unsigned depth) {
        if (!count_step(in, depth))
                return true;
        if (type->kind == HF__CEL_VAR) {
                if (type->var == var)
                        return true;
                return in->bound[type->var] && var_occurs(in, var, in->bound[type->var], depth + 1);
        }
        for (unsigned i = 0; i < type->n_params; i++)
                if (var_occurs(in, var, type->params[i], depth + 1))
                        return true;
        return false;
}

static bool is_open(const struct hf__cel_type *type) {
        return type->kind == HF__CEL_DYN || type->kind == HF__CEL_VAR;
}

/* Whether a is b, or is b with dyn or a variable in some places. */
static bool is_less_specific(const struct hf__cel_type *a, const struct hf__cel_type *b) {
        if (is_open(a))
                return true;
        if (is_open(b) || a->kind != b->kind)
                return false;
        /* type(x) == type(y) must be accepted whatever x and y are. */
        if (a->kind == HF__CEL_TYPE)
                return true;
        if (a->name && strcmp(a->name, b->name) != 0)
                return false;
        for (unsigned i = 0; i < a->n_params; i++)
                if (!is_less_specific(a->params[i], b->params[i]))
                        return false;
        return true;
}

const struct hf__cel_type *hf__cel_most_general(const struct hf__cel_type *a,
                                                const struct hf__cel_type *b) {
        if (b->kind == HF__CEL_NULL && a->kind != HF__CEL_DYN)
                return a; /* null can be assigned to a */
        return is_less_specific(a, b) ? a : b;
}

static bool assign_type(struct hf__cel_inference *in, const struct hf__cel_type *from,
                        const struct hf__cel_type *to, unsigned depth);

/* Makes the variable stand for the type; if it already stands for one, for the more general of the
 * two. False: that is impossible. Then *ret_decided is whether the answer is final; if not, the
 * caller may still try the opposite direction. */
static bool assign_var(struct hf__cel_inference *in, const struct hf__cel_type *var,
                       const struct hf__cel_type *type, unsigned depth, bool *ret_decided) {
        const struct hf__cel_type *before = in->bound[var->var];

        *ret_decided = true;
        if (type->kind == HF__CEL_VAR && type->var == var->var)
                return true;
        if (before && before->kind == HF__CEL_VAR && type->kind == HF__CEL_VAR &&
            before->var == type->var)
                return true;
        if (before) {
                const struct hf__cel_type *general;

                if (!assign_type(in, type, before, depth + 1))
                        return false;
                /* With dyn in one place and int in the other the variable stands for dyn from now
                 * on. Otherwise the order of the arguments would decide which expressions are
                 * accepted. */
                general = hf__cel_most_general(type, before);
                if (general != before && !var_occurs(in, var->var, general, 0))
                        bind_var(in, var->var, general);
                return true;
        }
        *ret_decided = false;
        if (var_occurs(in, var->var, type, 0))
                return false;
        bind_var(in, var->var, type);
        return true;
}

/* As in cel-go, null can be assigned to messages (objects, timestamps, durations), optionals and
 * opaque types, but not to strings, numbers, lists and maps. */
static bool is_nullable(const struct hf__cel_type *type) {
        return type->kind == HF__CEL_NULL || type->kind == HF__CEL_TIMESTAMP ||
               type->kind == HF__CEL_DURATION || type->kind == HF__CEL_OPTIONAL ||
               type->kind == HF__CEL_OBJECT || type->kind == HF__CEL_OPAQUE;
}

static bool assign_type(struct hf__cel_inference *in, const struct hf__cel_type *from,
                        const struct hf__cel_type *to, unsigned depth) {
        bool decided;

        if (!count_step(in, depth))
                return false;
        /* The parameter's variable comes first: it stands for what the arguments have in common. */
        if (to->kind == HF__CEL_VAR) {
                bool fits = assign_var(in, to, from, depth, &decided);

                if (fits || decided)
                        return fits;
        }
        if (from->kind == HF__CEL_VAR)
                return assign_var(in, from, to, depth, &decided);
        if (from->kind == HF__CEL_DYN || from->kind == HF__CEL_ERROR || to->kind == HF__CEL_DYN ||
            to->kind == HF__CEL_ERROR)
                return true;
        if (from->kind == HF__CEL_NULL || to->kind == HF__CEL_NULL)
                return is_nullable(from) && is_nullable(to);
        if (from->kind != to->kind)
                return false;
        if (from->kind == HF__CEL_TYPE)
                return true;
        if (from->name && strcmp(from->name, to->name) != 0)
                return false;
        for (unsigned i = 0; i < from->n_params; i++)
                if (!assign_type(in, from->params[i], to->params[i], depth + 1))
                        return false;
        return true;
}

bool hf__cel_assign(struct hf__cel_inference *in, const struct hf__cel_type *const *from,
                    const struct hf__cel_type *const *to, size_t n) {
        size_t before = in->n_trail;
        bool fits = true;

        for (size_t i = 0; fits && i < n; i++)
                fits = assign_type(in, from[i], to[i], 0);
        if (fits && !in->failed)
                return true;
        /* After a failure no variable keeps a part of the attempt: the next overload is tried with
         * the state that this one found. */
        while (in->n_trail > before) {
                in->n_trail--;
                in->bound[in->trail[in->n_trail].var] = in->trail[in->n_trail].before;
        }
        return false;
}

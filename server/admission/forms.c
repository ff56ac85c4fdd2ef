/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the conversions of one request (forms.h). A conversion is found by comparing objects,
 * because a caller that starts over makes equal objects at other addresses.
 *
 * Invariants: at most one conversion is wanted at a time, the last of the list, and hfd_forms_find
 * is not called for another one before hfd_forms_fetch has got the result. A conversion that has
 * failed is not tried again.
 */
#include "server/admission/forms.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/admission/form.h"
#include "server/resources/response.h"

struct form {
        const struct hfd_resource *from, *to; /* borrowed from the request */
        struct hf__json *source;              /* owned */
        struct hf__json *result;              /* owned; NULL = not known, or it has failed */
        /* Owned; NULL = not known, or it has not failed. If the result is NULL, too, after the call
         * of the webhook, memory ran out. */
        struct hfd_response *failure;
};

static const struct hfd_response too_many =
        {.code = 500,
         .status = {.error = HF_E_TOO_MANY,
                    .message = "the request needs too many conversions by a webhook"}};

struct hfd_admission_forms {
        struct form *list; /* owned */
        size_t n;
        bool wanted;                        /* the last of the list is wanted */
        const struct hfd_response *failure; /* of one of the list, or too_many; NULL = none */
        void (*resume)(void *ctx);
        void *ctx;
};

static struct form *find_form(struct hfd_admission_forms *forms, const struct hfd_resource *from,
                              const struct hfd_resource *to, const struct hf__json *object) {
        for (size_t i = forms->n; i-- > 0;) {
                struct form *form = &forms->list[i];
                if (form->from == from && form->to == to && hf__json_equal(form->source, object))
                        return form;
        }
        return NULL;
}

/* Adds a conversion that is wanted. -EAGAIN, -ENOMEM, or HF_E_INVALID: there are too many. */
static int want_form(struct hfd_admission_forms *forms, const struct hfd_resource *from,
                     const struct hfd_resource *to, const struct hf__json *object) {
        struct form *list;

        forms->failure = NULL;
        if (forms->n == HFD_FORMS_MAX) {
                forms->failure = &too_many;
                return HF_E_INVALID;
        }
        list = realloc(forms->list, (forms->n + 1) * sizeof *list);
        if (!list)
                return -ENOMEM;
        forms->list = list;
        list[forms->n] = (struct form){.from = from, .to = to, .source = hf__json_dup(object)};
        if (!list[forms->n].source)
                return -ENOMEM;
        forms->n++;
        forms->wanted = true;
        return -EAGAIN;
}

int hfd_forms_error(const struct hfd_response *failure) {
        switch (failure->status.error) {
        case -ENOMEM: return -ENOMEM;
        case HF_E_TOO_MANY:
        case HF_E_TOO_LARGE: return HF_E_TOO_MANY;
        default: return HF_E_INVALID;
        }
}

int hfd_forms_find(struct hfd_admission_forms **forms, const struct hfd_resource *from,
                   const struct hfd_resource *to, const struct hf__json *object,
                   struct hf__json **ret_object) {
        struct form *form;

        *ret_object = NULL;
        if (!hfd_form_is_elsewhere(from, to))
                return hfd_form_convert(from, to, object, ret_object);
        if (!*forms)
                *forms = calloc(1, sizeof **forms);
        if (!*forms)
                return -ENOMEM;
        assert(!(*forms)->wanted);
        form = find_form(*forms, from, to, object);
        if (!form)
                return want_form(*forms, from, to, object);
        if (form->failure && hfd_forms_error(form->failure) == -ENOMEM)
                return -ENOMEM;
        if (form->failure) {
                (*forms)->failure = form->failure;
                return HF_E_INVALID;
        }
        *ret_object = hf__json_dup(form->result);
        return *ret_object ? 0 : -ENOMEM;
}

bool hfd_forms_is_wanted(const struct hfd_admission_forms *forms) { return forms && forms->wanted; }

const struct hfd_response *hfd_forms_failure(const struct hfd_admission_forms *forms) {
        return forms ? forms->failure : NULL;
}

static void on_converted(void *ctx, struct hf__json *result, const struct hfd_response *failure) {
        struct hfd_admission_forms *forms = ctx;
        struct form *form = &forms->list[forms->n - 1];

        assert(forms->wanted);
        forms->wanted = false;
        form->result = result;
        if (!result)
                form->failure = hfd_response_copy(failure);
        forms->resume(forms->ctx);
}

void hfd_forms_fetch(struct hfd_admission_forms *forms, hfd_forms_convert *convert,
                     void *convert_ctx, void (*resume)(void *ctx), void *ctx) {
        const struct form *form = &forms->list[forms->n - 1];

        assert(forms->wanted);
        forms->resume = resume;
        forms->ctx = ctx;
        if (convert)
                convert(convert_ctx, form->from, form->to, form->source, on_converted, forms);
        else
                on_converted(forms, NULL, NULL);
}

struct hfd_admission_forms *hfd_forms_free(struct hfd_admission_forms *forms) {
        if (!forms)
                return NULL;
        for (size_t i = 0; i < forms->n; i++) {
                hf__json_free(forms->list[i].source);
                hf__json_free(forms->list[i].result);
                hfd_response_free(forms->list[i].failure);
        }
        free(forms->list);
        free(forms);
        return NULL;
}

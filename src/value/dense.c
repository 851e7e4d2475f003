/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of whole tensors and plain products (dense.h). The product's inner loop runs along a row of b and c where
 * those lie beside each other, else along k. Any thread. */
#include "value/dense.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

size_t domain_size(enum domain domain)
{
    return domain == DOMAIN_F32 ? 4 : 8;
}

graphi_status dense_load(const char *where, enum domain domain, const graphi_tensor *value, struct dense *out)
{
    const size_t bytes = (size_t)value->count * domain_size(domain);
    *out = (struct dense){.domain = domain};
    const bool same = value->type == (graphi_element[]){T_F32, T_F64, T_I64, T_U64}[domain];
    if (same) {
        out->data = value->data;
        return GRAPHI_OK;
    }
    out->room = mem_alloc(bytes);
    if (!out->room)
        return fail_memory(where, bytes);
    element_load(domain, value->type, value->data, 1, value->count, out->room);
    out->data = out->room;
    return GRAPHI_OK;
}

void dense_free(struct dense *dense)
{
    mem_free(dense->room);
    dense->room = NULL;
}

#define PRODUCT(NAME, TYPE)                                                                                            \
    static void NAME(const struct product *p)                                                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < p->m; i++) {                                                                           \
            const TYPE *a = (const TYPE *)p->a + i * p->a_row;                                                         \
            TYPE *restrict c = (TYPE *)p->c + i * p->c_row;                                                            \
            if (!p->add)                                                                                               \
                memset(c, 0, (size_t)p->n * sizeof *c);                                                                \
            if (p->b_column == 1) {                                                                                    \
                for (int64_t k = 0; k < p->k; k++) {                                                                   \
                    const TYPE x = a[k * p->a_column], *restrict b = (const TYPE *)p->b + k * p->b_row;                \
                    for (int64_t j = 0; j < p->n; j++)                                                                 \
                        c[j] += x * b[j];                                                                              \
                }                                                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t j = 0; j < p->n; j++) {                                                                       \
                const TYPE *b = (const TYPE *)p->b + j * p->b_column;                                                  \
                TYPE sum = c[j];                                                                                       \
                for (int64_t k = 0; k < p->k; k++)                                                                     \
                    sum += a[k * p->a_column] * b[k * p->b_row];                                                       \
                c[j] = sum;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
PRODUCT(product_f32, float)
PRODUCT(product_f64, double)
PRODUCT(product_u64, uint64_t) /* of both kinds of integers: the low bits are the same */

void product_run(const struct product *p)
{
    if (p->domain == DOMAIN_F32)
        product_f32(p);
    else if (p->domain == DOMAIN_F64)
        product_f64(p);
    else
        product_u64(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues of tiles (epilogue.h): turns the place of a tile into the operands of its program. */
#include "kernels/epilogue.h"

#include "base/status.h"

graphi_status epilogue_prepare(const struct epilogue_spec *spec, enum isa isa, struct epilogue *out)
{
    const struct program *program = spec->program;
    *out = (struct epilogue){.present = program != NULL};
    if (!program)
        return GRAPHI_OK;
    if (program->inputs < 1 || program->outputs < 1 || program->sums)
        return fail(GRAPHI_INVALID, "epilogue",
                    "found %d inputs, %d outputs and %d sums, expected at least one, one and none", program->inputs,
                    program->outputs, program->sums);
    out->local = program->outputs == 1;
    for (int i = 1; i < program->inputs; i++) {
        out->broadcast[i] = spec->broadcast[i - 1];
        out->ld[i] = spec->ld[i - 1];
        out->local &= out->broadcast[i] == PROGRAM_ROW || out->broadcast[i] == PROGRAM_SCALAR;
    }
    for (int i = 1; i < program->outputs; i++)
        out->output_ld[i] = spec->output_ld[i - 1];
    return program_prepare(program, isa, &out->code);
}

static float *place(float *data, int64_t ld, enum program_broadcast broadcast, int64_t row, int64_t col)
{
    switch (broadcast) {
    case PROGRAM_FULL: return data + row * ld + col;
    case PROGRAM_ROW: return data + col;
    case PROGRAM_COLUMN: return data + row * ld;
    default: return data;
    }
}

void epilogue_run(const struct epilogue *epilogue, const struct epilogue_tile *t, const struct kernel_array *in,
                  const struct kernel_array *out)
{
    const struct program *program = &epilogue->code.program;
    struct program_operand inputs[PROGRAM_MAX_INPUTS], outputs[PROGRAM_MAX_OUTPUTS];
    inputs[0] = (struct program_operand){t->data, t->ld, PROGRAM_FULL};
    for (int i = 1; i < program->inputs; i++)
        inputs[i] = (struct program_operand){
            place(in[i - 1].data, epilogue->ld[i], epilogue->broadcast[i], t->row, t->col),
            epilogue->ld[i] * t->row_step, epilogue->broadcast[i]};
    for (int i = 0; i < program->outputs; i++) {
        int64_t step = i ? epilogue->output_ld[i] : t->result_ld;
        outputs[i] = (struct program_operand){(float *)out[i].data + t->row * step + t->col, step * t->row_step,
                                              PROGRAM_FULL};
    }
    program_run(&epilogue->code, inputs, outputs, t->rows, t->cols);
}

void epilogue_run_local(const struct epilogue *epilogue, float *tile, int64_t col, int64_t rows, int64_t cols,
                        const struct kernel_array *in)
{
    struct program_operand inputs[PROGRAM_MAX_INPUTS];
    inputs[0] = (struct program_operand){tile, cols, PROGRAM_FULL};
    for (int i = 1; i < epilogue->code.program.inputs; i++)
        inputs[i] = (struct program_operand){place(in[i - 1].data, 0, epilogue->broadcast[i], 0, col), 0,
                                             epilogue->broadcast[i]};
    program_run(&epilogue->code, inputs, &(struct program_operand){tile, cols, PROGRAM_FULL}, rows, cols);
}

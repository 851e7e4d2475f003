/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of machines: every core is in one of them, and nodes are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"
#include "group/cores.h"

/* Solvers would share a core, or leave one idle. */
static void parts_cover_the_machine(void **state)
{
    for (int parts = 1; parts <= 7; parts++) {
        int cores = 0;
        for (int i = 0; i < parts; i++) {
            graphi_machine *part;
            check_ok(cores_part(machine, i, parts, &part));
            assert_true(part->cores == machine->cores / parts || part->cores == machine->cores / parts + 1);
            for (int k = 0; k < part->cores; k++)
                assert_int_equal(part->core[k].os_index, machine->core[cores + k].os_index);
            assert_true(part->core[0].tile == 0 && part->core[0].numa == 0 && part->tiles <= part->cores);
            cores += part->cores;
            graphi_machine_destroy(part);
        }
        assert_int_equal(cores, machine->cores);
    }
}

static void nodes_are_whole(void **state)
{
    int cores = 0;
    for (int i = 0; i < machine->numa_nodes; i++) {
        graphi_machine *part;
        check_ok(cores_part(machine, i, 0, &part));
        assert_true(part->numa_nodes == 1 && part->cores == machine->cores / machine->numa_nodes);
        for (int k = 0; k < part->cores; k++)
            assert_int_equal(machine->core[cores + k].numa, i);
        cores += part->cores;
        graphi_machine_destroy(part);
    }
    assert_int_equal(cores, machine->cores);
}

static int open_synthetic(void **state)
{
    return machine_from_synthetic("pack:2 numa:2 l2:3 core:2 pu:2", 0, 0, &machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_the_machine),
        cmocka_unit_test(nodes_are_whole),
    };
    return cmocka_run_group_tests(tests, open_synthetic, close_machines);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* show: results that were stored earlier, as tables or, where --out asks for them, as pictures. */
#include "cli/commands.h"
#include "tool/output.h"
#include "tool/report.h"
#include "tool/result.h"

#include <string.h>

/* DIR/NAME.svg for FOLDER/NAME.json. */
static void picture_path(const char *folder, const char *file, char *path, size_t size)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file, *end = strrchr(name, '.');
    snprintf(path, size, "%s/%.*s.svg", folder, (int)(end ? end - name : (long)strlen(name)), name);
}

static const char *file_at(const struct options *options, int i)
{
    return i ? options->rest[i - 1] : options->subject;
}

/* a/x.json and b/x.json would be one picture. */
static graphi_status check_pictures(const struct options *options)
{
    char path[4096], other[4096];
    for (int i = 1; options->out && i <= options->rest_count; i++)
        for (int k = 0; k < i; k++) {
            picture_path(options->out, file_at(options, i), path, sizeof path);
            picture_path(options->out, file_at(options, k), other, sizeof other);
            if (strcmp(path, other) == 0)
                return report_usage("show", file_at(options, i), "another name than %s has, whose picture is %s",
                                    file_at(options, k), other);
        }
    return GRAPHI_OK;
}

static int show(const char *file, const struct options *options)
{
    json_t *root;
    int status = result_read(file, &root);
    if (status != GRAPHI_OK)
        return status;
    if (!options->out) {
        printf("%s: ", file);
        status = result_print(root, stdout);
    } else if (!json_array_size(json_object_get(root, "rows"))) {
        printf("%s: nothing to draw\n", file);
    } else {
        char path[4096];
        picture_path(options->out, file, path, sizeof path);
        status = output_check(options->out, true);
        if (status == GRAPHI_OK)
            status = result_svg(root, path);
        if (status == GRAPHI_OK)
            printf("wrote %s\n", path);
    }
    json_decref(root);
    return status;
}

int command_show(const struct options *options)
{
    if (options->json)
        return report_usage("--json", options->json, "no --json: what show reads is such a result");
    int status = check_pictures(options);
    for (int i = 0; i <= options->rest_count && status == GRAPHI_OK; i++)
        status = show(file_at(options, i), options);
    return status;
}

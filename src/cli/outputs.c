/* SPDX-License-Identifier: Apache-2.0 */
/* See outputs.h. Files are the same by name, there or not yet, or by what is there. */
#include "cli/outputs.h"

#include "base/temporary.h"
#include "tool/output.h"
#include "tool/report.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool same_inode(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* By name, there or not yet, or by what is there: ./x is x, and so is a link to it. A link that cannot be followed is
 * refused when it is checked as an output. */
static bool same_file(const char *a, const char *b)
{
    char one[2][4096], other[2][4096]; /* dirname and basename cut up what they are given */
    for (int i = 0; i < 2; i++) {
        snprintf(one[i], sizeof one[i], "%s", a);
        snprintf(other[i], sizeof other[i], "%s", b);
        (void)temporary_follow(one[i], sizeof one[i]);
        (void)temporary_follow(other[i], sizeof other[i]);
    }
    return strcmp(a, b) == 0 || same_inode(a, b) ||
           (strcmp(basename(one[0]), basename(other[0])) == 0 && same_inode(dirname(one[1]), dirname(other[1])));
}

/* Others only read a checkpoint. */
static bool trains(const struct options *o) { return command_find(o->command)->traits & COMMAND_TRAINS; }

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Is it there by that ending, too? */
static bool has_twin(const char *path, const char *end, const char *other)
{
    char twin[4096 + 16];
    struct stat info;
    snprintf(twin, sizeof twin, "%.*s%s", (int)(strlen(path) - strlen(end)), path, other);
    return stat(twin, &info) == 0;
}

/* By the names of files that data sets are of (docs/data.md). Labels without images are answers. */
static bool has_data_name(const char *path)
{
    static const char *const endings[] = {"-ubyte",   "-ubyte.gz", ".bin",     ".bin.gz",        ".tokens",
                                          ".raw",     "train.txt", "test.txt", "validation.txt", "valid.txt",
                                          "val.txt",  "dev.txt",   ".txt.gz"};
    static const char images[] = "images.npy", labels[] = "labels.npy";
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(path, endings[i]))
            return true;
    return (ends_with(path, images) && has_twin(path, images, labels)) ||
           (ends_with(path, labels) && has_twin(path, labels, images));
}

/* Is it a file of the data set at --data? That is a folder, or a file with others of the set beside it. */
static bool is_data(const struct options *o, const char *path)
{
    char folder[4096], file[4096];
    struct stat info;
    if (!o->data || same_file(path, o->data))
        return o->data != NULL;
    const bool in_folder = stat(o->data, &info) == 0 && S_ISDIR(info.st_mode);
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || !(in_folder || has_data_name(o->data)))
        return false;
    snprintf(folder, sizeof folder, "%s", o->data);
    snprintf(file, sizeof file, "%s", path);
    (void)temporary_follow(file, sizeof file);
    return has_data_name(file) && same_inode(in_folder ? folder : dirname(folder), dirname(file));
}

/* The first option by which the command reads the file; NULL: it does not. */
static const char *reader_of(const struct options *o, const char *path)
{
    const struct {
        const char *option, *path;
    } files[] = {{"--machine", o->machine}, {"--plan", o->plan}, {"--checkpoint", trains(o) ? NULL : o->checkpoint}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].path && same_file(path, files[i].path))
            return files[i].option;
    for (int i = 0; i < o->input_count; i++) {
        const char *equals = strchr(o->input[i], '=');
        if (equals && same_file(path, equals + 1))
            return "--input";
    }
    return is_data(o, path) ? "--data" : NULL;
}

static graphi_status refuse(const char *option, const char *path, const char *other)
{
    return report_usage(option, path, "another file than that of %s", other);
}

graphi_status outputs_check_answer(const struct options *o, const char *path)
{
    const char *other = reader_of(o, path);
    return other ? refuse("--output", path, other) : GRAPHI_OK;
}

/* Two files of one name: the later one would take the place of the earlier, or of what was read. */
static graphi_status check_names(const struct command *command, const struct options *o)
{
    const bool out_is_file = command->traits & COMMAND_OUT_IS_FILE;
    char events[4096], page[4096], own[4096];
    snprintf(own, sizeof own, "%s/%s.json", o->out ? o->out : "",
             command->subjects ? o->subject : o->command);
    snprintf(events, sizeof events, "%s.json", o->timeline ? o->timeline : "");
    snprintf(page, sizeof page, "%s.html", o->timeline ? o->timeline : "");
    const struct {
        const char *option, *path;
    } files[] = {{"--curves", o->curves},
                 {"--save-plan", o->save_plan},
                 {"--checkpoint", trains(o) ? o->checkpoint : NULL},
                 {"--log", o->log},
                 {"--timeline", o->timeline ? events : NULL},
                 {"--timeline", o->timeline ? page : NULL},
                 {"--out", !o->out || out_is_file ? o->out : own},
                 {"--json", o->json}};
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
        if (!files[i].path || output_in_place(files[i].path))
            continue;
        const char *other = reader_of(o, files[i].path);
        const bool renewed = files[i].path == o->save_plan && other && strcmp(other, "--plan") == 0;
        if (other && !renewed)
            return refuse(files[i].option, files[i].path, other);
        for (int k = 0; k < i; k++) {
            const bool twice = files[k].path == own && files[i].path == o->json; /* the same result */
            if (files[k].path && !twice && same_file(files[i].path, files[k].path))
                return refuse(files[i].option, files[i].path, files[k].option);
        }
    }
    return GRAPHI_OK;
}

/* What will be written at the end of a long run must be writable at its beginning. */
graphi_status outputs_check(const struct command *command, const struct options *o)
{
    const bool out_is_file = command->traits & COMMAND_OUT_IS_FILE;
    const struct {
        const char *path;
        bool folder;
    } outputs[] = {{o->json, false}, {o->save_plan, false},     {trains(o) ? o->checkpoint : NULL, false},
                   {o->log, false},  {command->traits & COMMAND_OUT_LATER ? NULL : o->out, !out_is_file},
                   {o->output, true}};
    static const char *const parts[] = {"json", "html"};
    char timeline[4096];
    graphi_status status = check_names(command, o);
    for (int i = 0; i < 2 && o->timeline && status == GRAPHI_OK; i++) {
        snprintf(timeline, sizeof timeline, "%s.%s", o->timeline, parts[i]);
        status = output_check(timeline, false);
    }
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && status == GRAPHI_OK; i++)
        status = output_check(outputs[i].path, outputs[i].folder);
    return status;
}

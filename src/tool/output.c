/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are whole or not there, and the check of their names. One thread. */
#include "tool/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/temporary.h"
#include "tool/report.h"

static graphi_status refuse(const char *path, int error)
{
    return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                        strerror(error));
}

static FILE *open_temporary(struct output *output)
{
    int fd = temporary_open(output->path, output->temporary, sizeof output->temporary);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file) {
        close(fd);
        unlink(output->temporary);
        errno = ENOMEM;
    }
    return file;
}

graphi_status output_begin(struct output *output, const char *path)
{
    struct stat info;
    bool there = stat(path, &info) == 0, regular = there && S_ISREG(info.st_mode);
    *output = (struct output){0};
    if (strlen(path) >= sizeof output->path)
        return refuse(path, ENAMETOOLONG);
    strcpy(output->path, path);
    if (there ? regular && !realpath(path, output->path) : !temporary_follow(output->path, sizeof output->path))
        return refuse(path, errno);
    output->file = regular || !there ? open_temporary(output) : fopen(path, "we");
    return output->file ? GRAPHI_OK : refuse(path, errno);
}

graphi_status output_end(struct output *output, bool good)
{
    good = fflush(output->file) == 0 && good;
    if (good && *output->temporary)
        good = fsync(fileno(output->file)) == 0;
    int error = errno;
    if (fclose(output->file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && *output->temporary && rename(output->temporary, output->path) != 0) {
        good = false;
        error = errno;
    }
    if (good)
        return GRAPHI_OK;
    if (*output->temporary)
        unlink(output->temporary);
    return refuse(output->path, error);
}

void output_abandon(struct output *output)
{
    fclose(output->file);
    if (*output->temporary)
        unlink(output->temporary);
}

void output_log_row(struct output_log *log)
{
    errno = 0;
    if ((fflush(log->file) != 0 || ferror(log->file)) && !log->error)
        log->error = errno ? errno : EIO;
}

graphi_status output_log_check(const struct output_log *log, const char *path)
{
    return log->error ? refuse(path, log->error) : GRAPHI_OK;
}

bool output_in_place(const char *path)
{
    struct stat info;
    return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

graphi_status output_check(const char *path, bool folder)
{
    struct output output;
    struct stat info;
    if (!path || strcmp(path, "-") == 0)
        return GRAPHI_OK;
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode) != folder)
        return refuse(path, folder ? ENOTDIR : EISDIR);
    if (there && (folder || !S_ISREG(info.st_mode)))
        return access(path, W_OK) == 0 ? GRAPHI_OK : refuse(path, errno);
    if (folder)
        return mkdir(path, 0777) == 0 ? GRAPHI_OK : refuse(path, errno);
    /* Rights say too little: /proc takes no file of anybody. */
    graphi_status status = output_begin(&output, path);
    if (status == GRAPHI_OK)
        output_abandon(&output);
    return status;
}

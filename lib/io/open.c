/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - opens a file, and finds its kind in the table of kinds. */
#include <string.h>
#include <unistd.h>

#include "core/abi.h"
#include "io/stream/format.h"

static const spsi_format *const formats[] = {
    &spsi_format_npy,
    &spsi_format_npz,
    &spsi_format_mat5,
    &spsi_format_petsc,
    &spsi_format_boeing,
    &spsi_format_plain,
};

void spsi_file_close(spsi_file *f)
{
    spsi_text_close(&f->text);
    spsi_free(f->ctx, f->path);
}

/* Splits FILE:VARIABLE, unless there is a file of this whole name. */
static sps_status split_name(spsi_file *f, const char **path)
{
    const char *colon = strrchr(*path, ':');
    sps_status st = SPS_OK;

    if (!colon || colon == *path || !colon[1] || access(*path, F_OK) == 0)
        return SPS_OK;
    f->path = spsi_strdup(f->ctx, *path);
    SPS_REQUIRE(f->ctx, f->path, SPS_ENOMEM, "not enough host memory for a "
                "file name");
    f->path[colon - *path] = '\0';
    if (access(f->path, F_OK) != 0) return SPS_OK;
    f->variable = colon + 1;
    *path = f->path;
fail:
    return st;
}

sps_status spsi_file_open(spsi_file *f, const char *path,
                          const sps_read_options *ro,
                          const spsi_format **format)
{
    const char *head;
    size_t length;
    sps_status st;

    SPS_TRY(SPS_ABI_CHECK(f->ctx, sps_read_options, ro));
    f->options.struct_size = sizeof f->options;
    if (ro) spsi_abi_copy(ro, &f->options);
    SPS_TRY(split_name(f, &path));
    SPS_TRY(spsi_text_open(f->ctx, path, &f->text));
    f->name = spsi_text_name(f->text);
    SPS_TRY(spsi_text_peek(f->text, &head, &length));
    *format = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !*format; i++)
        if (formats[i]->recognise(f, head, length)) *format = formats[i];
    SPS_REQUIRE(f->ctx, !f->variable || *format == &spsi_format_npz ||
                *format == &spsi_format_mat5, SPS_EPARSE, "%s: \":%s\" names "
                "an array of an .npz or .mat file, which this is not", f->name,
                f->variable);
fail:
    return st;
}

sps_status spsi_file_rows(const spsi_file *f, int64_t n)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(f->ctx, f->whole == 0 || f->whole == n, SPS_ESHAPE, "%s: %lld "
                "rows, but the matrix has %lld", f->name, (long long)n,
                (long long)f->whole);
fail:
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - converts command lines of mtxgen and spbench to one form. */
#ifndef WORDS_H
#define WORDS_H

/* The words with "--name=value", "--name value" and "-name=value" converted to
 * "-name" and "value", '_' to '-' in names, -h and -V to -help and -version;
 * terminated by NULL. Free with free().  NULL: no memory. */
char **words_plain(int *argc, char **argv);

#endif

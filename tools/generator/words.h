/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - converts command lines of mtxgen and spbench to one form. */
#ifndef WORDS_H
#define WORDS_H

/* Returns the words with "--name=value", "--name value" and "-name=value"
 * converted to "-name" and "value", '_' to '-' in names, and -h and -V to -help
 * and -version, followed by NULL.  The result is released by free(); it is NULL
 * if there is no memory. */
char **words_plain(int *argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - what mtxgen and spbench have in common: one form of command lines,
 * and errors, of which one process prints one. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>

/* The main function of `program`: serve() gets the words of words_plain, sets
 * *tells on the process that is to print the error, and returns the exit
 * code. */
int words_main(const char *program, int argc, char **argv,
               int (*serve)(int argc, char **argv, bool *tells));
/* Keeps the text of the first error of this process; returns the exit code. */
int words_fail(int code, const char *what, const char *detail);
/* Prints the error of this process if it is the one that tells it. */
void words_tell(const char *program, int code, bool *tells);

/* Returns the words with "--name=value", "--name value" and "-name=value"
 * converted to "-name" and "value", '_' to '-' in names, and -h and -V to -help
 * and -version, followed by NULL.  The result is released by free(); it is NULL
 * if there is no memory. */
char **words_plain(int *argc, char **argv);

#endif

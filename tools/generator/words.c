/* SPDX-License-Identifier: BSD-3-Clause */
/* words.c - converts the forms of an option (--name=value, -name value) to
 * one, and prints errors. */
#include "tools/generator/words.h"
#include "tools/launch/launcher.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a word is an option, -name or --name, and not a negative
 * number. */
static int is_option(const char *word)
{
    word += word[0] == '-' && word[1] == '-';
    return word[0] == '-' && isalpha((unsigned char)word[1]);
}

/* Writes the option's name to `to`, which must be as long as the whole word;
 * returns the value after '=', or NULL. */
static char *split(const char *word, char *to)
{
    char *value;

    strcpy(to, word + (word[1] == '-'));
    value = strchr(to, '=');
    if (value) *value++ = '\0';
    for (char *p = to; *p; p++)
        if (*p == '_') *p = '-';
    return value;
}

char **words_plain(int *argc, char **argv)
{
    const size_t words = 2 * (size_t)*argc + 1;
    size_t bytes = words * sizeof *argv;
    char **plain, *room, *value;
    int count = 0;

    for (int i = 0; i < *argc; i++) bytes += strlen(argv[i]) + 1;
    plain = malloc(bytes);
    if (!plain) return NULL;
    room = (char *)(plain + words);
    for (int i = 0; i < *argc; i++) {
        plain[count++] = argv[i];
        if (i == 0 || !is_option(argv[i])) continue;
        value = split(argv[i], room);
        plain[count - 1] = strcmp(room, "-h") == 0   ? "-help"
                           : strcmp(room, "-V") == 0 ? "-version" : room;
        if (value) plain[count++] = value;
        room += strlen(argv[i]) + 1;
    }
    plain[count] = NULL;
    *argc = count;
    return plain;
}

static char failure[700];        /* the first error of this process */

int words_fail(int code, const char *what, const char *detail)
{
    if (!*failure)
        snprintf(failure, sizeof failure, "%.500s%.190s", what, detail);
    return code;
}

void words_tell(const char *program, int code, bool *tells)
{
    if (*failure && code && *tells)
        fprintf(stderr, "%s: %s\n", program, failure);
    *tells = false;
}

int words_main(const char *program, int argc, char **argv,
               int (*serve)(int argc, char **argv, bool *tells))
{
    enum { MEMORY = 5 };
    bool tells = launch_rank() == 0;
    int code;

    argv = words_plain(&argc, argv);
    code = argv ? serve(argc, argv, &tells)
                : words_fail(MEMORY, "out of memory", "");
    words_tell(program, code, &tells);
    free(argv);
    return code;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* isa.h - compiles inner loops for three generations of x86 and selects one at
 * run time; on other processors they are compiled once.
 *
 *     INLINE void NAME_of(PARAMS) { ... }
 *     CLONED(storage, NAME, (PARAMS), (ARGUMENTS))
 *
 * defines NAME, which calls the copy for this processor.  With CLONED_BY_ISA
 * the body has an additional first parameter, the constant isa of the copy, by
 * which it chooses vectors as wide as registers (wider vectors would be kept in
 * memory).  The environment variable SPSOLVE_ISA limits the choice: plain,
 * avx2, avx512.  Fused multiply-adds change the bits of sums from one
 * generation to another, not from run to run on the same one. */
#ifndef SPS_CPU_ISA_H
#define SPS_CPU_ISA_H

#include <stdbool.h>

typedef enum sps_isa { SPS_ISA_PLAIN, SPS_ISA_AVX2, SPS_ISA_AVX512 } sps_isa;

/* Returns the best level that this processor supports and SPSOLVE_ISA allows;
 * the result is the same for the life of the process. */
sps_isa spsi_cpu_isa(void);
/* Returns false if SPSOLVE_ISA has an unknown value, which *text is set to. */
bool spsi_cpu_isa_valid(const char **text);

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    __GNUC__ >= 12
#define SPS_X86_CLONES 1
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
/* CLONES_ expands name, which may be a macro. */
#define CLONED(storage, name, params, args)                                    \
    CLONES_(storage, name, params, args, )
#define CLONED_BY_ISA(storage, name, params, args)                             \
    CLONES_(storage, name, params, args, _BY_ISA)
#define CLONES_(storage, name, params, args, by)                               \
    static void name##_plain params                                            \
    {                                                                          \
        CALL_OF##by(name, SPS_ISA_PLAIN, args);                                \
    }                                                                          \
    FOR_AVX2 static void name##_avx2 params                                    \
    {                                                                          \
        CALL_OF##by(name, SPS_ISA_AVX2, args);                                 \
    }                                                                          \
    FOR_AVX512 static void name##_avx512 params                                \
    {                                                                          \
        CALL_OF##by(name, SPS_ISA_AVX512, args);                               \
    }                                                                          \
    storage void name params                                                   \
    {                                                                          \
        switch (spsi_cpu_isa()) {                                              \
        case SPS_ISA_AVX512: name##_avx512 args; break;                        \
        case SPS_ISA_AVX2: name##_avx2 args; break;                            \
        default: name##_plain args;                                            \
        }                                                                      \
    }
#else
#define SPS_X86_CLONES 0
#define CLONED(storage, name, params, args)                                    \
    storage void name params { CALL_OF(name, SPS_ISA_PLAIN, args); }
#define CLONED_BY_ISA(storage, name, params, args)                             \
    storage void name params { CALL_OF_BY_ISA(name, SPS_ISA_PLAIN, args); }
#endif
#define CALL_OF(name, isa, args) name##_of args
#define CALL_OF_BY_ISA(name, isa, args) name##_of(isa, SPLICE_ args)
#define SPLICE_(...) __VA_ARGS__

#endif

# SPDX-License-Identifier: BSD-3-Clause
# Completion of spsolve(1) for bash.  Made by: spsolve -help=completion
_spsolve()
{
    local cur=${COMP_WORDS[COMP_CWORD]}
    local prev=${COMP_WORDS[COMP_CWORD-1]} dash=-
    [ "$prev" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}
    [ "$cur" = = ] && cur=
    prev=${prev#-} prev=-${prev#-}
    case $prev in
    -A) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -B) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -nrhs) COMPREPLY=(); return ;;
    -x0) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -nullspace-basis) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -coords) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -near-null-basis) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -rigid-body) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -max-bytes) COMPREPLY=(); return ;;
    -nullspace)
        COMPREPLY=($(compgen -W 'auto none constant components' -- "$cur"))
        return ;;
    -solver)
        COMPREPLY=($(compgen -W 'auto block_cg cg refinement gmres block_gmres block_gcrodr bicgstab idr minres lsqr lsmr lobpcg chebyshev_filter' -- "$cur"))
        return ;;
    -restart) COMPREPLY=(); return ;;
    -recycle) COMPREPLY=(); return ;;
    -bicgstab-l) COMPREPLY=(); return ;;
    -idr-s) COMPREPLY=(); return ;;
    -rank-tolerance) COMPREPLY=(); return ;;
    -damp) COMPREPLY=(); return ;;
    -dense)
        COMPREPLY=($(compgen -W 'auto never' -- "$cur"))
        return ;;
    -factors)
        COMPREPLY=($(compgen -W 'auto never predict' -- "$cur"))
        return ;;
    -reorder)
        COMPREPLY=($(compgen -W 'none rcm morton metis auto' -- "$cur"))
        return ;;
    -precond)
        COMPREPLY=($(compgen -W 'auto none jacobi block_jacobi chebyshev ilu0 ic0 ilut dense factor fsai isai amg' -- "$cur"))
        return ;;
    -block-size) COMPREPLY=(); return ;;
    -degree) COMPREPLY=(); return ;;
    -near-null)
        COMPREPLY=($(compgen -W 'auto filtered none' -- "$cur"))
        return ;;
    -power) COMPREPLY=(); return ;;
    -droptol) COMPREPLY=(); return ;;
    -fill) COMPREPLY=(); return ;;
    -scale)
        COMPREPLY=($(compgen -W 'auto none equilibrate match' -- "$cur"))
        return ;;
    -order)
        COMPREPLY=($(compgen -W 'auto none rcm degree' -- "$cur"))
        return ;;
    -precision)
        COMPREPLY=($(compgen -W 'auto double mixed single_basis single_precond' -- "$cur"))
        return ;;
    -rtol) COMPREPLY=(); return ;;
    -atol) COMPREPLY=(); return ;;
    -norm)
        COMPREPLY=($(compgen -W 'rhs backward start absolute' -- "$cur"))
        return ;;
    -max-iterations) COMPREPLY=(); return ;;
    -max-seconds) COMPREPLY=(); return ;;
    -true-residual-every) COMPREPLY=(); return ;;
    -eigs) COMPREPLY=(); return ;;
    -M) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -Y) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -which)
        COMPREPLY=($(compgen -W 'smallest largest nearest' -- "$cur"))
        return ;;
    -sigma) COMPREPLY=(); return ;;
    -block) COMPREPLY=(); return ;;
    -device)
        COMPREPLY=($(compgen -W 'auto cpu cuda' -- "$cur"))
        return ;;
    -mpi)
        COMPREPLY=($(compgen -W 'auto none' -- "$cur"))
        return ;;
    -partition)
        COMPREPLY=($(compgen -W 'nnz rows morton metis' -- "$cur"))
        return ;;
    -max-device-bytes) COMPREPLY=(); return ;;
    -threads) COMPREPLY=(); return ;;
    -seed) COMPREPLY=(); return ;;
    -kernel)
        COMPREPLY=($(compgen -W "auto measure $("$1" -list 2>/dev/null |
            sed -n 's/^kernels ([a-z]*)://p')" -- "$cur"))
        return ;;
    -wisdom) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -check-every) COMPREPLY=(); return ;;
    -o) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -convert) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -json) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -plot) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -config) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    [[ $cur == --* ]] && dash=--
    COMPREPLY=($(compgen -P "$dash" -W 'A
        B
        nrhs
        x0
        nullspace-basis
        coords
        near-null-basis
        laplacian
        rigid-body
        lenient
        strict
        allow-nonfinite
        max-bytes
        nullspace
        solver
        restart
        flexible
        recycle
        bicgstab-l
        idr-s
        rank-tolerance
        damp
        dense
        factors
        reorder
        precond
        block-size
        degree
        near-null
        power
        droptol
        fill
        scale
        order
        precision
        rtol
        atol
        norm
        max-iterations
        max-seconds
        true-residual-every
        eigs
        M
        Y
        which
        sigma
        block
        verify-count
        device
        mpi
        partition
        max-device-bytes
        threads
        across-ranks
        seed
        kernel
        wisdom
        full-precision
        strict-nonfinite
        check-every
        replay
        o
        convert
        json
        monitor
        plot
        explain
        dry-run
        quiet
        config
        list
        version
        help' -- "${cur#"$dash"}"))
}
complete -o filenames -F _spsolve spsolve solve

# SPDX-License-Identifier: BSD-3-Clause
# Completion of solve(1) for bash.  Made by: solve -help=completion
_solve()
{
    local cur=${COMP_WORDS[COMP_CWORD]}
    local prev=${COMP_WORDS[COMP_CWORD-1]}
    case $prev in
    -A) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -B) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -nrhs) COMPREPLY=(); return ;;
    -x0) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -nullspace)
        COMPREPLY=($(compgen -W 'none auto constant components' -- "$cur"))
        return ;;
    -rigid-body) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -maxmem) COMPREPLY=(); return ;;
    -eigs) COMPREPLY=(); return ;;
    -M) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -which)
        COMPREPLY=($(compgen -W 'smallest largest nearest' -- "$cur"))
        return ;;
    -sigma) COMPREPLY=(); return ;;
    -Y) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -block) COMPREPLY=(); return ;;
    -solver)
        COMPREPLY=($(compgen -W 'auto block_cg cg refinement gmres block_gmres block_gcrodr bicgstab idr minres lobpcg chebyshev_filter' -- "$cur"))
        return ;;
    -precond)
        COMPREPLY=($(compgen -W 'auto none jacobi block_jacobi chebyshev ilu0 ic0 ilut dense fsai isai' -- "$cur"))
        return ;;
    -precond-block) COMPREPLY=(); return ;;
    -precond-degree) COMPREPLY=(); return ;;
    -precision)
        COMPREPLY=($(compgen -W 'auto double mixed' -- "$cur"))
        return ;;
    -basis)
        COMPREPLY=($(compgen -W 'auto double single' -- "$cur"))
        return ;;
    -precond-precision)
        COMPREPLY=($(compgen -W 'auto double single' -- "$cur"))
        return ;;
    -scale)
        COMPREPLY=($(compgen -W 'auto none equilibrate match' -- "$cur"))
        return ;;
    -reorder)
        COMPREPLY=($(compgen -W 'none rcm morton auto' -- "$cur"))
        return ;;
    -coords) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -order)
        COMPREPLY=($(compgen -W 'auto none rcm degree' -- "$cur"))
        return ;;
    -dense)
        COMPREPLY=($(compgen -W 'auto never' -- "$cur"))
        return ;;
    -fsai-power) COMPREPLY=(); return ;;
    -droptol) COMPREPLY=(); return ;;
    -fill) COMPREPLY=(); return ;;
    -restart) COMPREPLY=(); return ;;
    -recycle) COMPREPLY=(); return ;;
    -bicgstab-l) COMPREPLY=(); return ;;
    -idr-s) COMPREPLY=(); return ;;
    -rank-tol) COMPREPLY=(); return ;;
    -rtol) COMPREPLY=(); return ;;
    -atol) COMPREPLY=(); return ;;
    -norm)
        COMPREPLY=($(compgen -W 'rhs backward start absolute' -- "$cur"))
        return ;;
    -maxit) COMPREPLY=(); return ;;
    -maxtime) COMPREPLY=(); return ;;
    -device)
        COMPREPLY=($(compgen -W 'auto cpu cuda' -- "$cur"))
        return ;;
    -kernel)
        COMPREPLY=($(compgen -W "auto measure $("$1" -list 2>/dev/null |
            sed -n 's/^kernels ([a-z]*)://p')" -- "$cur"))
        return ;;
    -wisdom) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -threads) COMPREPLY=(); return ;;
    -seed) COMPREPLY=(); return ;;
    -o) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -json) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -plot) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    -config) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    COMPREPLY=($(compgen -W '-A
        -B
        -nrhs
        -x0
        -nullspace
        -laplacian
        -rigid-body
        -lenient
        -strict
        -allow-nonfinite
        -maxmem
        -eigs
        -M
        -which
        -sigma
        -Y
        -block
        -verify-count
        -solver
        -precond
        -precond-block
        -precond-degree
        -precision
        -basis
        -precond-precision
        -scale
        -reorder
        -coords
        -order
        -dense
        -fsai-power
        -droptol
        -fill
        -restart
        -flexible
        -recycle
        -bicgstab-l
        -idr-s
        -rank-tol
        -rtol
        -atol
        -norm
        -maxit
        -maxtime
        -device
        -kernel
        -wisdom
        -strict-nonfinite
        -threads
        -seed
        -o
        -json
        -monitor
        -plot
        -explain
        -dry-run
        -quiet
        -config
        -list
        -version
        -help' -- "$cur"))
}
complete -o filenames -F _solve solve

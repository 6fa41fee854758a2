! SPDX-License-Identifier: BSD-3-Clause
! poisson.f90 - the 5-point Laplacian of 50 x 50 points for 3 right-hand sides,
! and its 2 lowest eigenvalues.
program poisson
    use spsolve
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: m = 50, n = m * m, k = 3
    integer(c_int32_t) :: rowptr(n + 1), col(5 * n)
    real(c_double) :: val(5 * n), b(n, k), x(n, k), lambda(2), v(n, 2)
    integer :: i, j, nnz
    type(spsolve_context) :: ctx
    type(spsolve_matrix) :: A
    type(spsolve_solver) :: s, e
    type(spsolve_result) :: r

    nnz = 0
    rowptr(1) = 1
    do j = 1, m
        do i = 1, m
            if (j > 1) call add(-m, -1d0)
            if (i > 1) call add(-1, -1d0)
            call add(0, 4d0)
            if (i < m) call add(1, -1d0)
            if (j < m) call add(m, -1d0)
            rowptr((j - 1) * m + i + 1) = nnz + 1
        end do
    end do
    call random_number(b)
    x = 0
    v = 0
    call ctx%create(SPS_HOST)
    call A%create(ctx, rowptr, col(:nnz), val(:nnz))
    call s%create(A, k, "rtol=1e-10")
    call s%solve(b, x, r)
    print "(a, ' with ', a, ': ', a, ' in ', i0, ' iterations')", r%solver, &
        r%precond, r%reason, r%iterations
    call e%create_eigen(A, 2)
    call e%pairs(lambda, v)
    print "('lowest eigenvalues', 2f14.10)", lambda
    call e%destroy()
    call s%destroy()
    call A%destroy()
    call ctx%destroy()
    if (r%stop <= 0) error stop 1

contains

    subroutine add(step, value)
        integer, intent(in) :: step
        double precision, intent(in) :: value
        nnz = nnz + 1
        col(nnz) = (j - 1) * m + i + step
        val(nnz) = value
    end subroutine
end program

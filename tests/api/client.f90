! SPDX-License-Identifier: BSD-3-Clause
! client.f90 - module spsolve: 1-based and borrowed matrices, errors by stat,
! functions and monitors with data, eigenpairs; and the structs and numbers that
! the module declares, of which fortran_layout.c knows what C has.
! check_bindings.sh compiles it in the build, check_install.sh installed.
module client_functions
    use spsolve
    use, intrinsic :: iso_c_binding
    implicit none
    type, extends(spsolve_function) :: scaling
        real(c_double) :: factor = 1
        integer :: calls = 0, fail_at = huge(1)
    contains
        procedure :: apply => scaling_apply
    end type
    type, extends(spsolve_monitor) :: watcher
        integer :: calls = 0, limit = huge(1)
    contains
        procedure :: watch => watcher_watch
    end type
contains
    subroutine scaling_apply(self, alpha, x, beta, y, stat)
        class(scaling), intent(inout) :: self
        real(c_double), intent(in) :: alpha, x(:, :), beta
        real(c_double), intent(inout) :: y(:, :)
        integer, intent(inout) :: stat
        self%calls = self%calls + 1
        if (self%calls >= self%fail_at) stat = 7
        if (beta == 0) then
            y = alpha * self%factor * x
        else
            y = alpha * self%factor * x + beta * y
        end if
    end subroutine
    subroutine watcher_watch(self, iteration, residual, go_on)
        class(watcher), intent(inout) :: self
        integer, intent(in) :: iteration
        real(c_double), intent(in) :: residual(:)
        logical, intent(inout) :: go_on
        self%calls = self%calls + 1
        if (size(residual) /= 2) error stop 3
        go_on = iteration < self%limit
    end subroutine
end module

program client
    use spsolve
    use client_functions
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: n = 200
    integer :: failures = 0
    type(spsolve_context) :: ctx

    interface
        integer(c_int) function layout_of_results(r, e) bind(C)
            import
            type(sps_result), intent(in) :: r
            type(sps_eigen_result), intent(in) :: e
        end function
        integer(c_int) function same_numbers(stops, statuses, places) bind(C)
            import
            integer(c_int), intent(in) :: stops(*), statuses(*), places(*)
        end function
    end interface

    call layouts()
    call ctx%create(SPS_HOST, threads=1)
    call one_based()
    call borrowed()
    call wrong_calls()
    call functions_of_the_caller()
    call eigenpairs()
    call ctx%destroy()
    if (failures > 0) error stop 1
    print "(a)", "client: the Fortran module works"

contains

    subroutine expect(right, what)
        logical, intent(in) :: right
        character(*), intent(in) :: what
        if (right) return
        print "(2a)", "not so: ", what
        failures = failures + 1
    end subroutine

    ! Every member has a number of its own.
    subroutine layouts()
        type(sps_result) :: r
        type(sps_eigen_result) :: e
        r = sps_result(c_sizeof(r), 1, 2, 3, 4, 5, 6_c_int64_t, 7_c_int64_t, &
            8, 9d0, 10d0, 11d0, 12d0, 13, at(14), at(15), at(16), at(17), &
            at(18), at(19), sps_seconds(20, 21, 22, 23, 24, 25, 26), 27d0, &
            .true._c_bool, at(28), 29d0)
        e = sps_eigen_result(c_sizeof(e), 1, 2, 3, 4, 5, 6, 7_c_int64_t, &
            8_c_int64_t, 9_c_int64_t, 10d0, 11d0, 12d0, 13d0, 14d0, 15, 16, &
            at(17), at(18), at(19), at(20), at(21), at(22), at(23), at(24), &
            sps_seconds(25, 26, 27, 28, 29, 30, 31))
        call expect(layout_of_results(r, e) == 0, "structs are those of C")
        call expect(same_numbers([integer(c_int) :: SPS_STOP_RUNNING, &
            SPS_STOP_CONVERGED, SPS_STOP_MAX_ITERATIONS, SPS_STOP_MAX_TIME, &
            SPS_STOP_STAGNATED, SPS_STOP_BREAKDOWN, SPS_STOP_INDEFINITE, &
            SPS_STOP_NOT_FINITE, SPS_STOP_SINGULAR, SPS_STOP_INTERRUPTED, &
            SPS_STOP_PRECOND_INDEFINITE, SPS_STOP_ROUNDING, &
            SPS_STOP_MASS_INDEFINITE, SPS_STOP_MISSED, &
            SPS_STOP_LEAST_SQUARES, SPS_STOP_CONVERGED_LEAST_SQUARES], &
            [integer(c_int) :: SPS_OK, SPS_EINVAL, SPS_ESHAPE, SPS_EMATRIX, &
            SPS_EUNFIT, SPS_EPARSE, SPS_EIO, SPS_ENOMEM, SPS_EDEVMEM, &
            SPS_EDEVICE, SPS_EABSENT, SPS_EUSER, SPS_EBUG, SPS_EPEER], &
            [integer(c_int) :: SPS_AUTO, SPS_HOST, SPS_CUDA, SPS_SYMMETRIC, &
            SPS_SPD]) == 0, "numbers are those of C")
    end subroutine

    type(c_ptr) function at(i)
        integer, intent(in) :: i
        at = transfer(int(i, c_intptr_t), c_null_ptr)
    end function

    ! The second difference of a line: rowptr and col from `base` on.
    subroutine line(base, rowptr, col, val)
        integer, intent(in) :: base
        integer(c_int32_t), allocatable, intent(out) :: rowptr(:), col(:)
        real(c_double), allocatable, intent(out) :: val(:)
        integer :: i, c
        allocate (rowptr(n + 1), col(0), val(0))
        rowptr(1) = base
        do i = 1, n
            do c = max(i - 1, 1), min(i + 1, n)
                col = [col, int(c - 1 + base, c_int32_t)]
                val = [val, merge(2d0, -1d0, c == i)]
            end do
            rowptr(i + 1) = base + size(col)
        end do
    end subroutine

    subroutine one_based()
        integer(c_int32_t), allocatable :: rowptr(:), col(:)
        real(c_double), allocatable :: val(:)
        real(c_double) :: x(n, 2), b(n, 2), right(n, 2), y(n)
        type(spsolve_matrix) :: A
        type(spsolve_solver) :: s, one
        type(spsolve_result) :: r
        type(watcher), target :: w
        call line(1, rowptr, col, val)
        call A%create(ctx, rowptr, col, val)
        rowptr = -1             ! it was copied
        call random_number(right)
        b = 2 * right
        b(2:, :) = b(2:, :) - right(:n - 1, :)
        b(:n - 1, :) = b(:n - 1, :) - right(2:, :)
        x = 0
        call s%create(A, 2, "rtol=1e-12 solver=cg precond=jacobi", w)
        call s%solve(b, x, r)
        call expect(r%stop == SPS_STOP_CONVERGED .and. r%solver == "cg" &
            .and. r%precond == "jacobi" .and. r%reason == "converged", &
            "the report names what was used")
        call expect(size(r%residual) == 2 .and. all(r%residual <= 1e-12), &
            "residuals")
        call expect(w%calls >= r%iterations, "the monitor was told")
        call expect(maxval(abs(x - right)) < 1e-6, "x of a 1-based matrix")
        w%limit = 1
        x = 0
        call s%solve(b, x, r)
        call expect(r%stop == SPS_STOP_INTERRUPTED, "a monitor ends a solve")
        call s%set_values(4 * val)
        w%limit = huge(1)
        call s%solve(b, x, r)
        call expect(maxval(abs(4 * x - right)) < 1e-6, "new values")
        y = 0
        call one%create(A, 1, "rtol=1e-12")
        call one%solve(b(:, 1), y, r)
        call expect(maxval(abs(y - right(:, 1))) < 1e-6, "a vector")
        call one%destroy()
        call s%destroy()
        call A%destroy()
    end subroutine

    subroutine borrowed()
        integer(c_int32_t), allocatable :: rowptr(:)
        integer(c_int32_t), allocatable, target :: col(:)
        integer(c_int64_t), target :: wide(n + 1)
        real(c_double), allocatable, target :: val(:)
        real(c_double) :: x(n), b(n)
        type(spsolve_matrix) :: A
        type(spsolve_solver) :: s
        type(spsolve_result) :: r
        call line(0, rowptr, col, val)
        wide = rowptr
        call A%create(ctx, wide, col, val, base=0)
        val = 3 * val           ! it was not copied
        b = 0
        b(1) = 3
        b(n) = 3
        x = 0
        call s%create(A, 1, "rtol=1e-12")
        call s%solve(b, x, r)
        call expect(maxval(abs(x - 1)) < 1e-6, "x of a borrowed matrix")
        call s%destroy()
        call A%destroy()
    end subroutine

    subroutine wrong_calls()
        integer(c_int32_t), allocatable :: rowptr(:), col(:)
        real(c_double), allocatable :: val(:)
        real(c_double) :: short(3)
        type(spsolve_matrix) :: A, none
        type(spsolve_solver) :: s
        integer :: stat
        call none%read(ctx, "nowhere.mtx", stat)
        call expect(stat == SPS_EIO .and. &
            index(ctx%error(), "nowhere.mtx") > 0, "the text names the file")
        call line(1, rowptr, col, val)
        call A%create(ctx, rowptr, col(2:), val, stat=stat)
        call expect(stat == SPS_ESHAPE, "sizes of col and val")
        call A%create(ctx, rowptr, col, val)
        call s%create(A, 1, "sovler=cg", stat=stat)
        call expect(stat == SPS_EINVAL .and. index(ctx%error(), "solver") > 0, &
            "the text has the similar name")
        call s%destroy()
        call s%create(A, 1)
        short = 1
        call s%solve(short, short(:2), stat=stat)
        call expect(stat == SPS_ESHAPE, "shapes of b and x")
        call s%destroy()
        call A%destroy()
    end subroutine

    subroutine functions_of_the_caller()
        type(scaling), target :: f
        type(spsolve_matrix) :: A
        type(spsolve_solver) :: s
        type(spsolve_result) :: r
        real(c_double) :: x(5, 2), b(5, 2)
        integer :: stat
        f%factor = 4
        b = 8
        x = 0
        call A%create(ctx, 5, f, SPS_SYMMETRIC + SPS_SPD)
        call s%create(A, 2, "solver=cg precond=none")
        call s%solve(b, x, r)
        call expect(r%stop > 0 .and. maxval(abs(x - 2)) < 1e-12 .and. &
            f%calls > 0, "a function with data")
        f%fail_at = 0
        call s%solve(b, x, r, stat)
        call expect(stat == SPS_EUSER, "a function that fails")
        call s%destroy()
        call A%destroy()
    end subroutine

    subroutine eigenpairs()
        integer(c_int32_t), allocatable :: rowptr(:), col(:)
        real(c_double), allocatable :: val(:)
        real(c_double) :: lambda(3), v(n, 3), pi
        type(spsolve_matrix) :: A
        type(spsolve_solver) :: s
        type(spsolve_result) :: r
        integer :: i, stat
        pi = acos(-1d0)
        call line(1, rowptr, col, val)
        call A%create(ctx, rowptr, col, val)
        v = 0
        call s%create_eigen(A, 3, "rtol=1e-9")
        call s%pairs(lambda, v, r)
        call expect(r%stop > 0 .and. maxval(abs(lambda - [(2 - 2 * &
            cos(i * pi / (n + 1)), i = 1, 3)])) < 1e-10, "eigenvalues")
        call expect(abs(dot_product(v(:, 1), v(:, 2))) < 1e-8 .and. &
            abs(norm2(v(:, 1)) - 1) < 1e-8, "eigenvectors")
        call s%pairs(lambda(:2), v, stat=stat)
        call expect(stat == SPS_ESHAPE, "the size of lambda")
        call s%destroy()
        call A%destroy()
    end subroutine
end program

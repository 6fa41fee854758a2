! SPDX-License-Identifier: BSD-3-Clause
! spsolve.f90 - libspsolve for Fortran 2008: the functions of spsolve.h by
! iso_c_binding.  A compiler's .mod files are its own, so that users compile
! this source.
!
!   use spsolve
!   type(spsolve_context) :: ctx
!   type(spsolve_matrix)  :: A
!   type(spsolve_solver)  :: s
!   type(spsolve_result)  :: r
!   call ctx%create(SPS_HOST)
!   call A%create(ctx, rowptr, col, val)     ! 1-based csr of Fortran
!   call s%create(A, k, "rtol=1e-10")
!   call s%solve(b, x, r)                    ! x(n,k) or x(n)
!   call s%destroy(); call A%destroy(); call ctx%destroy()
!
! - Every procedure has a last, optional argument stat, SPS_OK or the status of
!   the failure, whose text is ctx%error().  Without it a failure ends the
!   program with that text.
! - A matrix of 1-based arrays is a copy.  With base = 0, offsets of 64 bits and
!   columns of 32 bits are used where they are: the arrays must be targets and
!   live as long as the matrix.
! - A product is a type that extends spsolve_function, with the data it needs.
! - What is created later is destroyed earlier.
module spsolve
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private

    enum, bind(C)       ! sps_status
        enumerator :: SPS_OK = 0, SPS_EINVAL, SPS_ESHAPE, SPS_EMATRIX, &
            SPS_EUNFIT, SPS_EPARSE, SPS_EIO, SPS_ENOMEM, SPS_EDEVMEM, &
            SPS_EDEVICE, SPS_EABSENT, SPS_EUSER, SPS_EBUG, SPS_EPEER
    end enum
    enum, bind(C)       ! sps_place
        enumerator :: SPS_AUTO = 0, SPS_HOST, SPS_CUDA
    end enum
    enum, bind(C)       ! sps_stop; positive: converged
        enumerator :: SPS_STOP_RUNNING = 0, SPS_STOP_CONVERGED = 1, &
            SPS_STOP_CONVERGED_LEAST_SQUARES = 2, &
            SPS_STOP_MAX_ITERATIONS = -1, SPS_STOP_MAX_TIME = -2, &
            SPS_STOP_STAGNATED = -3, SPS_STOP_BREAKDOWN = -4, &
            SPS_STOP_INDEFINITE = -5, SPS_STOP_NOT_FINITE = -6, &
            SPS_STOP_SINGULAR = -7, SPS_STOP_INTERRUPTED = -8, &
            SPS_STOP_PRECOND_INDEFINITE = -9, SPS_STOP_ROUNDING = -10, &
            SPS_STOP_MASS_INDEFINITE = -11, SPS_STOP_MISSED = -12, &
            SPS_STOP_LEAST_SQUARES = -13
    end enum
    integer(c_int), parameter, public :: SPS_SYMMETRIC = 1, SPS_SPD = 2
    public :: SPS_OK, SPS_EINVAL, SPS_ESHAPE, SPS_EMATRIX, SPS_EUNFIT, &
        SPS_EPARSE, SPS_EIO, SPS_ENOMEM, SPS_EDEVMEM, SPS_EDEVICE, &
        SPS_EABSENT, SPS_EUSER, SPS_EBUG, SPS_EPEER, SPS_AUTO, SPS_HOST, &
        SPS_CUDA, SPS_STOP_RUNNING, SPS_STOP_CONVERGED, &
        SPS_STOP_CONVERGED_LEAST_SQUARES, SPS_STOP_MAX_ITERATIONS, &
        SPS_STOP_MAX_TIME, SPS_STOP_STAGNATED, SPS_STOP_BREAKDOWN, &
        SPS_STOP_INDEFINITE, SPS_STOP_NOT_FINITE, SPS_STOP_SINGULAR, &
        SPS_STOP_INTERRUPTED, SPS_STOP_PRECOND_INDEFINITE, &
        SPS_STOP_ROUNDING, SPS_STOP_MASS_INDEFINITE, SPS_STOP_MISSED, &
        SPS_STOP_LEAST_SQUARES
    integer(c_int), parameter :: COL_MAJOR = 1, F64 = 0, COPY = 0, BORROW = 1

    ! Structs of spsolve.h, member by member.
    type, bind(C), public :: sps_seconds
        real(c_double) :: setup = 0, solve = 0, verify = 0, spmm = 0, &
            precond = 0, gram = 0, small = 0
    end type
    type, bind(C), public :: sps_result
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: stop = 0, k = 0, iterations = 0, &
            columns_converged = 0, restarts = 0
        integer(c_int64_t) :: applies_A = 0, applies_M = 0
        integer(c_int) :: min_width = 0
        real(c_double) :: worst_residual = 0, worst_backward = 0, norm_A = 0, &
            removed = 0
        integer(c_int) :: nullspace = 0
        type(c_ptr) :: residual = c_null_ptr, backward = c_null_ptr, &
            column = c_null_ptr, solver = c_null_ptr, precond = c_null_ptr, &
            kernel = c_null_ptr
        type(sps_seconds) :: seconds
        real(c_double) :: worst_in_range = 0
        logical(c_bool) :: in_doubles = .false.
        type(c_ptr) :: normal = c_null_ptr
        real(c_double) :: worst_normal = 0
    end type
    type, bind(C), public :: sps_eigen_result
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: stop = 0, count = 0, converged = 0, block = 0, &
            iterations = 0, restarts = 0
        integer(c_int64_t) :: applies_A = 0, applies_M = 0, applies_precond = 0
        real(c_double) :: worst_residual = 0, worst_backward = 0, norm_A = 0, &
            norm_M = 0, orthogonality = 0
        integer(c_int) :: nullspace = 0, missed = 0
        type(c_ptr) :: lambda = c_null_ptr, residual = c_null_ptr, &
            backward = c_null_ptr, bound = c_null_ptr, pair = c_null_ptr, &
            solver = c_null_ptr, precond = c_null_ptr, kernel = c_null_ptr
        type(sps_seconds) :: seconds
    end type

    ! What a solve has found; allocatable members have a number a column.
    type, public :: spsolve_result
        integer(c_int) :: stop = SPS_STOP_RUNNING, iterations = 0
        real(c_double), allocatable :: residual(:)
        integer(c_int), allocatable :: column(:)
        character(:), allocatable :: solver, precond, reason
        type(sps_seconds) :: seconds
    end type

    ! y(j,i) = alpha A x + beta y; (j,i) is column j of row i of a block.
    type, abstract, public :: spsolve_function
    contains
        procedure(product), deferred :: apply
    end type
    ! Told after each iteration; go_on = .false. ends the solve.
    type, abstract, public :: spsolve_monitor
    contains
        procedure(watching), deferred :: watch
    end type
    abstract interface
        subroutine product(self, alpha, x, beta, y, stat)
            import
            class(spsolve_function), intent(inout) :: self
            real(c_double), intent(in) :: alpha, x(:, :), beta
            real(c_double), intent(inout) :: y(:, :)
            integer, intent(inout) :: stat      ! 0; else the solve ends
        end subroutine
        subroutine watching(self, iteration, residual, go_on)
            import
            class(spsolve_monitor), intent(inout) :: self
            integer, intent(in) :: iteration
            real(c_double), intent(in) :: residual(:)
            logical, intent(inout) :: go_on
        end subroutine
    end interface
    type :: function_holder
        class(spsolve_function), pointer :: f => null()
    end type
    type :: monitor_holder
        class(spsolve_monitor), pointer :: m => null()
    end type

    type, public :: spsolve_context
        type(c_ptr) :: p = c_null_ptr
    contains
        procedure :: create => context_create
        procedure :: destroy => context_destroy
        procedure :: error => context_error
        procedure :: note => context_note
    end type

    ! A csr, or a function, of an operator.
    type, public :: spsolve_matrix
        type(c_ptr) :: p = c_null_ptr           ! csr
        type(c_ptr) :: ctx = c_null_ptr
        integer(c_int64_t) :: nrow = 0, ncol = 0
        integer(c_int) :: props = 0
        type(function_holder), pointer :: call => null()
    contains
        procedure, private :: create32 => matrix_create32
        procedure, private :: create64 => matrix_create64
        procedure, private :: create_function => matrix_function
        generic :: create => create32, create64, create_function
        procedure :: read => matrix_read
        procedure :: write => matrix_write
        procedure :: destroy => matrix_destroy
    end type

    ! A X = B with k columns, or k eigenpairs of A x = lambda x.
    type, public :: spsolve_solver
        type(c_ptr) :: p = c_null_ptr, op = c_null_ptr, opt = c_null_ptr
        type(c_ptr) :: ctx = c_null_ptr
        integer(c_int64_t) :: nrow = 0, ncol = 0
        integer(c_int) :: k = 0
        logical :: eigen = .false.
        type(monitor_holder), pointer :: watcher => null()
    contains
        procedure :: create => solver_create
        procedure :: create_eigen => solver_create_eigen
        procedure, private :: solve1 => solver_solve1
        procedure, private :: solve2 => solver_solve2
        generic :: solve => solve1, solve2
        procedure :: pairs => solver_pairs
        procedure :: set_values => solver_set_values
        procedure :: destroy => solver_destroy
    end type

    interface
        subroutine c_options_init(o, size) &
            bind(C, name="sps_context_options_init")
            import
            type(c_ptr), value :: o
            integer(c_size_t), value :: size
        end subroutine
        integer(c_int) function c_context_create(o, ctx, why) &
            bind(C, name="sps_context_create")
            import
            type(c_ptr), value :: o
            type(c_ptr), intent(inout) :: ctx
            type(c_ptr), intent(inout) :: why
        end function
        subroutine c_context_destroy(ctx) bind(C, name="sps_context_destroy")
            import
            type(c_ptr), intent(inout) :: ctx
        end subroutine
        type(c_ptr) function c_error(ctx) bind(C, name="sps_context_error")
            import
            type(c_ptr), value :: ctx
        end function
        type(c_ptr) function c_note(ctx, i) bind(C, name="sps_context_note")
            import
            type(c_ptr), value :: ctx
            integer(c_int), value :: i
        end function
        type(c_ptr) function c_stop_string(stop) &
            bind(C, name="sps_stop_string")
            import
            integer(c_int), value :: stop
        end function
        integer(c_int) function c_csr_wrap(ctx, nrow, ncol, nnz, rowptr, col, &
            val, dtype, place, own, A) bind(C, name="sps_csr_wrap")
            import
            type(c_ptr), value :: ctx, rowptr, col, val
            integer(c_int64_t), value :: nrow, ncol, nnz
            integer(c_int), value :: dtype, place, own
            type(c_ptr), intent(inout) :: A
        end function
        integer(c_int) function c_csr_read(ctx, path, ro, info, A) &
            bind(C, name="sps_csr_read")
            import
            type(c_ptr), value :: ctx, ro, info
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(inout) :: A
        end function
        integer(c_int) function c_csr_write(ctx, path, A, symmetric) &
            bind(C, name="sps_csr_write")
            import
            type(c_ptr), value :: ctx, A
            character(kind=c_char), intent(in) :: path(*)
            logical(c_bool), value :: symmetric
        end function
        subroutine c_csr_destroy(ctx, A) bind(C, name="sps_csr_destroy")
            import
            type(c_ptr), value :: ctx
            type(c_ptr), intent(inout) :: A
        end subroutine
        integer(c_int) function c_operator_csr(ctx, A, width, opt, op) &
            bind(C, name="sps_operator_csr")
            import
            type(c_ptr), value :: ctx, A, opt
            integer(c_int), value :: width
            type(c_ptr), intent(inout) :: op
        end function
        integer(c_int) function c_operator_user(ctx, n, apply, data, props, &
            op) bind(C, name="sps_operator_user")
            import
            type(c_ptr), value :: ctx, data
            integer(c_int64_t), value :: n
            type(c_funptr), value :: apply
            integer(c_int), value :: props
            type(c_ptr), intent(inout) :: op
        end function
        integer(c_int) function c_set_values(op, val, place) &
            bind(C, name="sps_operator_set_values")
            import
            type(c_ptr), value :: op
            real(c_double), intent(in) :: val(*)
            integer(c_int), value :: place
        end function
        subroutine c_operator_destroy(op) &
            bind(C, name="sps_operator_destroy")
            import
            type(c_ptr), intent(inout) :: op
        end subroutine
        integer(c_int) function c_options_create(ctx, opt) &
            bind(C, name="sps_options_create")
            import
            type(c_ptr), value :: ctx
            type(c_ptr), intent(inout) :: opt
        end function
        subroutine c_options_destroy(ctx, opt) &
            bind(C, name="sps_options_destroy")
            import
            type(c_ptr), value :: ctx
            type(c_ptr), intent(inout) :: opt
        end subroutine
        integer(c_int) function c_options_parse(ctx, opt, text) &
            bind(C, name="sps_options_parse")
            import
            type(c_ptr), value :: ctx, opt
            character(kind=c_char), intent(in) :: text(*)
        end function
        integer(c_int) function c_options_monitor(ctx, opt, monitor, data) &
            bind(C, name="sps_options_set_monitor")
            import
            type(c_ptr), value :: ctx, opt, data
            type(c_funptr), value :: monitor
        end function
        integer(c_int) function c_block_create(ctx, n, k, X) &
            bind(C, name="sps_block_create")
            import
            type(c_ptr), value :: ctx
            integer(c_int64_t), value :: n
            integer(c_int), value :: k
            type(c_ptr), intent(inout) :: X
        end function
        integer(c_int) function c_block_set(X, first, k, data, ld, order, &
            place) bind(C, name="sps_block_set")
            import
            type(c_ptr), value :: X
            real(c_double), intent(in) :: data(*)
            integer(c_int64_t), value :: ld
            integer(c_int), value :: first, k, order, place
        end function
        integer(c_int) function c_block_get(X, first, k, data, ld, order, &
            place) bind(C, name="sps_block_get")
            import
            type(c_ptr), value :: X
            real(c_double), intent(inout) :: data(*)
            integer(c_int64_t), value :: ld
            integer(c_int), value :: first, k, order, place
        end function
        subroutine c_block_destroy(X) bind(C, name="sps_block_destroy")
            import
            type(c_ptr), intent(inout) :: X
        end subroutine
        integer(c_int) function c_solver_create(op, M, k, opt, s) &
            bind(C, name="sps_solver_create")
            import
            type(c_ptr), value :: op, M, opt
            integer(c_int), value :: k
            type(c_ptr), intent(inout) :: s
        end function
        integer(c_int) function c_solver_create_eigen(op, M, T, count, opt, &
            s) bind(C, name="sps_solver_create_eigen")
            import
            type(c_ptr), value :: op, M, T, opt
            integer(c_int), value :: count
            type(c_ptr), intent(inout) :: s
        end function
        integer(c_int) function c_solver_linear(s, B, X, r) &
            bind(C, name="sps_solver_linear")
            import
            type(c_ptr), value :: s, B, X
            type(sps_result), intent(inout) :: r
        end function
        integer(c_int) function c_solver_eigen(s, X, lambda, r) &
            bind(C, name="sps_solver_eigen")
            import
            type(c_ptr), value :: s, X
            real(c_double), intent(inout) :: lambda(*)
            type(sps_eigen_result), intent(inout) :: r
        end function
        subroutine c_solver_destroy(s) bind(C, name="sps_solver_destroy")
            import
            type(c_ptr), intent(inout) :: s
        end subroutine
        integer(c_size_t) function c_strlen(s) bind(C, name="strlen")
            import
            type(c_ptr), value :: s
        end function
    end interface

    ! struct sps_context_options up to the place; the rest has its defaults.
    type, bind(C) :: options_head
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: place = 0, device = -1
        type(c_ptr) :: stream = c_null_ptr
        integer(c_int) :: threads = 0
    end type
    ! What sps_progress begins with.
    type, bind(C) :: progress_head
        integer(c_int) :: iteration, k
        type(c_ptr) :: residual
    end type

contains

    function text_of(p) result(text)
        type(c_ptr), intent(in) :: p
        character(:), allocatable :: text
        character(kind=c_char), pointer :: c(:)
        integer :: i, n
        n = 0
        if (c_associated(p)) n = int(c_strlen(p))
        text = repeat(" ", n)
        if (n == 0) return
        call c_f_pointer(p, c, [n])
        do i = 1, n
            text(i:i) = c(i)
        end do
    end function

    ! Sets stat, or ends the program, where a call has failed.
    subroutine check(ctx, status, stat, why)
        type(c_ptr), intent(in) :: ctx
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: stat
        type(c_ptr), intent(in), optional :: why
        if (present(stat)) then
            stat = status
        else if (status /= SPS_OK) then
            if (present(why)) then
                write (error_unit, "(2a)") "spsolve: ", text_of(why)
            else
                write (error_unit, "(2a)") "spsolve: ", text_of(c_error(ctx))
            end if
            error stop 1
        end if
    end subroutine

    ! ------------------------------------------------------------- context

    subroutine context_create(self, place, threads, stat)
        class(spsolve_context), intent(inout) :: self
        integer(c_int), intent(in), optional :: place
        integer, intent(in), optional :: threads
        integer, intent(out), optional :: stat
        type(options_head), target :: o
        type(c_ptr) :: why
        why = c_null_ptr
        call c_options_init(c_loc(o), c_sizeof(o))
        if (present(place)) o%place = place
        if (present(threads)) o%threads = threads
        call check(c_null_ptr, c_context_create(c_loc(o), self%p, why), stat, &
            why)
    end subroutine

    subroutine context_destroy(self)
        class(spsolve_context), intent(inout) :: self
        call c_context_destroy(self%p)
    end subroutine

    function context_error(self) result(text)
        class(spsolve_context), intent(in) :: self
        character(:), allocatable :: text
        text = text_of(c_error(self%p))
    end function

    ! Note number i = 1, 2 ...; empty behind the last one.
    function context_note(self, i) result(text)
        class(spsolve_context), intent(in) :: self
        integer, intent(in) :: i
        character(:), allocatable :: text
        text = text_of(c_note(self%p, int(i - 1, c_int)))
    end function

    ! -------------------------------------------------------------- matrix

    subroutine matrix_create64(self, ctx, rowptr, col, val, ncol, base, stat)
        class(spsolve_matrix), intent(inout) :: self
        type(spsolve_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target, contiguous :: rowptr(:)
        integer(c_int32_t), intent(in), target, contiguous :: col(:)
        real(c_double), intent(in), target, contiguous :: val(:)
        integer, intent(in), optional :: ncol, base
        integer, intent(out), optional :: stat
        integer(c_int64_t), allocatable, target :: offsets(:)
        integer(c_int32_t), allocatable, target :: columns(:)
        integer :: first
        first = 1
        if (present(base)) first = base
        if (first == 0) then
            call wrap(self, ctx, c_loc(rowptr), c_loc(col), c_loc(val), &
                size(rowptr, kind=c_int64_t), size(col, kind=c_int64_t), &
                size(val, kind=c_int64_t), BORROW, ncol, stat)
        else
            offsets = rowptr - first
            columns = col - first
            call wrap(self, ctx, c_loc(offsets), c_loc(columns), c_loc(val), &
                size(rowptr, kind=c_int64_t), size(col, kind=c_int64_t), &
                size(val, kind=c_int64_t), COPY, ncol, stat)
        end if
    end subroutine

    subroutine matrix_create32(self, ctx, rowptr, col, val, ncol, base, stat)
        class(spsolve_matrix), intent(inout) :: self
        type(spsolve_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), contiguous :: rowptr(:), col(:)
        real(c_double), intent(in), target, contiguous :: val(:)
        integer, intent(in), optional :: ncol, base
        integer, intent(out), optional :: stat
        integer(c_int64_t), allocatable, target :: offsets(:)
        integer(c_int32_t), allocatable, target :: columns(:)
        integer :: first
        first = 1
        if (present(base)) first = base
        offsets = int(rowptr, c_int64_t) - first
        columns = col - first
        call wrap(self, ctx, c_loc(offsets), c_loc(columns), c_loc(val), &
            size(rowptr, kind=c_int64_t), size(col, kind=c_int64_t), &
            size(val, kind=c_int64_t), COPY, ncol, stat)
    end subroutine

    subroutine wrap(self, ctx, rowptr, col, val, offsets, columns, nnz, own, &
        ncol, stat)
        class(spsolve_matrix), intent(inout) :: self
        type(spsolve_context), intent(in) :: ctx
        type(c_ptr), intent(in) :: rowptr, col, val
        integer(c_int64_t), intent(in) :: offsets, columns, nnz
        integer(c_int), intent(in) :: own
        integer, intent(in), optional :: ncol
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        self%ctx = ctx%p
        self%nrow = offsets - 1
        self%ncol = self%nrow
        if (present(ncol)) self%ncol = ncol
        status = SPS_ESHAPE
        if (columns == nnz) status = c_csr_wrap(ctx%p, self%nrow, self%ncol, &
            nnz, rowptr, col, val, F64, SPS_HOST, own, self%p)
        if (columns /= nnz .and. .not. present(stat)) error stop &
            "spsolve: col and val must have the same size"
        call check(ctx%p, status, stat)
    end subroutine

    ! An operator of n rows that is a function; props: SPS_SYMMETRIC, SPS_SPD.
    subroutine matrix_function(self, ctx, n, f, props)
        class(spsolve_matrix), intent(inout) :: self
        type(spsolve_context), intent(in) :: ctx
        integer, intent(in) :: n
        class(spsolve_function), intent(in), target :: f
        integer(c_int), intent(in), optional :: props
        self%ctx = ctx%p
        self%nrow = n
        self%ncol = n
        if (present(props)) self%props = props
        allocate (self%call)
        self%call%f => f
    end subroutine

    subroutine matrix_read(self, ctx, path, stat)
        class(spsolve_matrix), intent(inout) :: self
        type(spsolve_context), intent(in) :: ctx
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        integer(c_int64_t), pointer :: sizes(:)
        integer(c_int) :: status
        self%ctx = ctx%p
        status = c_csr_read(ctx%p, path // c_null_char, c_null_ptr, &
            c_null_ptr, self%p)
        if (status == SPS_OK) then      ! sps_csr begins with nrow, ncol
            call c_f_pointer(self%p, sizes, [2])
            self%nrow = sizes(1)
            self%ncol = sizes(2)
        end if
        call check(ctx%p, status, stat)
    end subroutine

    subroutine matrix_write(self, path, stat)
        class(spsolve_matrix), intent(in) :: self
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        call check(self%ctx, c_csr_write(self%ctx, path // c_null_char, &
            self%p, .false._c_bool), stat)
    end subroutine

    subroutine matrix_destroy(self)
        class(spsolve_matrix), intent(inout) :: self
        if (c_associated(self%p)) call c_csr_destroy(self%ctx, self%p)
        if (associated(self%call)) deallocate (self%call)
    end subroutine

    integer(c_int) function apply_function(alpha, X, ldx, beta, Y, ldy, n, k, &
        stream, data) bind(C)
        real(c_double), value :: alpha, beta
        type(c_ptr), value :: X, Y, stream, data
        integer(c_int64_t), value :: ldx, ldy, n
        integer(c_int), value :: k
        type(function_holder), pointer :: holder
        real(c_double), pointer :: a(:, :), b(:, :)
        integer :: stat
        call c_f_pointer(data, holder)
        call c_f_pointer(X, a, [ldx, n])
        call c_f_pointer(Y, b, [ldy, n])
        stat = 0
        call holder%f%apply(alpha, a(:k, :), beta, b(:k, :), stat)
        apply_function = stat
    end function

    function call_monitor(progress, data) bind(C) result(go_on)
        type(progress_head), intent(in) :: progress
        type(c_ptr), value :: data
        logical(c_bool) :: go_on
        type(monitor_holder), pointer :: holder
        real(c_double), pointer :: residual(:)
        logical :: more
        call c_f_pointer(data, holder)
        call c_f_pointer(progress%residual, residual, [progress%k])
        more = .true.
        call holder%m%watch(int(progress%iteration), residual, more)
        go_on = more
    end function

    ! -------------------------------------------------------------- solver

    ! Options, the operator, and what both kinds of solver need.
    integer(c_int) function begin(self, A, k, options, monitor) result(status)
        class(spsolve_solver), intent(inout) :: self
        type(spsolve_matrix), intent(in) :: A
        integer, intent(in) :: k
        character(*), intent(in), optional :: options
        class(spsolve_monitor), intent(in), target, optional :: monitor
        self%ctx = A%ctx
        self%k = k
        self%nrow = A%nrow
        self%ncol = A%ncol
        status = c_options_create(self%ctx, self%opt)
        if (status == SPS_OK .and. present(options)) status = &
            c_options_parse(self%ctx, self%opt, options // c_null_char)
        if (status == SPS_OK .and. present(monitor)) then
            allocate (self%watcher)
            self%watcher%m => monitor
            status = c_options_monitor(self%ctx, self%opt, &
                c_funloc(call_monitor), c_loc(self%watcher))
        end if
        if (status /= SPS_OK) return
        if (associated(A%call)) then
            status = c_operator_user(self%ctx, A%nrow, &
                c_funloc(apply_function), c_loc(A%call), A%props, self%op)
        else
            status = c_operator_csr(self%ctx, A%p, self%k, self%opt, self%op)
        end if
    end function

    ! options: "rtol=1e-10 precond=amg", as sps_options_parse takes them.
    subroutine solver_create(self, A, k, options, monitor, stat)
        class(spsolve_solver), intent(inout) :: self
        type(spsolve_matrix), intent(in) :: A
        integer, intent(in) :: k
        character(*), intent(in), optional :: options
        class(spsolve_monitor), intent(in), target, optional :: monitor
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        status = begin(self, A, k, options, monitor)
        if (status == SPS_OK) status = c_solver_create(self%op, c_null_ptr, &
            self%k, self%opt, self%p)
        call check(self%ctx, status, stat)
    end subroutine

    ! For k eigenpairs.
    subroutine solver_create_eigen(self, A, k, options, monitor, stat)
        class(spsolve_solver), intent(inout) :: self
        type(spsolve_matrix), intent(in) :: A
        integer, intent(in) :: k
        character(*), intent(in), optional :: options
        class(spsolve_monitor), intent(in), target, optional :: monitor
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        self%eigen = .true.
        status = begin(self, A, k, options, monitor)
        if (status == SPS_OK) status = c_solver_create_eigen(self%op, &
            c_null_ptr, c_null_ptr, self%k, self%opt, self%p)
        call check(self%ctx, status, stat)
    end subroutine

    subroutine solver_solve1(self, b, x, r, stat)
        class(spsolve_solver), intent(inout) :: self
        real(c_double), intent(in), contiguous :: b(:)
        real(c_double), intent(inout), contiguous :: x(:)
        type(spsolve_result), intent(out), optional :: r
        integer, intent(out), optional :: stat
        call run(self, b, size(b), 1, x, size(x), 1, r, stat)
    end subroutine

    ! x has the guess, and receives the best iterates.
    subroutine solver_solve2(self, b, x, r, stat)
        class(spsolve_solver), intent(inout) :: self
        real(c_double), intent(in), contiguous :: b(:, :)
        real(c_double), intent(inout), contiguous :: x(:, :)
        type(spsolve_result), intent(out), optional :: r
        integer, intent(out), optional :: stat
        call run(self, b, size(b, 1), size(b, 2), x, size(x, 1), size(x, 2), &
            r, stat)
    end subroutine

    subroutine run(self, b, m, kb, x, n, kx, r, stat)
        class(spsolve_solver), intent(inout) :: self
        integer, intent(in) :: m, kb, n, kx
        real(c_double), intent(in) :: b(*)
        real(c_double), intent(inout) :: x(*)
        type(spsolve_result), intent(out), optional :: r
        integer, intent(out), optional :: stat
        type(sps_result) :: raw
        type(c_ptr) :: bb, xx
        integer(c_int) :: status
        if (m /= self%nrow .or. n /= self%ncol .or. kb /= self%k .or. &
            kx /= self%k) then
            call refuse("the shapes of b and x do not fit the solver", stat)
            return
        end if
        bb = c_null_ptr
        xx = c_null_ptr
        raw%struct_size = c_sizeof(raw)
        status = filled(self, self%nrow, b, bb)
        if (status == SPS_OK) status = filled(self, self%ncol, x, xx)
        if (status == SPS_OK) status = c_solver_linear(self%p, bb, xx, raw)
        ! The best iterates are there after a failure of a callback, too.
        if (c_associated(xx)) call fetch(self, xx, self%ncol, x, status)
        call c_block_destroy(bb)
        call c_block_destroy(xx)
        if (present(r) .and. status == SPS_OK) call describe(raw, r)
        call check(self%ctx, status, stat)
    end subroutine

    subroutine refuse(why, stat)
        character(*), intent(in) :: why
        integer, intent(out), optional :: stat
        if (.not. present(stat)) then
            write (error_unit, "(2a)") "spsolve: ", why
            error stop 1
        end if
        stat = SPS_ESHAPE
    end subroutine

    integer(c_int) function filled(self, n, a, X) result(status)
        class(spsolve_solver), intent(in) :: self
        integer(c_int64_t), intent(in) :: n
        real(c_double), intent(in) :: a(*)
        type(c_ptr), intent(inout) :: X
        status = c_block_create(self%ctx, n, self%k, X)
        if (status == SPS_OK) status = c_block_set(X, 0_c_int, self%k, a, n, &
            COL_MAJOR, SPS_HOST)
    end function

    subroutine fetch(self, X, n, a, status)
        class(spsolve_solver), intent(in) :: self
        type(c_ptr), intent(in) :: X
        integer(c_int64_t), intent(in) :: n
        real(c_double), intent(inout) :: a(*)
        integer(c_int), intent(inout) :: status
        if (status == SPS_OK) status = c_block_get(X, 0_c_int, self%k, a, n, &
            COL_MAJOR, SPS_HOST)
    end subroutine

    subroutine describe(raw, r)
        type(sps_result), intent(in) :: raw
        type(spsolve_result), intent(inout) :: r
        real(c_double), pointer :: residual(:)
        integer(c_int), pointer :: column(:)
        call c_f_pointer(raw%residual, residual, [raw%k])
        call c_f_pointer(raw%column, column, [raw%k])
        r%stop = raw%stop
        r%iterations = raw%iterations
        r%residual = residual
        r%column = column
        r%solver = text_of(raw%solver)
        r%precond = text_of(raw%precond)
        r%reason = text_of(c_stop_string(raw%stop))
        r%seconds = raw%seconds
    end subroutine

    ! lambda(k) and x(n,k): x has a guess, of which zero columns are replaced.
    subroutine solver_pairs(self, lambda, x, r, stat)
        class(spsolve_solver), intent(inout) :: self
        real(c_double), intent(inout), contiguous :: lambda(:), x(:, :)
        type(spsolve_result), intent(out), optional :: r
        integer, intent(out), optional :: stat
        type(sps_eigen_result) :: raw
        type(sps_result) :: same
        type(c_ptr) :: xx
        integer(c_int) :: status
        if (.not. self%eigen .or. size(lambda) /= self%k .or. &
            size(x, 1) /= self%nrow .or. size(x, 2) /= self%k) then
            call refuse("pairs wants a solver of create_eigen, and arrays &
                &lambda(k) and x(n,k)", stat)
            return
        end if
        xx = c_null_ptr
        raw%struct_size = c_sizeof(raw)
        status = filled(self, self%nrow, x, xx)
        if (status == SPS_OK) status = c_solver_eigen(self%p, xx, lambda, raw)
        if (c_associated(xx)) call fetch(self, xx, self%nrow, x, status)
        call c_block_destroy(xx)
        if (present(r) .and. status == SPS_OK) then
            same%stop = raw%stop
            same%k = raw%count
            same%iterations = raw%iterations
            same%residual = raw%residual
            same%column = raw%pair
            same%solver = raw%solver
            same%precond = raw%precond
            same%seconds = raw%seconds
            call describe(same, r)
        end if
        call check(self%ctx, status, stat)
    end subroutine

    ! New values for the pattern with which the matrix was made, as many.
    subroutine solver_set_values(self, val, stat)
        class(spsolve_solver), intent(inout) :: self
        real(c_double), intent(in), contiguous :: val(:)
        integer, intent(out), optional :: stat
        call check(self%ctx, c_set_values(self%op, val, SPS_HOST), stat)
    end subroutine

    subroutine solver_destroy(self)
        class(spsolve_solver), intent(inout) :: self
        call c_solver_destroy(self%p)
        call c_operator_destroy(self%op)
        if (c_associated(self%opt)) call c_options_destroy(self%ctx, self%opt)
        if (associated(self%watcher)) deallocate (self%watcher)
    end subroutine
end module

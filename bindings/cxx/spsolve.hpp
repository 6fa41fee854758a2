// SPDX-License-Identifier: BSD-3-Clause
/**
 * spsolve.hpp - libspsolve for C++11 and later: the functions of spsolve.h by
 * handles that free themselves.
 *
 *     spsolve::context ctx(SPS_HOST);
 *     spsolve::matrix A = spsolve::matrix::read(ctx, "A.mtx");
 *     spsolve::solver s(spsolve::linear_operator(A, k), k,
 *                       spsolve::options(ctx).set("rtol", 1e-10));
 *     spsolve::block B = ..., X(ctx, n, k);
 *     spsolve::result r = s.solve(B, X);
 *
 * - Handles can be moved, not copied.  Each keeps alive what it was made from:
 *   they may be destroyed in any order, the context too.
 * - A call that fails throws spsolve::error with the status and the text of the
 *   library.  Not converging is no failure.
 * - Functions of the caller are std::functions.  What they throw does not pass
 *   through C: it ends the solve, which throws it again.
 * - Arrays are spsolve::span, which is std::span where there is one (C++20),
 *   else a pointer and a size made from anything with data() and size().
 * - A context, with all that was made from it, may be used by one thread at a
 *   time; cancel() from any.
 *
 * c() of an object returns its handle of spsolve.h, for calls that have no
 * function here.
 */
#ifndef SPSOLVE_HPP
#define SPSOLVE_HPP

#include <spsolve.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <locale>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

namespace spsolve {

#ifdef __cpp_lib_span
template <class T> using span = std::span<T>;
#else
template <class T> class span {
  public:
    span() : p_(nullptr), n_(0) {}
    span(T *p, std::size_t n) : p_(p), n_(n) {}
    template <class A, class = decltype(std::declval<A &>().data())>
    span(A &&a) : p_(a.data()), n_(a.size()) {}
    template <std::size_t N> span(T (&a)[N]) : p_(a), n_(N) {}
    T *data() const { return p_; }
    std::size_t size() const { return n_; }
    T &operator[](std::size_t i) const { return p_[i]; }
    T *begin() const { return p_; }
    T *end() const { return p_ + n_; }

  private:
    T *p_;
    std::size_t n_;
};
#endif

/** A call of the library failed. */
class error : public std::runtime_error {
  public:
    error(sps_status status, const std::string &text)
        : std::runtime_error(text), status_(status) {}
    sps_status status() const { return status_; }

  private:
    sps_status status_;
};

namespace detail {

/** The context, and the exception that a function of the caller has thrown. */
struct core {
    sps_context *ctx = nullptr;
    std::exception_ptr thrown;

    core() = default;
    core(const core &) = delete;
    core &operator=(const core &) = delete;
    ~core() { sps_context_destroy(&ctx); }
    void check(sps_status status)
    {
        if (thrown) {
            std::exception_ptr e = nullptr;
            std::swap(e, thrown);
            std::rethrow_exception(e);
        }
        if (status != SPS_OK)
            throw error(status, sps_context_error(ctx));
    }
};
typedef std::shared_ptr<core> core_ptr;

/** A handle T that is destroyed with its last owner; objects made from it are
 *  owners, too. */
template <class T> class handle {
  public:
    handle(handle &&) noexcept = default;
    handle &operator=(handle &&) noexcept = default;
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    T *c() const { return p_.get(); }
    const std::shared_ptr<T> &shared() const { return p_; }
    const core_ptr &owner() const { return core_; }

  protected:
    explicit handle(core_ptr owner) : core_(std::move(owner)) {}
    void own(T *p, void (*destroy)(T **), std::vector<std::shared_ptr<void>>
                                              parents = {})
    {
        parents.push_back(core_);
        p_.reset(p, [destroy, parents](T *q) { destroy(&q); });
    }
    void check(sps_status status) const { core_->check(status); }

    core_ptr core_;
    std::shared_ptr<T> p_;
};

inline void require(bool right, const char *what)
{
    if (!right) throw error(SPS_ESHAPE, what);
}

/** The text of a function that describes an object. */
template <class T>
std::string described(std::size_t (*function)(const T *, char *, std::size_t),
                      const T *object)
{
    std::string text(function(object, nullptr, 0) + 1, '\0');
    text.resize(function(object, &text[0], text.size()));
    return text;
}
}  // namespace detail

/** The context of blocks, matrices and solvers.  Its place is SPS_HOST,
 *  SPS_CUDA, or SPS_AUTO for a GPU if there is one. */
class context {
  public:
    explicit context(sps_place place = SPS_AUTO) { create(place, nullptr); }
    explicit context(const sps_context_options &o) { create(o.place, &o); }
    context(context &&) noexcept = default;
    context &operator=(context &&) noexcept = default;
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    sps_context *c() const { return core_->ctx; }
    const detail::core_ptr &owner() const { return core_; }
    sps_context_info information() const
    {
        sps_context_info info = sps_context_info();
        info.struct_size = sizeof info;
        core_->check(sps_context_information(c(), &info));
        return info;
    }
    std::vector<std::string> notes() const
    {
        std::vector<std::string> all;
        for (int i = 0; const char *note = sps_context_note(c(), i); i++)
            all.push_back(note);
        return all;
    }
    void sync() const { core_->check(sps_context_sync(c())); }
    void cancel(bool stop = true) const { sps_cancel(c(), stop); }

  private:
    void create(sps_place place, const sps_context_options *given)
    {
        sps_context_options o;
        sps_context_options_default(&o);
        o.place = place;
        core_ = std::make_shared<detail::core>();
        const char *why = "";
        sps_status status =
            sps_context_create(given ? given : &o, &core_->ctx, &why);
        if (status != SPS_OK) throw error(status, why);
    }
    detail::core_ptr core_;
};

/** Options, set by name; names and values as in sps_options_parse. */
class options : public detail::handle<sps_options> {
  public:
    explicit options(const context &ctx) : handle(ctx.owner())
    {
        sps_options *p = nullptr;
        check(sps_options_create(core_->ctx, &p));
        detail::core_ptr owner = core_;
        p_.reset(p, [owner](sps_options *q) {
            sps_options_destroy(owner->ctx, &q);
        });
    }
    options &set(const char *name, const std::string &value) &
    {
        check(sps_options_set(core_->ctx, c(), name, value.c_str()));
        return *this;
    }
    options &set(const char *name, const char *value) &
    {
        return set(name, std::string(value));
    }
    options &set(const char *name, bool value) &
    {
        return set(name, std::string(value ? "true" : "false"));
    }
    template <class N> options &set(const char *name, N value) &
    {
        std::ostringstream text;
        text.imbue(std::locale::classic());
        text.precision(17);
        text << value;
        return set(name, text.str());
    }
    template <class V> options &&set(const char *name, V value) &&
    {
        static_cast<options &>(*this).set(name, value);
        return std::move(*this);
    }
    std::string get(const char *name) const
    {
        char text[4096];
        check(sps_options_get(core_->ctx, c(), name, text, sizeof text));
        return text;
    }
    /** Sets an option that is a block: name is "nullspace_basis", "coords",
     *  "constraints" or "near_null_basis".  X is kept alive. */
    template <class B> options &set_block(const char *name, const B &X) &
    {
        check(sps_options_set_block(core_->ctx, c(), name, X.c()));
        kept_.push_back(X.shared());
        return *this;
    }
    /** Sets f as the monitor: f(progress) is called after every iteration and
     *  ends the solve by returning false. */
    options &monitor(std::function<bool(const sps_progress &)> f) &
    {
        std::shared_ptr<watcher> w = std::make_shared<watcher>();
        w->f = std::move(f);
        w->owner = core_.get();
        check(sps_options_set_monitor(core_->ctx, c(), &watcher::call,
                                      w.get()));
        kept_.push_back(w);
        return *this;
    }
    /** Returns the objects that must live as long as a solver with these
     *  options. */
    std::vector<std::shared_ptr<void>> kept() const
    {
        std::vector<std::shared_ptr<void>> all(kept_);
        all.push_back(p_);
        return all;
    }

  private:
    struct watcher {
        std::function<bool(const sps_progress &)> f;
        detail::core *owner;
        static bool call(const sps_progress *p, void *data)
        {
            watcher *w = static_cast<watcher *>(data);
            try {
                return w->f(*p);
            } catch (...) {
                w->owner->thrown = std::current_exception();
                return false;
            }
        }
    };
    std::vector<std::shared_ptr<void>> kept_;
};

/** A sparse matrix by rows, 0-based. */
class matrix : public detail::handle<sps_csr> {
  public:
    /** Makes a matrix from a copy of arrays in host memory; the offsets may be
     *  integers of any type. */
    template <class Offsets>
    static matrix copy(const context &ctx, std::int64_t nrow,
                       std::int64_t ncol, const Offsets &rowptr,
                       span<const std::int32_t> col, span<const double> val)
    {
        std::vector<std::int64_t> wide(std::begin(rowptr), std::end(rowptr));
        return wrap(ctx, nrow, ncol, wide, col, val, SPS_COPY);
    }
    /** Makes a matrix that uses the caller's arrays in host memory, which must
     *  outlive it. */
    static matrix borrow(const context &ctx, std::int64_t nrow,
                         std::int64_t ncol, span<const std::int64_t> rowptr,
                         span<const std::int32_t> col, span<const double> val)
    {
        return wrap(ctx, nrow, ncol, rowptr, col, val, SPS_BORROW);
    }
    static matrix read(const context &ctx, const std::string &path)
    {
        sps_csr *A = nullptr;
        ctx.owner()->check(sps_csr_read(ctx.c(), path.c_str(), nullptr,
                                        nullptr, &A));
        return matrix(ctx.owner(), A);
    }
    /** Makes a matrix that owns A, a csr of this context. */
    static matrix adopt(const context &ctx, sps_csr *A)
    {
        return matrix(ctx.owner(), A);
    }
    void write(const std::string &path, bool symmetric = false) const
    {
        check(sps_csr_write(core_->ctx, path.c_str(), c(), symmetric));
    }
    /** Declares properties that the caller knows: SPS_SYMMETRIC, SPS_SPD. */
    matrix &declare(unsigned props)
    {
        c()->props |= props;
        return *this;
    }
    std::int64_t rows() const { return c()->nrow; }
    std::int64_t columns() const { return c()->ncol; }
    std::int64_t entries() const { return c()->nnz; }

  private:
    matrix(detail::core_ptr owner, sps_csr *A) : handle(std::move(owner))
    {
        detail::core_ptr kept = core_;
        p_.reset(A, [kept](sps_csr *q) { sps_csr_destroy(kept->ctx, &q); });
    }
    static matrix wrap(const context &ctx, std::int64_t nrow,
                       std::int64_t ncol, span<const std::int64_t> rowptr,
                       span<const std::int32_t> col, span<const double> val,
                       sps_own own)
    {
        detail::require(nrow >= 0 && rowptr.size() == std::size_t(nrow) + 1,
                        "rowptr must have nrow + 1 numbers");
        detail::require(col.size() == val.size() &&
                            rowptr[nrow] == std::int64_t(val.size()),
                        "col and val must have rowptr[nrow] numbers");
        sps_csr *A = nullptr;
        ctx.owner()->check(sps_csr_wrap(
            ctx.c(), nrow, ncol, std::int64_t(val.size()),
            const_cast<std::int64_t *>(rowptr.data()),
            const_cast<std::int32_t *>(col.data()),
            const_cast<double *>(val.data()), SPS_F64, SPS_HOST, own, &A));
        return matrix(ctx.owner(), A);
    }
};

/** A block: n x k doubles in the context's place. */
class block : public detail::handle<sps_block> {
  public:
    block(const context &ctx, std::int64_t n, int k) : handle(ctx.owner())
    {
        sps_block *X = nullptr;
        check(sps_block_create(core_->ctx, n, k, &X));
        own(X, sps_block_destroy);
    }
    /** Makes a block from a copy of n x k numbers in host memory, in the given
     *  order: row after row, unless the caller says otherwise. */
    block(const context &ctx, std::int64_t n, int k, span<const double> from,
          sps_order order = SPS_ROW_MAJOR)
        : block(ctx, n, k)
    {
        set(from, order);
    }
    /** Makes a block that uses the caller's memory in the context's place,
     *  row-major with the row stride ld. */
    static block wrap(const context &ctx, std::int64_t n, int k, double *data,
                      std::int64_t ld)
    {
        sps_block *X = nullptr;
        ctx.owner()->check(sps_block_wrap(ctx.c(), n, k, data, ld, &X));
        return block(ctx.owner(), X);
    }
    static block read(const context &ctx, const std::string &path)
    {
        sps_block *X = nullptr;
        ctx.owner()->check(sps_block_read(ctx.c(), path.c_str(), nullptr,
                                          false, &X));
        return block(ctx.owner(), X);
    }
    void write(const std::string &path) const
    {
        check(sps_block_write(c(), path.c_str(), false));
    }
    block &set(span<const double> from, sps_order order = SPS_ROW_MAJOR)
    {
        detail::require(std::int64_t(from.size()) == rows() * columns(),
                        "the array must have as many numbers as the block");
        check(sps_block_set(c(), 0, columns(), from.data(), step(order), order,
                            SPS_HOST));
        return *this;
    }
    std::vector<double> get(sps_order order = SPS_ROW_MAJOR) const
    {
        std::vector<double> all(std::size_t(rows() * columns()));
        check(sps_block_get(c(), 0, columns(), all.data(), step(order), order,
                            SPS_HOST));
        return all;
    }
    block &random(std::uint64_t seed)
    {
        check(sps_block_random(c(), seed));
        return *this;
    }
    /** Returns row i in the block's memory; for a block on a GPU that is device
     *  memory. */
    span<double> row(std::int64_t i) const
    {
        std::int64_t ld = 0;
        double *first = sps_block_data(c(), &ld);
        return span<double>(first + i * ld, std::size_t(columns()));
    }
    std::int64_t rows() const
    {
        std::int64_t n = 0;
        sps_block_shape(c(), &n, nullptr);
        return n;
    }
    int columns() const
    {
        int k = 0;
        sps_block_shape(c(), nullptr, &k);
        return k;
    }

  private:
    block(detail::core_ptr owner, sps_block *X) : handle(std::move(owner))
    {
        own(X, sps_block_destroy);
    }
    std::int64_t step(sps_order order) const
    {
        return order == SPS_ROW_MAJOR ? std::int64_t(columns()) : rows();
    }
};

/** Arguments of a function that is an operator: y = alpha A x + beta y, or of
 *  one that is a preconditioner, y = M x; see sps_apply_fn. */
struct product {
    double alpha;
    const double *x;
    std::int64_t ldx;
    double beta;
    double *y;
    std::int64_t ldy, n;
    int k;
    void *stream;

    span<const double> row_of_x(std::int64_t i) const
    {
        return span<const double>(x + i * ldx, std::size_t(k));
    }
    span<double> row_of_y(std::int64_t i) const
    {
        return span<double>(y + i * ldy, std::size_t(k));
    }
};
typedef std::function<void(const product &)> product_function;

namespace detail {
struct called {
    product_function f;
    core *owner;
    static int call(double alpha, const double *x, std::int64_t ldx,
                    double beta, double *y, std::int64_t ldy, std::int64_t n,
                    int k, void *stream, void *data)
    {
        called *me = static_cast<called *>(data);
        try {
            me->f(product{ alpha, x, ldx, beta, y, ldy, n, k, stream });
            return 0;
        } catch (...) {
            me->owner->thrown = std::current_exception();
            return 1;
        }
    }
    static std::shared_ptr<called> make(core_ptr owner, product_function f)
    {
        std::shared_ptr<called> c = std::make_shared<called>();
        c->f = std::move(f);
        c->owner = owner.get();
        return c;
    }
};
}  // namespace detail

class linear_operator : public detail::handle<sps_operator> {
  public:
    /** Makes the operator of A, planned for blocks of `width` columns. */
    linear_operator(const matrix &A, int width) : handle(A.owner())
    {
        create(A, width, nullptr, {});
    }
    linear_operator(const matrix &A, int width, const options &o)
        : handle(A.owner())
    {
        create(A, width, o.c(), o.kept());
    }
    /** Makes an n x n operator from a function f; props: SPS_SYMMETRIC and
     *  SPS_SPD if the operator has these properties, else 0. */
    linear_operator(const context &ctx, std::int64_t n, product_function f,
                    unsigned props = 0)
        : handle(ctx.owner())
    {
        auto calls = detail::called::make(core_, std::move(f));
        sps_operator *op = nullptr;
        check(sps_operator_user(core_->ctx, n, &detail::called::call,
                                calls.get(), props, &op));
        own(op, sps_operator_destroy, { calls });
    }
    void apply(double alpha, const block &X, double beta, block &Y) const
    {
        check(sps_operator_apply(c(), alpha, X.c(), beta, Y.c()));
    }
    /** Replaces the values of the matrix; the pattern stays.  values: host
     *  memory, in the order of the entries. */
    void set_values(span<const double> values)
    {
        detail::require(values.size() == entries_,
                        "there must be as many values as entries");
        check(sps_operator_set_values(c(), values.data(), SPS_HOST));
    }
    std::string kernel() const { return sps_operator_kernel(c()); }

  private:
    void create(const matrix &A, int width, const sps_options *o,
                std::vector<std::shared_ptr<void>> parents)
    {
        sps_operator *op = nullptr;
        check(sps_operator_csr(core_->ctx, A.c(), width, o, &op));
        parents.push_back(A.shared());
        own(op, sps_operator_destroy, std::move(parents));
        entries_ = std::size_t(A.entries());
    }
    std::size_t entries_ = 0;
};

class preconditioner : public detail::handle<sps_precond> {
  public:
    preconditioner(const linear_operator &A, int width, const options &o)
        : handle(A.owner())
    {
        std::vector<std::shared_ptr<void>> parents = o.kept();
        parents.push_back(A.shared());
        sps_precond *M = nullptr;
        check(sps_precond_create(A.c(), width, o.c(), &M));
        own(M, sps_precond_destroy, std::move(parents));
    }
    preconditioner(const context &ctx, std::int64_t n, product_function f)
        : handle(ctx.owner())
    {
        auto calls = detail::called::make(core_, std::move(f));
        sps_precond *M = nullptr;
        check(sps_precond_user(core_->ctx, n, &detail::called::call,
                               calls.get(), &M));
        own(M, sps_precond_destroy, { calls });
    }
    void update() { check(sps_precond_update(c())); }
    void apply(const block &R, block &Z) const
    {
        check(sps_precond_apply(c(), R.c(), Z.c()));
    }
    std::string name() const { return sps_precond_name(c()); }
    /** What was built: the levels of amg, else the name. */
    std::string describe() const
    {
        return detail::described(sps_precond_describe, c());
    }
};

/** The result of a solve: a copy of sps_result. */
struct result {
    sps_stop stop = SPS_STOP_RUNNING;
    int iterations = 0;
    std::vector<double> residuals, backward_errors;   ///< one a column
    std::vector<sps_stop> columns;
    std::string solver, precond, kernel;
    sps_seconds seconds = sps_seconds();

    bool converged() const { return stop > 0; }
    std::string reason() const { return sps_stop_string(stop); }
};

/** The result of an eigensolver: a copy of sps_eigen_result; lambda is in the
 *  order of option `which`. */
struct eigen_result {
    sps_stop stop = SPS_STOP_RUNNING;
    int iterations = 0;
    double orthogonality = 0;
    std::vector<double> lambda, residuals, bounds;
    std::vector<sps_stop> pairs;
    std::string solver, precond, kernel;
    sps_seconds seconds = sps_seconds();

    bool converged() const { return stop > 0; }
    std::string reason() const { return sps_stop_string(stop); }
};

/** A solver of A X = B for k right-hand sides. */
class solver : public detail::handle<sps_solver> {
  public:
    solver(const linear_operator &A, int k) : handle(A.owner())
    {
        create(A, nullptr, k, nullptr, {});
    }
    solver(const linear_operator &A, int k, const options &o)
        : handle(A.owner())
    {
        create(A, nullptr, k, o.c(), o.kept());
    }
    solver(const linear_operator &A, const preconditioner &M, int k,
           const options &o)
        : handle(A.owner())
    {
        std::vector<std::shared_ptr<void>> parents = o.kept();
        parents.push_back(M.shared());
        create(A, M.c(), k, o.c(), std::move(parents));
    }
    /** Solves A X = B.  X contains the guess, and receives the best
     *  iterates. */
    result solve(const block &B, block &X)
    {
        sps_result r = sps_result();
        r.struct_size = sizeof r;
        check(sps_solver_linear(c(), B.c(), X.c(), &r));
        result out;
        out.stop = r.stop;
        out.iterations = r.iterations;
        out.residuals.assign(r.residual, r.residual + r.k);
        out.backward_errors.assign(r.backward, r.backward + r.k);
        out.columns.assign(r.column, r.column + r.k);
        out.solver = r.solver;
        out.precond = r.precond;
        out.kernel = r.kernel;
        out.seconds = r.seconds;
        return out;
    }

    /** The preconditioner in use: of amg the levels, else the name. */
    std::string describe() const
    {
        return detail::described(sps_solver_describe, c());
    }

  private:
    void create(const linear_operator &A, sps_precond *M, int k,
                const sps_options *o,
                std::vector<std::shared_ptr<void>> parents)
    {
        sps_solver *s = nullptr;
        check(sps_solver_create(A.c(), M, k, o, &s));
        parents.push_back(A.shared());
        own(s, sps_solver_destroy, std::move(parents));
    }
};

/** A solver of A x = lambda x, or A x = lambda M x. */
class eigensolver : public detail::handle<sps_solver> {
  public:
    eigensolver(const linear_operator &A, int count, const options &o)
        : handle(A.owner())
    {
        create(A, nullptr, nullptr, count, o, {});
    }
    eigensolver(const linear_operator &A, const linear_operator &M, int count,
                const options &o)
        : handle(A.owner())
    {
        create(A, M.c(), nullptr, count, o, { M.shared() });
    }
    /** T is a preconditioner, which approximates the inverse of A. */
    eigensolver(const linear_operator &A, const preconditioner &T, int count,
                const options &o)
        : handle(A.owner())
    {
        create(A, nullptr, T.c(), count, o, { T.shared() });
    }
    /** Computes eigenpairs.  X (n x count) contains the guess, and receives the
     *  eigenvectors. */
    eigen_result solve(block &X)
    {
        sps_eigen_result r = sps_eigen_result();
        r.struct_size = sizeof r;
        check(sps_solver_eigen(c(), X.c(), nullptr, &r));
        eigen_result out;
        out.stop = r.stop;
        out.iterations = r.iterations;
        out.orthogonality = r.orthogonality;
        out.lambda.assign(r.lambda, r.lambda + r.count);
        out.residuals.assign(r.residual, r.residual + r.count);
        out.bounds.assign(r.bound, r.bound + r.count);
        out.pairs.assign(r.pair, r.pair + r.count);
        out.solver = r.solver;
        out.precond = r.precond;
        out.kernel = r.kernel;
        out.seconds = r.seconds;
        return out;
    }

  private:
    void create(const linear_operator &A, const sps_operator *M,
                sps_precond *T, int count, const options &o,
                std::vector<std::shared_ptr<void>> parents)
    {
        for (const std::shared_ptr<void> &kept : o.kept())
            parents.push_back(kept);
        parents.push_back(A.shared());
        sps_solver *s = nullptr;
        check(sps_solver_create_eigen(A.c(), M, T, count, o.c(), &s));
        own(s, sps_solver_destroy, std::move(parents));
    }
};

}  // namespace spsolve
#endif

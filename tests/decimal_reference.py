"""The sparse evidence in sixty digits, to judge derivatives where double precision has lost most of its own."""

from decimal import Decimal, localcontext

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def evidence(X, y, Z, lengthscale, variance, noise, jitter, kind):
    """Log evidence of FITC or VFE with a squared exponential; Z may hold Decimals."""
    with localcontext() as context:
        context.prec = 60
        X, Z = ([[Decimal(v) for v in row] for row in rows] for rows in (X, Z))
        y, scale = [Decimal(v) for v in y], [Decimal(v) for v in lengthscale]
        variance, noise = Decimal(variance), Decimal(noise)

        def k(a, b):
            r2 = sum(((p - q) / s) ** 2 for p, q, s in zip(a, b, scale, strict=True))
            return variance * (-r2 / 2).exp()

        K_uu = [[k(a, b) for b in Z] for a in Z]
        for i in range(len(Z)):
            K_uu[i][i] += Decimal(jitter) * variance
        L = _cholesky(K_uu)
        V = [_solve(L, [k(z, x) for z in Z]) for x in X]
        left = [variance - _dot(v, v) for v in V]
        A = [[_dot(a, b) for b in V] for a in V]
        for i, r in enumerate(left):
            A[i][i] += noise + (r if kind == "FITC" else 0)
        C = _cholesky(A)
        white = _solve(C, y)
        value = -_dot(white, white) / 2 - sum(C[i][i].ln() for i in range(len(y))) - len(y) * (2 * PI).ln() / 2
        return value - (sum(left) / (2 * noise) if kind == "VFE" else 0)


def gradient(X, y, Z, *rest):
    """Its derivative in each inducing input, by differences that are exact to thirty digits."""
    step = Decimal("1e-18")
    rows = [[Decimal(v) for v in row] for row in Z]

    def moved(i, d, by):
        copy = [list(row) for row in rows]
        copy[i][d] += by
        return evidence(X, y, copy, *rest)

    with localcontext() as context:
        context.prec = 60
        return [
            [float((moved(i, d, step) - moved(i, d, -step)) / (2 * step)) for d in range(len(row))]
            for i, row in enumerate(rows)
        ]


def _dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


def _solve(L, b):
    x = []
    for i, row in enumerate(L):
        x.append((b[i] - _dot(row[:i], x)) / row[i])
    return x


def _cholesky(A):
    L = [[Decimal(0)] * len(A) for _ in A]
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i][j] - _dot(L[i][:j], L[j][:j])
            L[i][j] = rest.sqrt() if i == j else rest / L[j][j]
    return L

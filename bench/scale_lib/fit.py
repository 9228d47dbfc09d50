# SPDX-License-Identifier: Apache-2.0
"""Least squares: how a quantity depends on a few others. Pure functions."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fit:
    coefficients: list[float]
    residual_max: float  # |measured - fitted|
    residual_share: float  # of the largest measured value


def least_squares(rows: list[list[float]], values: list[float]) -> Fit | None:
    """`values` as sums of the columns of `rows`; None where the rows do not tell the columns apart."""
    if len(rows) < len(rows[0]) if rows else True:
        return None
    columns = range(len(rows[0]))
    # Columns of one size keep the equations well-conditioned: nodes squared stand beside ones.
    sizes = [max(abs(row[column]) for row in rows) or 1.0 for column in columns]
    scaled = [[row[column] / sizes[column] for column in columns] for row in rows]
    matrix = [[sum(row[i] * row[j] for row in scaled) for j in columns] for i in columns]
    right = [sum(row[i] * y for row, y in zip(scaled, values, strict=True)) for i in columns]
    solution = _solve(matrix, right)
    if solution is None:
        return None
    coefficients = [x / size for x, size in zip(solution, sizes, strict=True)]
    residuals = [
        abs(value - sum(c * x for c, x in zip(coefficients, row, strict=True)))
        for row, value in zip(rows, values, strict=True)
    ]
    largest = max(abs(value) for value in values)
    worst = max(residuals)
    return Fit(coefficients, worst, worst / largest if largest else 0.0)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss with pivots; None for a singular matrix."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    singular = 1e-9 * max(abs(value) for row in matrix for value in row)
    for column in range(size):
        pivot = max(range(column, size), key=lambda at: abs(rows[at][column]))
        if abs(rows[pivot][column]) <= singular:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for at in range(size):
            if at != column:
                factor = rows[at][column] / rows[column][column]
                rows[at] = [a - factor * b for a, b in zip(rows[at], rows[column], strict=True)]
    return [rows[at][size] / rows[at][at] for at in range(size)]

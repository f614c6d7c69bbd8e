"""Sparse matrices in files."""

from __future__ import annotations

from scipy.sparse import csr_array

from deccs.storage.values import Fields, register


def take_csr(matrix: csr_array) -> Fields:
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": matrix.shape,
    }


def make_csr(fields: Fields) -> csr_array:
    matrix = csr_array((fields["data"], fields["indices"], fields["indptr"]), shape=fields["shape"])
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix


register(csr_array, take_csr, make_csr)

"""Rows in one table, in batches or in a Dask collection give the same sums."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent._tables.blocks import (
    LocalBlocks,
    add_present,
    is_blockwise,
    read_blocks,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from sklearn_latent._tables.dask_blocks import DaskBlocks  # noqa: E402


# Functions travel to the blocks, so they are those of a module.
def square(block):
    return block**2


def scaled(block, factor):
    return factor * block


def shifted(block, factor, own):
    return factor * block + own


def only_even(block):
    return block if block % 2 == 0 else None


def as_list(block):
    return [block]


def moments(part):
    rows, weights = part
    weights = np.ones(len(rows)) if weights is None else weights
    return np.array([weights.sum(), *(weights @ rows), *(weights @ rows**2)])


def as_part(part):
    return part


def n_rows(part):
    return len(part[0])


def checked(rows):
    return np.asarray(rows, dtype=float)


def local(parts):
    return LocalBlocks(list(parts))


def streamed(parts):
    return LocalBlocks(iter(list(parts)))


def threaded(parts):
    return LocalBlocks(list(parts), n_jobs=2)


def remote(parts):
    return DaskBlocks(dask.delayed(part) for part in parts)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


ENGINES = pytest.mark.parametrize("blocks", [local, streamed, threaded, remote])
NUMBERS = st.lists(st.integers(-100, 100), max_size=12)


class TestBlocks:
    @ENGINES
    @settings(deadline=None, max_examples=30)
    @given(numbers=NUMBERS, factor=st.integers(-3, 3))
    def test_an_engine_is_a_list(self, blocks, numbers, factor):
        """Joining lists is associative but not commutative; None is no block."""
        squares, even = [x**2 for x in numbers], [x for x in numbers if x % 2 == 0]
        assert blocks(numbers).sum(square) == (sum(squares) if numbers else None)
        assert (blocks(numbers).sum(as_list) or []) == numbers
        assert blocks(numbers).gather(scaled, factor) == [factor * x for x in numbers]
        mapped = blocks(numbers).map(square)
        assert mapped.gather(square) == mapped.gather(square) == [x**2 for x in squares]
        assert blocks(numbers).map(only_even).gather(as_list) == [[x] for x in even]
        assert blocks(numbers).sum(only_even) == (sum(even) if even else None)

    @ENGINES
    def test_one_argument_per_block(self, blocks):
        gathered = blocks([1, 2, 3]).gather(shifted, 10, each=[5, 6, 7])
        assert gathered == [15, 26, 37]
        for each in ([1, 2], [1, 2, 3, 4]):
            with pytest.raises(ValueError, match="zip"):
                blocks([1, 2, 3]).gather(shifted, 10, each=each)

    @ENGINES
    def test_errors_come_through(self, blocks):
        with pytest.raises(TypeError):
            blocks([1, "a"]).sum(square)

    def test_a_stream_is_read_one_block_at_a_time(self):
        alive = []

        def stream():
            for number in range(50):
                alive.append(number)
                yield number

        def last(block):
            # Only a few blocks wait for their turn.
            assert len(alive) <= block + 5
            return block

        assert LocalBlocks(stream()).sum(last) == sum(range(50))

    def test_a_lost_part_is_skipped(self):
        """A block that turns out to have no rows is None on the worker."""
        blocks = DaskBlocks([dask.delayed(2), dask.delayed(None), dask.delayed(3)])
        assert blocks.sum(square) == 13
        assert blocks.map(square).gather(as_list) == [[4], [9]]


@given(st.lists(st.none() | st.integers()))
def test_add_present(parts):
    present = [part for part in parts if part is not None]
    assert add_present(parts) == (sum(present) if present else None)


def cuts(n_rows):
    return st.lists(st.integers(0, n_rows), max_size=4).map(sorted)


X = np.random.default_rng(0).integers(-8, 8, size=(20, 3)).astype(float)
WEIGHTS = np.random.default_rng(1).integers(0, 4, size=20).astype(float)


class TestRows:
    @settings(deadline=None, max_examples=40)
    @given(cuts(20), st.sampled_from([None, "array", "lazy"]))
    def test_any_split_has_the_sum_of_the_whole(self, places, kind):
        weights = None if kind is None else WEIGHTS
        table = read_blocks(X, weights, checked, checked)
        assert table.gather(n_rows) == table.gather(n_rows) == [20]
        whole = table.sum(moments)
        counts = np.ones(20, int) if kind is None else WEIGHTS.astype(int)
        np.testing.assert_array_equal(moments((np.repeat(X, counts, 0), None)), whole)
        parts = np.split(X, places)
        collection = da.from_array(X, chunks=(tuple(map(len, parts)), 2))
        given = da.from_array(WEIGHTS, chunks=7) if kind == "lazy" else weights
        remote = read_blocks(collection, given, checked, checked)
        np.testing.assert_array_equal(remote.sum(moments), whole)
        if kind is None:
            batches = iter([part for part in parts if len(part)])
            stream = read_blocks(batches, None, checked, checked)
            np.testing.assert_array_equal(stream.sum(moments), whole)

    @settings(deadline=None, max_examples=25)
    @given(cuts(20), st.booleans(), st.booleans())
    def test_cuts_of_a_table_are_blocks(self, places, weighted, streamed):
        weights = WEIGHTS if weighted and not streamed else None
        table = iter([X]) if streamed else X

        def cut(rows):
            edges = [0, *places, len(rows)]
            return [slice(*pair) for pair in pairwise(edges)]

        blocks = read_blocks(table, weights, checked, checked, cut=cut)
        sizes = blocks.map(as_part).gather(n_rows)
        assert sizes == [len(part) for part in np.split(X, places)]
        table = iter([X]) if streamed else X
        blocks = read_blocks(table, weights, checked, checked, cut=cut)
        np.testing.assert_array_equal(blocks.sum(moments), moments((X, weights)))

    def test_the_first_batch_is_checked_at_once(self):
        seen = []
        read_blocks(iter([X, X]), None, lambda batch: seen.append(batch), checked)
        assert len(seen) == 1

    def test_data_frame(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abc"))
        seen = []

        def check(table):
            seen.append(list(table.columns))
            return checked(table)

        remote = read_blocks(dd.from_pandas(frame, 3), None, check, checked)
        np.testing.assert_array_equal(remote.sum(moments), moments((X, None)))
        assert seen == [["a", "b", "c"]]

    def test_a_block_without_weight_is_not_read(self):
        def refuse_negative(rows):
            if (rows < 0).any():
                raise AssertionError("rows of no weight were read")
            return rows

        table = np.array([[1.0], [2.0], [-1.0], [-1.0]])
        collection = da.from_array(table, chunks=(2, 1))
        remote = read_blocks(collection, [1, 1, 0, 0], checked, refuse_negative)
        np.testing.assert_array_equal(remote.sum(moments), [2.0, 3.0, 5.0])

    def test_tables_are_checked_by_their_own_function(self):
        def refuse(rows):
            raise ValueError("checked")

        for table in (X, iter([X]), da.from_array(X)):
            with pytest.raises(ValueError, match="checked"):
                read_blocks(table, None, refuse, checked).sum(moments)
        with pytest.raises(ValueError, match="checked"):
            read_blocks(da.from_array(X), None, checked, refuse).sum(moments)
        # Rows in this process are checked with the estimator at hand, and once.
        read_blocks(X, None, checked, refuse).sum(moments)

    def test_is_blockwise(self):
        assert is_blockwise(iter([X]))
        assert is_blockwise(row for row in X)
        assert is_blockwise(da.from_array(X))
        assert not is_blockwise(X)
        assert not is_blockwise([X.tolist()])

    @pytest.mark.parametrize(
        ("table", "weights", "argument"),
        [
            (lambda: iter([]), None, "X must hold at least one batch of rows"),
            (lambda: iter([X]), WEIGHTS, "sample_weight must be None when X is an"),
            (lambda: da.zeros(5), None, "X must be a Dask array of two dimensions"),
            (lambda: da.zeros((5, 2, 2)), None, "X must be a Dask array of two dim"),
            (lambda: dask.delayed(X), None, "X must be a Dask array of two dimens"),
            (lambda: unknown_rows(), WEIGHTS, "sample_weight must be None when the nu"),
            (lambda: unknown_columns(), None, "X must have a known number of columns"),
            (lambda: frame(), WEIGHTS, "sample_weight must be None when X is a Dask"),
            (lambda: da.from_array(X), WEIGHTS[:3], r"sample_weight .* shape \(20,\)"),
            (lambda: da.from_array(X), -WEIGHTS, "sample_weight must be non-negative"),
            (lambda: X, WEIGHTS[:3], r"sample_weight must .* shape \(20,\)"),
        ],
    )
    def test_errors_name_the_argument(self, table, weights, argument):
        with pytest.raises(ValueError, match=argument):
            read_blocks(table(), weights, checked, checked)


def unknown_rows():
    table = da.from_array(X, chunks=(5, -1))
    return table[table[:, 0] > 0]


def unknown_columns():
    table = da.from_array(X)
    return table[:, table[0] > 0]


def frame():
    pd = pytest.importorskip("pandas")
    return dd.from_pandas(pd.DataFrame(X), 2)

"""Models survive JSON and skops; damaged or hostile files are refused."""

import copy
import json
import pickle
import time
import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._core.persistence import (
    Array,
    Arrays,
    Choice,
    Names,
    Persistent,
)
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.mixed import (
    SEMDBN,
    CategoricalRepeat,
    LatentDBN,
    Ordinal,
    OrdinalMemory,
    TemporalGraph,
)

NETWORK = NoisyOrNetwork(
    [0.3, 0.2], [[0.2, 0.3, 0.4, 1.0], [1.0, 0.1, 0.5, 0.6]], [0.01, 0.0, 0.1, 1.0]
)
THIRDS = np.array([[0.2, 0.3, 0.5]] * 2)
STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 5), dtype=bool))


class Bomb:
    """Goes off when somebody does more than look at its type."""

    def _boom(self, *args):
        raise AssertionError("code of the data was run")

    __float__ = __int__ = __index__ = __array__ = __iter__ = __len__ = _boom
    __eq__ = __lt__ = __hash__ = __str__ = __repr__ = __bool__ = _boom


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("ab", max_size=3)
    | st.builds(Bomb),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)

# Where to damage a model, with what, and what the error must say.
REFUSED = [
    ((), [], "data must be a dictionary"),
    (("format",), "pickle", "format must be 'sklearn_latent'"),
    (("version",), 1, "version must be 2, got 1; an older sklearn_latent may"),
    (("version",), 3, "version must be 2, got 3; a newer sklearn_latent may"),
    (("version",), True, "version must be 2, got True"),
    (("version",), "2", "version must be 2, got '2'"),
    (("version",), 10**5000, "a huge integer"),
    (("type",), "GaussianNetwork", "type must be 'NoisyOrNetwork'"),
    (("fields",), {}, "fields must have failure, leak, prior"),
    (("fields", "code"), "import os", "got also 'code'"),
    (("fields", "prior"), [0.3, 0.2], "prior must be a dictionary"),
    (("fields", "prior", "shape"), [2, 1], "prior must have 1 dimension"),
    (("fields", "prior", "shape"), [10**12], "list of sizes"),
    (("fields", "prior", "shape"), [-2], "list of sizes"),
    (("fields", "prior", "shape"), [3], "flat list of 3 values"),
    (("fields", "prior", "values"), ["a", 0.1], "got \\['str'\\]"),
    (("fields", "prior", "values"), [True, 0.1], "got \\['bool'\\]"),
    (("fields", "prior", "values"), [None, 0.1], "got \\['NoneType'\\]"),
    (("fields", "prior", "values"), [[0.1], 0.1], "got \\['list'\\]"),
    (("fields", "prior", "values"), [0.1, float("nan")], "must be finite"),
    (("fields", "prior", "values"), [0.1, float("inf")], "must be finite"),
    (("fields", "prior", "values"), [0.1, 10**400], "does not fit"),
    (("fields", "prior", "values"), [0.1, 1.5], "prior must hold probabilities"),
    (("fields", "prior", "values"), [Bomb(), 0.1], "got \\['Bomb'\\]"),
    (("fields", "prior"), Bomb(), "an object of type Bomb"),
]


def check_outcome(read):
    """A short error, or a model that works."""
    try:
        model = read()
    except ValueError as error:
        assert len(str(error)) < 500
        return
    json.dumps(model.to_dict(), allow_nan=False)
    if isinstance(model, NoisyOrNetwork):
        likelihood = model.log_likelihood(np.zeros((1, 4)))
        assert np.isfinite(likelihood) or (model.leak == 1).any()


class TestDictionaries:
    @settings(deadline=None)
    @given(networks())
    def test_round_trip_to_the_last_bit(self, network):
        text = json.dumps(network.to_dict(), allow_nan=False)
        assert NoisyOrNetwork.from_dict(json.loads(text)) == network
        assert NoisyOrNetwork.from_json(network.to_json()) == network
        assert NoisyOrNetwork.from_json(network.to_json().encode()) == network

    def test_no_latents(self):
        empty = NoisyOrNetwork([], np.ones((0, 3)), [0.1, 0.2, 0.3])
        assert NoisyOrNetwork.from_json(empty.to_json()) == empty

    def test_pickle_goes_through_the_constructor(self):
        again = pickle.loads(pickle.dumps(NETWORK))
        assert again == NETWORK
        assert not again.prior.flags.writeable
        state = NETWORK.__getstate__() | {"prior": np.array([0.3, 7.0])}
        with pytest.raises(ValueError, match="prior must hold probabilities"):
            NoisyOrNetwork.__new__(NoisyOrNetwork).__setstate__(state)

    @pytest.mark.parametrize("number", range(len(REFUSED)))
    def test_refused(self, number):
        path, value, message = REFUSED[number]
        data = NETWORK.to_dict()
        if not path:
            data = value
        else:
            place = data
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
        with pytest.raises(ValueError, match=message):
            NoisyOrNetwork.from_dict(data)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "nul",
            "[" * 100_000,
            '{"a":' * 100_000,
            "NaN",
            "1" * 10_000,
            b"\xff",
        ],
        ids=str,
    )
    def test_text_that_is_no_model(self, text):
        with pytest.raises(ValueError, match=r"must be"):
            NoisyOrNetwork.from_json(text)

    def test_a_changed_digit_is_noticed(self):
        text = NETWORK.to_json()
        assert NoisyOrNetwork.from_json(text) == NETWORK
        changed = text.replace("0.3", "0.4", 1)
        assert changed != text
        with pytest.raises(ValueError, match="checksum"):
            NoisyOrNetwork.from_json(changed)

    def test_blanks_and_the_order_of_keys_do_not_matter(self):
        data = json.loads(NETWORK.to_json())
        text = json.dumps(dict(reversed(data.items())), indent=2)
        assert NoisyOrNetwork.from_json(text) == NETWORK

    def test_a_key_that_comes_twice(self):
        text = NETWORK.to_json().replace('{"format"', '{"format": 1, "format"', 1)
        with pytest.raises(ValueError, match="'format' comes twice"):
            NoisyOrNetwork.from_json(text)

    def test_a_shape_without_end(self):
        data = NETWORK.to_dict()
        data["fields"]["prior"]["shape"] = [2**30] * 200_000
        with pytest.raises(ValueError, match="list of sizes"):
            NoisyOrNetwork.from_dict(data)

    def test_text_must_be_text(self):
        with pytest.raises(TypeError, match="text must be a string"):
            NoisyOrNetwork.from_json(NETWORK.to_dict())

    @settings(deadline=None, max_examples=150)
    @given(st.integers(0, 10_000), st.integers(0, 255), st.booleans())
    def test_damaged_bytes(self, where, byte, cut):
        text = bytearray(NETWORK.to_json().encode())
        if cut:
            text = text[: where % len(text)]
        else:
            text[where % len(text)] = byte
        check_outcome(lambda: NoisyOrNetwork.from_json(bytes(text)))


class TestOtherFamilies:
    @staticmethod
    def models():
        graph = TemporalGraph([[1, 1, 0], [0, 0, 1]], [[0, 1], [0, 0]], np.eye(2))
        half = np.full(2, 0.5)
        return [
            GaussianNetwork([[0, 1], [0, 0]], [[0, 2.5], [0, 0]], [1, 0], [1, 0.1]),
            GaussianNetwork(
                [[0, 1], [0, 0]],
                [[0, 2.5], [0, 0]],
                [1, 0],
                [1, 0.1],
                link="sigmoid",
                link_parameters=np.ones((2, 3)),
                n_latents=1,
                node_names=["a", "b"],
            ),
            graph,
            LatentDBN(
                graph,
                [2, 2],
                [half, np.full((2, 2), 0.5)],
                [np.full((2, 2), 0.5), np.full((2, 2, 2), 0.5)],
                [np.full((2, 3), 1 / 3)] * 3,
            ),
        ]

    def test_round_trip(self):
        for model in self.models():
            plain = model.to_dict()
            again = type(model).from_json(json.dumps(plain, allow_nan=False))
            assert again.to_dict() == plain
            assert pickle.loads(pickle.dumps(model)).to_dict() == plain
            assert type(model).from_json(model.to_json()) == model
            assert hash(again) == hash(model)

    def test_equal_to_itself_alone(self):
        models = [*self.models(), NETWORK]
        copies = [*self.models(), NoisyOrNetwork.from_json(NETWORK.to_json())]
        for i, one in enumerate(models):
            for j, two in enumerate(copies):
                assert (one == two) is (i == j)
                assert (one != two) is (i != j)
        assert len({*models, *copies}) == len(models)

    def test_any_field_makes_a_difference(self):
        for model, (name, value) in (
            (self.models()[0], ("weights", [[0, 2.5 + 1e-15], [0, 0]])),
            (self.models()[1], ("node_names", ["a", "c"])),
            (self.models()[1], ("n_latents", 0)),
            (self.models()[2], ("inter", np.zeros((2, 2)))),
            (self.models()[3], ("emission", [np.full((2, 3), 1 / 3)] * 2 + [THIRDS])),
        ):
            changed = type(model)(**model.__getstate__() | {name: value})
            assert changed != model

    @settings(deadline=None, max_examples=250)
    @given(st.data())
    def test_damage_anywhere(self, data):
        """Replace any part by anything: an error, or a valid model."""
        model = data.draw(st.sampled_from([*self.models(), NETWORK, NETWORK]))
        damaged = place = copy.deepcopy(model.to_dict())
        while True:
            items = place if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(sorted(items)))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
                place = inner
                continue
            place[key] = data.draw(ANYTHING)
            break
        check_outcome(lambda: type(model).from_dict(damaged))


class TestLimits:
    """What a small file may ask for is up to the reader."""

    @staticmethod
    def read(kind, **fields):
        head = {"format": "sklearn_latent", "version": 2, "type": kind.__name__}
        return kind.from_json(json.dumps(head | {"fields": fields}))

    @staticmethod
    def chains(n):
        """Binary latents that all depend on each other, so far as inference goes."""
        half = np.full(2, 0.5)
        inter = np.eye(n, dtype=bool) | np.eye(n, k=1, dtype=bool)
        later = [np.full((2,) * int(own.sum()) + (2,), 0.5) for own in inter.T]
        graph = TemporalGraph(np.eye(n), np.zeros((n, n)), inter)
        tables = [half] * n, later, [np.array([[0.9, 0.1], [0.1, 0.9]])] * n
        return LatentDBN(graph, [2] * n, *tables)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_joint_states(self):
        network = self.chains(16)
        codes = np.zeros((2, 2, 16), dtype=int)
        tracemalloc.start()
        with pytest.warns(ApproximateInferenceWarning, match="65,536 joint states"):
            network.log_likelihood(codes)
        data = network.to_dict()
        data["fields"]["max_joint_states"] = 2**36
        with pytest.raises(ValueError, match=r"max_joint_states must be .* to 4096"):
            LatentDBN.from_dict(data)
        assert tracemalloc.get_traced_memory()[1] < 2**26
        tracemalloc.stop()

    def test_states_of_one_latent(self):
        with pytest.raises(ValueError, match="cardinality must be at most 4096"):
            graph = TemporalGraph([[1]], [[0]], [[0]])
            flat = [np.full(5000, 1 / 5000)]
            LatentDBN(graph, [5000], flat, flat, [np.full((5000, 2), 0.5)])

    @pytest.mark.parametrize("kind", [Ordinal, OrdinalMemory, CategoricalRepeat])
    def test_tables_of_emissions(self, kind):
        n, one = 20_000, {"shape": [1], "values": [0.0]}
        rising = {"shape": [n - 1], "values": list(range(n - 1))}
        flat = {"shape": [n], "values": [0.5] * n}
        fields = {
            Ordinal: {"thresholds": rising, "location": flat},
            OrdinalMemory: {"thresholds": rising, "location": one, "shift": flat}
            | {"after_thresholds": rising, "after_location": one},
            CategoricalRepeat: {
                "table": {"shape": [1, n], "values": [1 / n] * n},
                "repeat": flat,
            },
        }
        with pytest.raises(ValueError, match=r"at most 67,108,864 prob.* merge rare"):
            self.read(kind, **fields[kind])

    def test_sizes_without_values(self):
        none, empty = {"shape": [0], "values": []}, {"shape": [0, 0], "values": []}
        for most, message in ((2**31 - 1, "list of sizes"), (2**23, "emission must")):
            graph = {"shape": [0, most], "values": []}
            head = {"format": "sklearn_latent", "version": 2, "type": "TemporalGraph"}
            fields = {"structure": graph, "intra": empty, "inter": empty}
            with pytest.raises(ValueError, match=message):
                self.read(
                    LatentDBN,
                    graph=head | {"fields": fields},
                    cardinality=none,
                    start=[],
                    transition=[],
                    emission=[],
                    max_joint_states=500,
                )

    def test_repeated_keys_take_linear_time(self):
        keys = ",".join(f'"k{i}": 1' for i in range(100_000))
        start = time.process_time()
        with pytest.raises(ValueError, match="'k99999' comes twice"):
            NoisyOrNetwork.from_json(f'{{{keys}, "k99999": 2}}')
        assert time.process_time() - start < 5.0  # in quadratic time a minute


class TestNames:
    @staticmethod
    def named(names):
        return GaussianNetwork(
            np.zeros((2, 2)), np.zeros((2, 2)), [0, 0], [1, 1], node_names=names
        )

    @pytest.mark.parametrize("names", [[0, 1], ["a", 7], [np.int64(3), "3"], ["", 0]])
    def test_round_trip(self, names):
        network = self.named(names)
        again = GaussianNetwork.from_json(network.to_json())
        assert again == network
        assert [type(name) for name in again.node_names] == [
            str if isinstance(name, str) else int for name in names
        ]

    @pytest.mark.parametrize("name", [("a", 1), 2.5, None, True])
    def test_others_are_not_written(self, name):
        with pytest.raises(ValueError, match="strings or whole numbers can be written"):
            self.named([name, "b"]).to_json()

    def test_duplicates(self):
        data = self.named(["a", "b"]).to_dict()
        data["fields"]["node_names"] = ["a", "a"]
        with pytest.raises(ValueError, match=r"node_names must .* got 'a' twice"):
            GaussianNetwork.from_dict(data)


class Stored(Persistent):
    """A model object with fields of all kinds."""

    _fields: ClassVar = {"array": Array(), "parts": Arrays(), "name": Names()}

    def __init__(self, array, parts=(), name=None):
        self.array, self.parts, self.name = array, parts, name


class Other(Stored):
    """Another type with the same fields."""


class TestEquality:
    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (np.array([0.0]), np.array([-0.0])),
            (np.array([1, 2]), np.array([1.0, 2.0])),
            (np.array([True]), np.array([1])),
            (np.array([[1.0]]).T, np.array([[1.0]])),
            (np.zeros((0, 3)), np.zeros((0, 3), dtype=int)),
        ],
    )
    def test_equal_numbers_are_equal(self, one, two):
        for a, b in ((one, two), ([one], (two,)), ([[one]], [[two]])):
            assert Stored(a) == Stored(b)
            assert hash(Stored(a)) == hash(Stored(b))

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (np.array([0.0]), np.array([5e-324])),
            (np.zeros((0, 3)), np.zeros((0, 2))),
            (np.zeros((1, 2)), np.zeros((2, 1))),
            (np.zeros(2), None),
            (None, np.zeros(2)),
            (["a"], ["b"]),
            (["a"], ["a", "b"]),
            (["a"], None),
            ([np.zeros(1)], [np.ones(1)]),
            ([[np.zeros(1)], []], [[], [np.zeros(1)]]),
        ],
    )
    def test_others_are_not(self, one, two):
        assert Stored(one) != Stored(two)
        assert Stored(two) != Stored(one)

    def test_other_types_are_different(self):
        array = np.zeros(1)
        assert Stored(array) != Other(array)
        assert Stored(array) != {"array": array}
        assert Stored(array).__eq__(array) is NotImplemented

    @settings(deadline=None)
    @given(networks(), networks())
    def test_equal_means_equal_text(self, one, two):
        assert (one == two) == (one.to_dict() == two.to_dict())
        if one == two:
            assert hash(one) == hash(two)


def test_only_known_choices_are_written():
    with pytest.raises(ValueError, match="cannot be written"):
        Choice(("a",)).encode("b")


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_skops_files_hold_only_types_of_the_library():
    sio = pytest.importorskip("skops.io")
    binary = NoisyOrNetwork([0.3, 0.4], np.where(STRUCTURE, 0.3, 1.0), [0.05] * 10)
    binary = binary.sample(1000, 0)[0]
    numbers = make_gaussian_bn(n_samples=200, n_features=4, random_state=0).X
    panel = np.asarray(make_latent_dbn("G1", 100, 2, random_state=0).X).reshape(100, -1)
    for estimator, X in (
        (NoisyOrMoMLearner(STRUCTURE).fit(binary), binary),
        (NoisyOrMoMLearner(STRUCTURE, refine=False).partial_fit(binary), binary),
        (NoisyOrEM(structure=STRUCTURE, random_state=0).fit(binary), binary),
        (NoisyOrEM(2, inference="variational", tol=1e-3).fit(binary), binary),
        (QuartetStructureLearner().fit(binary), binary),
        (QuartetStructureLearner(refine=False).partial_fit(binary), binary),
        (IdealParentGaussianBN().fit(numbers), numbers),
        (IdealParentGaussianBN(link="sigmoid", max_iter=3).fit(numbers), numbers),
        (LPCC(random_state=0).fit(panel), panel),
        (LGLPCCTemporal(2, random_state=0).fit(panel), panel),
        (SEMDBN(2, 2, 2, n_init=1, max_rounds=2, random_state=0).fit(panel), panel),
    ):
        data = sio.dumps(estimator)
        types = sio.get_untrusted_types(data=data)
        assert all(name.startswith("sklearn_latent.") for name in types)
        again = sio.loads(data, trusted=types)
        assert again.network_ == estimator.network_
        np.testing.assert_array_equal(again.transform(X), estimator.transform(X))
        if hasattr(estimator, "prior_stderr_"):
            np.testing.assert_array_equal(
                again.failure_stderr_, estimator.failure_stderr_
            )
        sums = vars(estimator).get("_blocks") or "_statistics" in vars(estimator)
        if sums and hasattr(estimator, "prior_"):
            again.partial_fit(X)
            estimator.partial_fit(X)
            np.testing.assert_allclose(again.prior_, estimator.prior_, atol=1e-10)

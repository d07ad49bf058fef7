"""Models to disk and back: equal to the bit, or one clear error."""

import pickle
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import otprop
from otprop import ModelFileError, OTPropagation, model_file
from otprop.propagation import Round
from tests import tables

X, TRUE, Y = tables.blobs(60, 3, 3, seed=0, spread=0.3)
NEW = X[:9] + 0.05
WORDS = ["cow", "ant", "bee with a long name, ünïcode"]


def fitted(table=X, y=Y, **parameters):
    return OTPropagation(**({"epsilon": 0.3, "alpha": 0.6} | parameters)).fit(table, y)


MODELS = {
    "dense": lambda: (fitted(), NEW),
    "single": lambda: (fitted(X.astype(np.float32)), NEW.astype(np.float32)),
    "sparse": lambda: (fitted(sparse.csr_matrix(X)), sparse.csr_matrix(NEW)),
    "sparse array": lambda: (fitted(sparse.csr_array(X)), sparse.csr_array(NEW)),
    "single sparse": lambda: (
        fitted(sparse.csr_matrix(X.astype(np.float32))),
        sparse.csr_matrix(NEW.astype(np.float32)),
    ),
    "precomputed": lambda: (
        fitted(tables.squared(X), geometry="precomputed"),
        tables.squared(NEW, X),
    ),
    "frame": lambda: (fitted(frame(X)), frame(NEW)),
    "words": lambda: (fitted(y=tables.rename(Y, WORDS)), NEW),
    "truths": lambda: (fitted(y=[None if k < 0 else bool(k) for k in Y]), NEW),
    "floats": lambda: (fitted(y=np.where(Y < 0, np.nan, Y)), NEW),
    "nothing unlabelled": lambda: (fitted(y=TRUE), NEW),
    "every parameter": lambda: (
        fitted(
            epsilon="auto",
            solver="sinkhorn",
            stall=np.float64(0.3),
            tol=np.float32(1e-3),
            max_iter=np.int64(10_000),
            memory_limit="1MB",
            n_jobs=2,
        ),
        NEW,
    ),
}
WAYS = {
    "save": lambda model, path: (model.save(path), otprop.load(path))[1],
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "joblib": lambda model, path: (joblib.dump(model, path), joblib.load(path))[1],
}
ATTRIBUTES = [
    "classes_",
    "transduction_",
    "label_distributions_",
    "certainty_",
    "round_",
    "epsilon_",
    "n_iter_",
    "n_features_in_",
]


def frame(table):
    return pd.DataFrame(table, columns=["a", "b", "ç"])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_model_comes_back_as_it_was(name, way, tmp_path):
    model, new = MODELS[name]()
    again = WAYS[way](model, tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    for mine, theirs in zip(model.explain(new), again.explain(new), strict=True):
        np.testing.assert_array_equal(theirs, mine)
    for attribute in ATTRIBUTES:
        value, restored = getattr(model, attribute), getattr(again, attribute)
        np.testing.assert_array_equal(restored, value)
        assert np.asarray(restored).dtype == np.asarray(value).dtype
    assert again.trace_ == model.trace_
    assert all(type(done) is type(model.trace_[0]) for done in again.trace_)
    assert again.get_params() == model.get_params()
    assert hasattr(again, "feature_names_in_") == (name == "frame")
    if name == "frame":
        np.testing.assert_array_equal(again.feature_names_in_, ["a", "b", "ç"])
        with pytest.raises(ValueError, match="feature names should match"):
            again.predict(new.rename(columns={"a": "z"}))


def test_a_model_that_was_loaded_can_be_cloned_fitted_and_saved_again(tmp_path):
    fitted().save(tmp_path / "one")
    model = otprop.load(tmp_path / "one")
    model.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    again = clone(model).fit(X, Y)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)
    model.fit(NEW, [0, 1, -1, -1, -1, -1, -1, -1, -1])
    assert len(model.transduction_) == 9


def test_rows_out_of_reach_are_saved_too(tmp_path):
    cost = np.where(np.eye(4, dtype=bool), 0.0, np.inf)
    cost[2, 0] = 1.0
    with pytest.warns(UserWarning, match="no finite cost"):
        model = OTPropagation(geometry="precomputed", epsilon=1.0).fit(cost, [0, 1, -1, -1])
    model.save(tmp_path / "model")
    again = otprop.load(tmp_path / "model")
    np.testing.assert_array_equal(again.round_, [0, 0, 1, -1])
    np.testing.assert_array_equal(again.predict_proba(cost[[2]]), model.predict_proba(cost[[2]]))


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        OTPropagation().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_not_a_model_file_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        otprop.load(tmp_path / "none")


@cache
def saved(kind):
    """Return the header and the arrays that are written of a model."""
    written = {}

    def keep(_, header, arrays):
        written.update(header=header, arrays=arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_file, "write", keep)
        MODELS[kind]()[0].save("nowhere")
    return written["header"], written["arrays"]


def loaded_with(tmp_path, kind="dense", header=None, arrays=None, without=()):
    """Write a well-formed file with other content, checksums and all, and load it."""
    old_header, old_arrays = saved(kind)
    new_header = {k: v for k, v in (old_header | (header or {})).items() if k not in without}
    new_arrays = {k: v for k, v in (old_arrays | (arrays or {})).items() if k not in without}
    model_file.write(tmp_path / "model", new_header, new_arrays)
    return otprop.load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed"])
def test_the_content_is_taken_when_nothing_is_changed(kind, tmp_path):
    model, new = MODELS[kind]()
    again = loaded_with(tmp_path, kind)
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


@pytest.mark.parametrize("at", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_an_altered_byte_is_a_model_file_error(at, tmp_path):
    path = tmp_path / "model"
    fitted().save(path)
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        otprop.load(path)


def test_a_pickle_is_a_foreign_file(tmp_path):
    joblib.dump(fitted(), tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a model saved by otprop"):
        otprop.load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed", "nothing unlabelled"])
def test_every_part_is_needed(kind, tmp_path):
    header, arrays = saved(kind)
    optional = {"feature_names_in"}
    for part in [*header, *arrays]:
        if part not in optional:
            with pytest.raises(ModelFileError, match="its content is not that of"):
                loaded_with(tmp_path, kind, without=[part])


def changed(name, change):
    return lambda arrays: {name: change(arrays[name].copy())}


def with_value(index, value):
    def change(array):
        array[index] = value
        return array

    return change


WRONG_ARRAYS = {
    "label too large": changed("source_labels", with_value(-1, 3)),
    "label negative": changed("source_labels", with_value(0, -1)),
    "labels as floats": changed("source_labels", lambda a: a.astype(float)),
    "labels in two dimensions": changed("source_labels", lambda a: a[:, None]),
    "a label too many": changed("source_labels", lambda a: np.append(a, 0)),
    "no labels": changed("source_labels", lambda a: a[:0]),
    "row too large": changed("source_rows", with_value(0, 60)),
    "row negative": changed("source_rows", with_value(0, -1)),
    "a row too few": changed("source_rows", lambda a: a[:-1]),
    "rows as texts": changed("source_rows", lambda a: a.astype(str)),
    "potentials too few": changed("potentials", lambda a: a[:-1]),
    "potentials too many": changed("potentials", lambda a: np.append(a, 0.0)),
    "potentials in two dimensions": changed("potentials", lambda a: np.stack([a, a], axis=1)),
    "potentials as texts": changed("potentials", lambda a: a.astype(str)),
    "potentials not numbers": changed("potentials", with_value(0, np.nan)),
    "distributions too few": changed("label_distributions", lambda a: a[:-1]),
    "a distribution too wide": changed("label_distributions", lambda a: np.c_[a, a]),
    "distributions as texts": changed("label_distributions", lambda a: a.astype(str)),
    "certainty too short": changed("certainty", lambda a: a[:-1]),
    "rounds too many": changed("round", lambda a: np.append(a, 1)),
    "one class": changed("classes", lambda a: a[:1]),
    "classes in two dimensions": changed("classes", lambda a: a[:, None]),
    "points too few": changed("points", lambda a: a[:-1]),
    "points too narrow": changed("points", lambda a: a[:, :-1]),
    "points in another precision": changed("points", lambda a: a.astype(np.float32)),
    "points as whole numbers": changed("points", lambda a: a.astype(int)),
    "points in three dimensions": changed("points", lambda a: a[None]),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_do_not_fit_together_are_a_model_file_error(name, tmp_path):
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, arrays=WRONG_ARRAYS[name](saved("dense")[1]))


def trace_with(field, change):
    """Return the rows of a trace with one value changed in the last."""
    trace = [list(done) for done in saved("dense")[0]["trace"]]
    column = Round._fields.index(field)
    trace[-1][column] = change(trace[-1][column])
    return trace


@pytest.mark.parametrize("sources", [-1, 0, 61])
def test_a_trace_that_agrees_with_impossible_potentials_does_not_help(sources, tmp_path):
    trace = trace_with("sources", lambda _: sources)
    total = max(sum(done[1] for done in trace), 0)
    arrays = {"potentials": np.zeros(total)}
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, header={"trace": trace}, arrays=arrays)


def test_numbers_of_sources_below_zero_that_add_up_do_not_help(tmp_path):
    trace = [list(done) for done in saved("dense")[0]["trace"][:1] * 2]
    trace[0][1], trace[1][1] = -3, 33
    arrays = {"potentials": np.zeros(30)}
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, header={"trace": trace}, arrays=arrays)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("sources", lambda n: n - 1),
        ("sources", lambda n: n + 1),
        ("sources", float),
        ("alpha", str),
        ("alpha", lambda _: None),
        ("lowered", int),
        ("converged", int),
        ("accepted", str),
    ],
)
def test_a_trace_of_other_numbers_is_a_model_file_error(field, change, tmp_path):
    assert loaded_with(tmp_path, header={"trace": trace_with(field, lambda old: old)}).trace_
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, header={"trace": trace_with(field, change)})


def test_the_file_says_each_thing_once():
    header, arrays = saved("dense")
    assert not {"potential_sizes", "alphas", "lowered"} & arrays.keys()
    assert "n_iter" not in header


@pytest.mark.parametrize(
    ("kind", "geometry"), [("dense", "precomputed"), ("precomputed", "euclidean")]
)
def test_a_parameter_set_after_fit_is_for_the_next_fit_in_the_file_too(kind, geometry, tmp_path):
    model, new = MODELS[kind]()
    expected = model.predict_proba(new)
    model.set_params(geometry=geometry).save(tmp_path / "model")
    again = otprop.load(tmp_path / "model")
    assert again.geometry == geometry
    np.testing.assert_array_equal(again.predict_proba(new), expected)


def test_a_parameter_that_cannot_be_is_told_when_the_model_is_saved(tmp_path):
    model = fitted().set_params(alpha=2.0)
    with pytest.raises(ValueError, match="alpha must be a number from 0 to 1"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "header",
    [
        {"parameters": {"alpha": 2.0}},
        {"parameters": {"beta": 2.0}},
        {"parameters": []},
        {"parameters": None},
        {"epsilon": 0.0},
        {"epsilon": "auto"},
        {"epsilon": None},
        {"n_features_in": 4},
        {"n_features_in": "many"},
        {"feature_names_in": ["a", "b"]},
        {"feature_names_in": 7},
        {"trace": []},
        {"trace": [[1, 2, 3]]},
        {"trace": 5},
        {"dtype": "float16"},
        {"dtype": "int64"},
        {"dtype": "object"},
        {"dtype": "nonsense"},
    ],
    ids=str,
)
def test_a_header_that_does_not_fit_is_a_model_file_error(header, tmp_path):
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, header=header)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("points_indices", with_value(0, 99)),
        ("points_indices", with_value(0, -1)),
        ("points_indptr", with_value(-1, 10**6)),
        ("points_indptr", with_value(1, 10**6)),
        ("points_indptr", lambda a: a[:-1]),
        ("points_data", lambda a: a[:-5]),
        ("points_data", lambda a: a.astype(np.float32)),
    ],
)
def test_sparse_points_that_point_elsewhere_are_a_model_file_error(part, change, tmp_path):
    arrays = {part: change(saved("sparse")[1][part].copy())}
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, "sparse", arrays=arrays)


@pytest.mark.parametrize("shape", [[60, 4], [61, 3], [60], None, ["a", "b"]])
def test_sparse_points_of_another_shape_are_a_model_file_error(shape, tmp_path):
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, "sparse", header={"points_shape": shape})


def test_costs_for_other_rows_than_those_fitted_are_a_model_file_error(tmp_path):
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, "precomputed", header={"n_features_in": 10})

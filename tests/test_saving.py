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
from otprop.selection import Candidate
from tests import tables

X, TRUE, Y = tables.blobs(60, 3, 3, seed=0, spread=0.3)
NEW = X[:9] + 0.05
WORDS = ["cow", "ant", "bee with a long name, ünïcode"]
SCORES = [1.0] * (len(Candidate._fields) - 1)
MORE, _, MORE_LABELS = tables.blobs(80, 3, 3, seed=1, spread=0.6, known=0.5)


def fitted(table=X, y=Y, **parameters):
    return OTPropagation.paper(**({"epsilon": 0.3, "alpha": 0.6} | parameters)).fit(table, y)


def on_graph(table=MORE, y=MORE_LABELS, **parameters):
    return OTPropagation(**({"geometry": "graph"} | parameters)).fit(table, y)


def affinity(table, others=MORE):
    """Return the affinities of rows to the nearest others, none to themselves."""
    squared = tables.squared(table, others)
    return np.where((squared > 0) & (squared < 2), np.exp(-squared), 0.0)


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
    "euclidean, discriminant": lambda: (fitted(scaling="discriminant"), NEW),
    "euclidean, relaxed": lambda: (fitted(marginals="relaxed", relaxation=0.5), NEW),
    "graph": lambda: (on_graph(), NEW),
    "graph, single": lambda: (on_graph(MORE.astype(np.float32)), NEW.astype(np.float32)),
    "graph sparse": lambda: (on_graph(sparse.csr_matrix(MORE)), sparse.csr_matrix(NEW)),
    "graph of one's own": lambda: (
        on_graph(affinity(MORE), geometry="precomputed-graph"),
        affinity(NEW),
    ),
    "sparse graph of one's own": lambda: (
        on_graph(sparse.csr_array(affinity(MORE)), geometry="precomputed-graph"),
        sparse.csr_array(affinity(NEW)),
    ),
    "graph, discriminant scaling": lambda: (on_graph(scaling="discriminant"), NEW),
    "graph, nothing unlabelled": lambda: (on_graph(X, TRUE), NEW),
    "graph, rows": lambda: (on_graph(marginals="rows"), NEW),
    "either": lambda: (on_graph(geometry="auto"), NEW),
    "infinite tolerance": lambda: (on_graph(class_tolerance=np.inf), NEW),
    "prior of numbers": lambda: (on_graph(class_prior={0: 1, 1: 0.5, 2: np.float64(2.0)}), NEW),
    "prior of words": lambda: (
        on_graph(
            y=tables.rename(MORE_LABELS, WORDS),
            class_prior=dict.fromkeys(WORDS, 0.5),
        ),
        NEW,
    ),
    "prior of truths": lambda: (
        on_graph(
            y=[None if k < 0 else bool(k) for k in MORE_LABELS],
            class_prior={np.False_: 1, np.True_: 2},
        ),
        NEW,
    ),
    "abstaining": lambda: (
        on_graph(y=tables.rename(MORE_LABELS, WORDS), abstain_below=0.9),
        NEW,
    ),
    "abstaining, numbers": lambda: (fitted(abstain_below=0.9), NEW),
    "annealed": lambda: (on_graph(X, Y, rounds="annealed"), NEW),
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
    "confidence_",
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
    for attribute in ("trace_", "selection_", "calibration_"):
        assert getattr(again, attribute) == getattr(model, attribute)
    assert all(type(done) is Round for done in again.trace_)
    assert all(type(line) is Candidate for line in again.selection_.candidates)
    assert type(again.calibration_) is type(model.calibration_)
    assert again.get_params() == model.get_params()
    assert hasattr(again, "feature_names_in_") == (name == "frame")
    if name == "frame":
        np.testing.assert_array_equal(again.feature_names_in_, ["a", "b", "ç"])
        with pytest.raises(ValueError, match="feature names should match"):
            again.predict(new.rename(columns={"a": "z"}))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_was_loaded_is_saved_as_it_was(name, tmp_path):
    MODELS[name]()[0].save(tmp_path / "one")
    otprop.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(("name", "table", "y"), [("dense", X, Y), ("graph", MORE, MORE_LABELS)])
def test_a_model_that_was_loaded_can_be_cloned_and_fitted_again(name, table, y, tmp_path):
    MODELS[name]()[0].save(tmp_path / "model")
    model = otprop.load(tmp_path / "model")
    again = clone(model).fit(table, y)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)
    model.fit(NEW, [0, 1, -1, -1, -1, -1, -1, -1, -1])
    assert len(model.transduction_) == 9


@pytest.mark.parametrize("name", ["dense", "graph", "graph of one's own"])
def test_a_model_that_was_loaded_suggests_the_same_rows(name, tmp_path):
    model, _ = MODELS[name]()
    model.save(tmp_path / "model")
    again = otprop.load(tmp_path / "model")
    np.testing.assert_array_equal(again.suggest(5), model.suggest(5))


@pytest.mark.parametrize("prior", ["numbers", "words", "truths"])
def test_the_classes_of_a_prior_keep_their_types(prior, tmp_path):
    model, _ = MODELS[f"prior of {prior}"]()
    model.save(tmp_path / "model")
    kinds = {"numbers": int, "words": str, "truths": bool}
    assert {type(name) for name in otprop.load(tmp_path / "model").class_prior} == {kinds[prior]}


def test_the_models_differ_in_what_they_are_to_show():
    assert len(MODELS["graph"]()[0].selection_.candidates) > 1
    assert MODELS["graph"]()[0].calibration_.labels > 0
    assert np.isinf(MODELS["infinite tolerance"]()[0].selection_.chosen["tolerance"])
    assert None in MODELS["abstaining"]()[0].transduction_
    assert -1 in MODELS["abstaining, numbers"]()[0].transduction_
    assert len(MODELS["annealed"]()[0].trace_) > 2
    assert MODELS["graph, discriminant scaling"]()[0]._fitted.scaling.directions is not None


def test_rows_out_of_reach_are_saved_too(tmp_path):
    cost = np.where(np.eye(4, dtype=bool), 0.0, np.inf)
    cost[2, 0] = 1.0
    with pytest.warns(UserWarning, match="out of every source's reach"):
        model = fitted(cost, [0, 1, -1, -1], geometry="precomputed", epsilon=1.0)
    model.save(tmp_path / "model")
    again = otprop.load(tmp_path / "model")
    np.testing.assert_array_equal(again.round_, [0, 0, 1, -1])
    np.testing.assert_array_equal(again.predict_proba(cost[[2]]), model.predict_proba(cost[[2]]))


def test_rows_that_no_link_reaches_are_saved_too(tmp_path):
    links = np.zeros((5, 5))
    links[0, 2] = links[2, 0] = links[1, 2] = links[2, 1] = 1.0
    with pytest.warns(UserWarning, match="out of every source's reach"):
        model = on_graph(links, [0, 1, -1, -1, -1], geometry="precomputed-graph")
    model.save(tmp_path / "model")
    again = otprop.load(tmp_path / "model")
    np.testing.assert_array_equal(again.round_, [0, 0, 1, -1, -1])
    np.testing.assert_array_equal(again.predict_proba(links[[2]]), model.predict_proba(links[[2]]))


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        OTPropagation().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_not_a_model_file_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        otprop.load(tmp_path / "none")


KINDS = [
    "dense",
    "sparse",
    "precomputed",
    "nothing unlabelled",
    "euclidean, discriminant",
    "graph",
    "graph sparse",
    "graph of one's own",
    "graph, discriminant scaling",
    "graph, nothing unlabelled",
]


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


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
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


def mirrored(arrays):
    """Return the links of a graph as those of the lower triangle."""
    parts = tuple(arrays[f"links_{part}"] for part in ("data", "indices", "indptr"))
    lower = sparse.csr_matrix(parts).T.tocsr()
    starts = np.append(lower.indptr, np.full(len(parts[2]) - len(lower.indptr), lower.nnz))
    return {
        "links_data": lower.data,
        "links_indices": lower.indices,
        "links_indptr": starts.astype(np.int32),
    }


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
    "potentials infinite": changed("potentials", with_value(0, np.inf)),
    "a row twice": changed("source_rows", lambda a: np.append(a[:-1], a[0])),
    "distributions too few": changed("label_distributions", lambda a: a[:-1]),
    "a distribution too wide": changed("label_distributions", lambda a: np.c_[a, a]),
    "distributions as texts": changed("label_distributions", lambda a: a.astype(str)),
    "a distribution not of numbers": changed("label_distributions", with_value((5, 0), np.nan)),
    "an infinite distribution": changed("label_distributions", with_value((5, 0), np.inf)),
    "a share below zero": changed("label_distributions", with_value((5, 0), -0.1)),
    "a given label in doubt": changed("label_distributions", with_value(0, 1 / 3)),
    "two given labels": changed("label_distributions", with_value(0, [1.0, 1.0, 0.0])),
    "half a given label more": changed("label_distributions", with_value(0, [1.0, 0.5, 0.0])),
    "half a given label": changed("label_distributions", with_value(0, [0.5, 0.0, 0.0])),
    "no given label": changed("label_distributions", with_value(0, 0.0)),
    "certainty too short": changed("certainty", lambda a: a[:-1]),
    "certainty not of numbers": changed("certainty", with_value(0, np.nan)),
    "rounds too many": changed("round", lambda a: np.append(a, 1)),
    "a round below -1": changed("round", with_value(-1, -2)),
    "a round as large as can be": changed("round", with_value(-1, np.iinfo(np.intp).max)),
    "a round beyond the trace": changed("round", lambda a: np.where(a == a.max(), a + 1, a)),
    "nothing given": changed("round", lambda a: np.where(a == 0, 1, a)),
    "rounds as floats": changed("round", lambda a: a.astype(float)),
    "one class": changed("classes", lambda a: a[:1]),
    "a class twice": changed("classes", with_value(1, 0)),
    "classes out of order": changed("classes", lambda a: a[::-1]),
    "classes in two dimensions": changed("classes", lambda a: a[:, None]),
    "points too few": changed("points", lambda a: a[:-1]),
    "points too narrow": changed("points", lambda a: a[:, :-1]),
    "points in another precision": changed("points", lambda a: a.astype(np.float32)),
    "points as whole numbers": changed("points", lambda a: a.astype(int)),
    "points in three dimensions": changed("points", lambda a: a[None]),
    "points not numbers": changed("points", with_value((0, 0), np.nan)),
    "points infinite": changed("points", with_value((0, 0), np.inf)),
    "shift too short": changed("scaling_shift", lambda a: a[:-1]),
    "shift not of numbers": changed("scaling_shift", with_value(0, np.nan)),
    "factor too long": changed("scaling_factor", lambda a: np.append(a, 1.0)),
    "factor infinite": changed("scaling_factor", with_value(0, np.inf)),
    "factor in single precision": changed("scaling_factor", lambda a: a.astype(np.float32)),
}
WRONG_ARRAYS_OF_GRAPHS = {
    "points of sources only": changed("points", lambda a: a[:30]),
    "points too narrow": changed("points", lambda a: a[:, :-1]),
    "points in another precision": changed("points", lambda a: a.astype(np.float32)),
    "points not numbers": changed("points", with_value((7, 0), np.nan)),
    "scales too few": changed("scales", lambda a: a[:-1]),
    "scales in two dimensions": changed("scales", lambda a: a[:, None]),
    "a scale of zero": changed("scales", with_value(3, 0.0)),
    "a scale below zero": changed("scales", with_value(3, -1.0)),
    "a scale infinite": changed("scales", with_value(3, np.inf)),
    "a scale not a number": changed("scales", with_value(3, np.nan)),
    "scales as whole numbers": changed("scales", lambda a: np.ones(len(a), int)),
    "prices too few": changed("prices", lambda a: a[:-1]),
    "prices too many": changed("prices", lambda a: np.append(a, 0.0)),
    "a price infinite": changed("prices", with_value(0, np.inf)),
    "a price not a number": changed("prices", with_value(0, np.nan)),
    "prices of nothing": changed("prices", lambda a: np.full(len(a), -np.inf)),
    "prices as texts": changed("prices", lambda a: a.astype(str)),
    "a given row more": changed("round", lambda a: np.where(a == 1, 0, a)),
    "a given label in doubt": changed("label_distributions", with_value(0, 1 / 3)),
    "a row less": lambda arrays: {
        name: arrays[name][:-1] for name in ("label_distributions", "certainty", "round")
    },
    "a link of zero": changed("links_data", with_value(0, 0.0)),
    "a link below zero": changed("links_data", with_value(0, -0.5)),
    "a link infinite": changed("links_data", with_value(0, np.inf)),
    "a link not a number": changed("links_data", with_value(0, np.nan)),
    "links in single precision": changed("links_data", lambda a: a.astype(np.float32)),
    "links too few": changed("links_data", lambda a: a[:-1]),
    "links too many": changed("links_data", lambda a: np.append(a, 1.0)),
    "a link to a row that is not there": changed("links_indices", with_value(0, 80)),
    "a link to a row far away": changed("links_indices", with_value(0, 2**31 - 1)),
    "a link to a row below zero": changed("links_indices", with_value(0, -1)),
    "a link to itself": changed("links_indices", with_value(0, 0)),
    "a link twice": changed("links_indices", lambda a: np.r_[a[1], a[1:]]),
    "links out of order": changed("links_indices", lambda a: np.r_[a[1], a[0], a[2:]]),
    "links as floats": changed("links_indices", lambda a: a.astype(float)),
    "links as numbers without sign": changed("links_indices", lambda a: a.astype(np.uint32)),
    "links in two dimensions": changed("links_indices", lambda a: a[:, None]),
    "starts too few": changed("links_indptr", lambda a: a[:-1]),
    "starts too many": changed("links_indptr", lambda a: np.append(a, a[-1])),
    "a start beyond the end": changed("links_indptr", with_value(5, 10**6)),
    "an end beyond the end": changed("links_indptr", with_value(-1, 10**6)),
    "a start below zero": changed("links_indptr", with_value(5, -1)),
    "a first start other than zero": changed("links_indptr", with_value(0, 1)),
    "starts as floats": changed("links_indptr", lambda a: a.astype(float)),
    "links below the diagonal": mirrored,
}
WRONG_DIRECTIONS = {
    "directions of fewer columns": lambda a: a[:-1],
    "no directions": lambda a: a[:, :0],
    "a direction more than the points have": lambda a: np.c_[a, a[:, 0]],
    "a direction less than the points have": lambda a: a[:, :1],
    "directions in one dimension": lambda a: a[:, 0],
    "directions not of numbers": with_value((0, 0), np.nan),
    "directions infinite": with_value((0, 0), np.inf),
    "directions along which sums overflow": lambda a: np.where(a < 0, -1e308, 1e308),
    "directions in single precision": lambda a: a.astype(np.float32),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_do_not_fit_together_are_a_model_file_error(name, tmp_path):
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, arrays=WRONG_ARRAYS[name](saved("dense")[1]))


@pytest.mark.parametrize("name", WRONG_ARRAYS_OF_GRAPHS)
def test_arrays_of_a_graph_that_do_not_fit_are_a_model_file_error(name, tmp_path):
    arrays = WRONG_ARRAYS_OF_GRAPHS[name](saved("graph")[1])
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, "graph", arrays=arrays)


@pytest.mark.parametrize(
    ("kind", "scaling"),
    [
        ("dense", "discriminant"),
        ("euclidean, discriminant", "standard"),
        ("graph, discriminant scaling", "none"),
    ],
)
def test_a_scaling_of_another_width_is_a_model_file_error(kind, scaling, tmp_path):
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, kind, header={"scaling": scaling})


@pytest.mark.parametrize("kind", ["euclidean, discriminant", "graph, discriminant scaling"])
@pytest.mark.parametrize("name", WRONG_DIRECTIONS)
def test_directions_that_do_not_fit_are_a_model_file_error(name, kind, tmp_path):
    arrays = changed("scaling_directions", WRONG_DIRECTIONS[name])(saved(kind)[1])
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, kind, arrays=arrays)


def test_a_price_of_a_row_that_gives_nothing_is_taken(tmp_path):
    arrays = changed("prices", with_value(0, -np.inf))(saved("graph")[1])
    model = loaded_with(tmp_path, "graph", arrays=arrays)
    assert np.isfinite(model.explain(NEW).shares).all()


def test_a_graph_without_links_is_taken(tmp_path):
    arrays = {
        "links_data": np.empty(0),
        "links_indices": np.empty(0, np.int32),
        "links_indptr": np.zeros(81, np.int32),
    }
    model = loaded_with(tmp_path, "graph of one's own", arrays=arrays)
    assert model._fitted.graph.affinity.nnz == 0


@pytest.mark.parametrize("kind", ["graph", "graph sparse", "graph of one's own", "graph, single"])
def test_the_parts_of_a_graph_come_back_to_the_bit(kind, tmp_path):
    mine, theirs = MODELS[kind]()[0]._fitted, loaded_with(tmp_path, kind)._fitted
    for part in ("data", "indices", "indptr"):
        before, after = getattr(mine.graph.affinity, part), getattr(theirs.graph.affinity, part)
        np.testing.assert_array_equal(after, before)
    for part in ("scales", "labels", "prices", "distributions", "round"):
        np.testing.assert_array_equal(getattr(theirs, part), getattr(mine, part))
    assert (theirs.n_neighbors, theirs.diffusion) == (mine.n_neighbors, mine.diffusion)
    assert theirs.dtype == mine.dtype
    assert theirs.scaling.name == mine.scaling.name


@pytest.mark.parametrize(
    ("kind", "other"),
    [("dense", "graph"), ("graph", "dense"), ("precomputed", "graph of one's own")],
)
def test_a_header_of_another_kind_of_model_is_a_model_file_error(kind, other, tmp_path):
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, kind, header=saved(other)[0])
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, kind, header={"kind": saved(other)[0]["kind"]})


@pytest.mark.parametrize(
    ("kind", "geometry"),
    [
        ("dense", "precomputed"),
        ("dense", "graph"),
        ("dense", "auto"),
        ("dense", ["euclidean"]),
        ("precomputed", "euclidean"),
        ("precomputed", "precomputed-graph"),
        ("graph", "precomputed-graph"),
        ("graph", "euclidean"),
        ("graph of one's own", "graph"),
        ("graph of one's own", "precomputed"),
    ],
)
def test_a_geometry_that_is_not_that_of_the_model_is_a_model_file_error(kind, geometry, tmp_path):
    selection = saved(kind)[0]["selection"]
    chosen = selection["chosen"] | {"geometry": geometry}
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, kind, header={"selection": selection | {"chosen": chosen}})


@pytest.mark.parametrize(
    "selection",
    [
        None,
        [],
        {"chosen": None},
        {"chosen": {}},
        {"chosen": {"geometry": "graph", "tolerance": {"float": "very"}}},
        {"chosen": {"geometry": "graph", "tolerance": {"mapping": 3}}},
        {"reason": None},
        {"reason": ["too few labels"]},
        {"candidates": None},
        {"candidates": [7]},
        {"candidates": [[]]},
        {"candidates": [[{}, *SCORES[1:]]]},
        {"candidates": [[{}, *SCORES, 1.0]]},
        {"candidates": [[{}, "1.0", *SCORES[1:]]]},
        {"candidates": [[{}, 1, *SCORES[1:]]]},
        {"candidates": [[None, *SCORES]]},
        {"candidates": [[{"epsilon": {}}, *SCORES]]},
    ],
    ids=str,
)
def test_a_selection_that_is_none_is_a_model_file_error(selection, tmp_path):
    if isinstance(selection, dict):
        selection = saved("graph")[0]["selection"] | selection
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, "graph", header={"selection": selection})


def test_a_selection_of_its_own_kind_is_taken(tmp_path):
    values = {"tolerance": {"float": "inf"}, "n_neighbors": 3}
    selection = saved("graph")[0]["selection"] | {"candidates": [[values, *SCORES]]}
    model = loaded_with(tmp_path, "graph", header={"selection": selection})
    expected = Candidate({"tolerance": np.inf, "n_neighbors": 3}, *SCORES)
    assert model.selection_.candidates == [expected]


@pytest.mark.parametrize("part", ["chosen", "reason", "candidates"])
def test_every_part_of_a_selection_is_needed(part, tmp_path):
    selection = {k: v for k, v in saved("graph")[0]["selection"].items() if k != part}
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, "graph", header={"selection": selection})


@pytest.mark.parametrize(
    "header",
    [
        {"kind": "tree"},
        {"kind": None},
        {"kind": ["graph"]},
        {"n_neighbors": 0},
        {"n_neighbors": 5.0},
        {"n_neighbors": True},
        {"n_neighbors": "auto"},
        {"diffusion": 0.0},
        {"diffusion": 1.0},
        {"diffusion": -0.5},
        {"diffusion": 1},
        {"diffusion": "far"},
        {"scaling": "auto"},
        {"scaling": None},
        {"scaling": 3},
        {"calibration": None},
        {"calibration": [0.0, 1.0]},
        {"calibration": [0.0, 1.0, 5, 5]},
        {"calibration": [0.0, 1.0, 5.0]},
        {"calibration": [0.0, 1.0, -1]},
        {"calibration": [0, 1.0, 5]},
        {"calibration": [0.0, "1.0", 5]},
        {"calibration": [{"float": "inf"}, 1.0, 5]},
        {"calibration": [0.0, {"float": "nan"}, 5]},
    ],
    ids=str,
)
def test_a_header_that_does_not_fit_a_graph_is_a_model_file_error(header, tmp_path):
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, "graph", header=header)


def test_affinities_to_other_rows_than_those_fitted_are_a_model_file_error(tmp_path):
    header, arrays = saved("graph of one's own")
    fewer = {name: arrays[name][:10] for name in ("scaling_shift", "scaling_factor")}
    assert header["n_features_in"] == 80
    with pytest.raises(ModelFileError, match="relations are to other rows"):
        loaded_with(tmp_path, "graph of one's own", header={"n_features_in": 10}, arrays=fewer)


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


@pytest.mark.parametrize("kind", ["graph", "graph sparse"])
def test_the_file_of_a_graph_says_each_thing_once(kind):
    model = MODELS[kind]()[0]
    header, arrays = saved(kind)
    assert not {"transduction", "confidence", "labels", "given_labels"} & arrays.keys()
    assert not {"points_shape", "links_shape"} & header.keys()
    assert 2 * len(arrays["links_data"]) == model._fitted.graph.affinity.nnz
    assert "scales" not in saved("graph of one's own")[1]


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
        {"epsilon": -1.0},
        {"epsilon": True},
        {"parameters": {"class_tolerance": {"float": "-inf"}}},
        {"parameters": {"class_prior": {"mapping": [[0]]}}},
        {"parameters": {"alpha": 10**400}},
        {"n_features_in": 4},
        {"n_features_in": "many"},
        {"n_features_in": 3.0},
        {"n_features_in": -3},
        {"feature_names_in": ["a", "b"]},
        {"feature_names_in": ["a", "b", 3]},
        {"feature_names_in": "abc"},
        {"feature_names_in": 7},
        {"trace": []},
        {"trace": [[1, 2, 3]]},
        {"trace": 5},
        {"dtype": "float16"},
        {"dtype": "int64"},
        {"dtype": "object"},
        {"dtype": "nonsense"},
        {"dtype": ["float64"]},
        {"scaling": "auto"},
        {"scaling": None},
        {"scaling": ["none"]},
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
        ("points_data", with_value(0, np.nan)),
        ("points_data", with_value(0, np.inf)),
        ("points_indices", lambda a: a.astype(float)),
        ("points_indices", lambda a: a.astype(np.uint64)),
        ("points_indptr", lambda a: np.append(a, a[-1])),
        ("points_indptr", lambda a: a[None]),
    ],
)
@pytest.mark.parametrize("kind", ["sparse", "graph sparse"])
def test_sparse_points_that_point_elsewhere_are_a_model_file_error(kind, part, change, tmp_path):
    arrays = {part: change(saved(kind)[1][part].copy())}
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, kind, arrays=arrays)


@pytest.mark.parametrize("kind", ["sparse", "graph sparse"])
def test_sparse_points_with_entries_in_columns_that_are_not_there_are_refused(kind, tmp_path):
    fewer = {name: saved(kind)[1][name][:2] for name in ("scaling_shift", "scaling_factor")}
    with pytest.raises(ModelFileError, match="its content is not that of an OTPropagation"):
        loaded_with(tmp_path, kind, header={"n_features_in": 2}, arrays=fewer)


def test_costs_for_other_rows_than_those_fitted_are_a_model_file_error(tmp_path):
    fewer = {
        name: saved("precomputed")[1][name][:10] for name in ("scaling_shift", "scaling_factor")
    }
    with pytest.raises(ModelFileError, match="relations are to other rows"):
        loaded_with(tmp_path, "precomputed", header={"n_features_in": 10}, arrays=fewer)


def test_values_nested_without_end_are_a_model_file_error(tmp_path):
    nested = []
    for _ in range(900):
        nested = [nested]
    with pytest.raises(ModelFileError):
        loaded_with(tmp_path, header={"parameters": {"class_prior": nested}})


def test_a_prior_that_is_none_is_told_when_the_model_is_saved(tmp_path):
    model = fitted().set_params(class_prior={(0, 1): 0.5})
    with pytest.raises(TypeError, match="Cannot save"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []

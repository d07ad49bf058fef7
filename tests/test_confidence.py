"""The chance of being right: what it is learned from, and whether it is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.model_selection import train_test_split

from otprop import OTPropagation
from otprop.confidence import AS_IT_IS, Calibration, HeldOut, calibrate
from tests import tables


def two_classes(share):
    """Return distributions over two classes in which class 0 has the share."""
    share = np.asarray(share, float)
    return np.stack([share, 1 - share], axis=1)


def hidden(share, chance, seed):
    """Return rows whose largest share is right with a chance."""
    wrong = np.random.default_rng(seed).random(len(share)) >= chance
    return HeldOut(two_classes(share), wrong.astype(int))


def gap(confidence, right, bins=10):
    """Return the expected calibration error, over bins of equal width."""
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    off = np.bincount(which, confidence - right, minlength=bins)
    return float(np.abs(off).sum() / len(right))


@pytest.mark.parametrize(
    ("shift", "slope"),
    [(0.0, 1.0), (0.5, 0.4), (0.3, 2.0)],
    ids=["well calibrated", "sure of itself", "shy"],
)
def test_with_many_labels_the_true_chance_is_found(shift, slope):
    share = np.random.default_rng(0).uniform(0.5, 0.99, 40_000)
    found = calibrate(hidden(share, expit(shift + slope * logit(share)), seed=1))
    assert (found.shift, found.slope) == pytest.approx((shift, slope), abs=0.1)
    assert found.labels == 40_000


@settings(max_examples=20)
@given(seed=st.integers(0, 999), shift=st.floats(-1, 2), slope=st.floats(0.4, 2.5))
def test_it_is_closer_to_the_truth_than_the_share_where_that_is_far_off(seed, shift, slope):
    share = np.random.default_rng(seed).uniform(0.55, 0.98, 3_000)
    true = np.maximum(expit(shift + slope * logit(share)), 0.5)
    found = calibrate(hidden(share, true, seed + 1)).confidence(two_classes(share))
    off = np.abs(found - true).mean()
    assert off < 0.04
    assert off < np.abs(share - true).mean() + 0.02


@given(
    shift=st.floats(-9, 9),
    log_slope=st.floats(-2, 2),
    classes=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_confidence_is_a_chance_and_no_lower_than_by_guessing(shift, log_slope, classes, seed):
    found = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), 50)
    found = np.vstack([found, np.eye(classes), np.full((1, classes), 1 / classes)])
    confidence = Calibration(shift, float(np.exp(log_slope)), 9).confidence(found)
    assert (confidence >= 1 / classes).all()
    assert (confidence <= 1).all()
    assert confidence[-1] == 1 / classes
    in_order = confidence[np.argsort(found.max(axis=1))]
    assert (np.diff(in_order) >= 0).all()


def test_a_row_that_is_known_nothing_of_is_guessed_whatever_was_learned():
    sure = Calibration(shift=5.0, slope=1.0, labels=9)
    np.testing.assert_array_equal(sure.confidence(np.full((2, 7), 1 / 7)), 1 / 7)
    assert sure.confidence(np.array([[0.5 + 1e-9, 0.5 - 1e-9]])) > 0.9


@pytest.mark.parametrize("none", [None, HeldOut(np.zeros((0, 2)), np.zeros(0, int))])
def test_without_labels_the_share_is_taken_for_the_chance(none):
    assert calibrate(none) is AS_IT_IS
    share = np.array([0.5, 0.7, 0.99])
    np.testing.assert_allclose(AS_IT_IS.confidence(two_classes(share)), share)


@pytest.mark.parametrize(("share", "right"), [(0.6, 0.75), (0.8, 1.0)])
def test_few_labels_keep_to_the_share(share, right):
    """The more labels of the same kind there are, the farther from it they lead, to the truth."""
    off = []
    for count in (4, 16, 64, 4096):
        wrong = np.arange(count) >= right * count
        found = HeldOut(two_classes(np.full(count, share)), wrong.astype(int))
        off.append(calibrate(found).confidence(two_classes([share]))[0] - share)
    assert (np.diff(np.abs(off)) > 0).all()
    assert abs(off[0]) < 0.8 * abs(right - share)
    assert off[-1] == pytest.approx(right - share, abs=0.01)


@pytest.mark.parametrize("count", [4, 20, 100])
def test_that_all_labels_were_found_makes_not_sure(count):
    found = HeldOut(two_classes(np.full(count, 0.9999)), np.zeros(count, int))
    confidence = calibrate(found).confidence(two_classes([0.9999]))[0]
    assert confidence == pytest.approx((count + 1) / (count + 2), abs=0.08)
    assert confidence < 1 - 0.4 / count


@pytest.mark.parametrize(("share", "right"), [(0.9, False), (0.6, True)])
def test_labels_at_a_single_share_move_neither_parameter_far(share, right):
    """Their shares tell nothing of a slope: it is the prior that holds it, and the shift."""
    found = calibrate(HeldOut(two_classes(np.full(8, share)), np.full(8, int(not right))))
    assert abs(np.log(found.slope)) < 1.0
    assert abs(found.shift) < 3.0


def test_the_order_of_labels_and_the_names_of_classes_have_no_say():
    share = np.random.default_rng(0).uniform(0.5, 0.99, 200)
    found = hidden(share, share, 1)
    order = np.random.default_rng(2).permutation(200)
    other = calibrate(HeldOut(found.distributions[order][:, ::-1], 1 - found.labels[order]))
    first = calibrate(found)
    assert (other.shift, other.slope) == pytest.approx((first.shift, first.slope), abs=1e-4)


# ---- of a model


def labelled(true, seed, part=0.15):
    """Return labels of a part of each class."""
    y = np.full(len(true), -1)
    rows = np.arange(len(true))
    known, _ = train_test_split(rows, train_size=part, stratify=true, random_state=seed)
    y[known] = true[known]
    return y


@pytest.mark.parametrize(
    ("name", "seeds"), [("iris", 6), ("wine", 6), ("breast cancer", 4), ("digits", 2)]
)
def test_of_so_many_rows_so_many_are_right(name, seeds):
    X, true, _ = tables.real(name)
    confidence, right = [], []
    for seed in range(seeds):
        y = labelled(true, seed)
        model = OTPropagation().fit(X, y)
        confidence.append(model.confidence_[y < 0])
        right.append((model.transduction_ == true)[y < 0])
    assert gap(np.concatenate(confidence), np.concatenate(right)) < 0.05


@pytest.mark.parametrize("geometry", ["graph", "euclidean"])
def test_confidence_tells_right_from_wrong_better_than_chance(geometry):
    X, true, _ = tables.blobs(400, 2, 3, seed=1, spread=0.9)
    y = labelled(true, 0)
    model = OTPropagation(geometry=geometry).fit(X, y)
    right = (model.transduction_ == true)[y < 0]
    order = np.argsort(-model.confidence_[y < 0])
    kept = right[order[: int(0.9 * len(order))]]
    assert kept.mean() > right.mean() + 0.01


@pytest.mark.parametrize("geometry", ["graph", "euclidean"])
def test_a_model_learns_from_its_own_hidden_labels(geometry):
    X, _, y = tables.real("wine")
    model = OTPropagation(geometry=geometry).fit(X, y)
    assert model.calibration_.labels == (y >= 0).sum()
    opened = y < 0
    np.testing.assert_array_equal(
        model.confidence_[opened],
        model.calibration_.confidence(model.label_distributions_[opened]),
    )
    np.testing.assert_array_equal(model.confidence_[~opened], 1.0)
    np.testing.assert_array_equal(model.predict_confidence(X[opened]), model.confidence_[opened])
    batch = next(model.predict_batches([X[opened]]))
    np.testing.assert_array_equal(batch.confidence, model.confidence_[opened])


# ---- abstention

CLASSES = {
    "int": [3, 5, 8],
    "uint8": np.array([3, 5, 250], np.uint8),
    "float": [3.0, 5.0, 8.0],
    "str": ["ant", "bee", "cow"],
    "object": np.array(["ant", "bee", "cow"], object),
    "bool": [False, True],
}


def of_classes(kind):
    """Return overlapping groups, some of their labels in a kind, and the bound of abstention."""
    names = np.asarray(CLASSES[kind])
    X, _, y = tables.blobs(150, 2, len(names), seed=3, spread=0.9, known=0.3)
    return X, y >= 0, tables.rename(y, names), names


@pytest.mark.parametrize("geometry", ["graph", "euclidean"])
@pytest.mark.parametrize("kind", CLASSES)
def test_below_a_confidence_a_row_has_no_label_unless_it_was_given(kind, geometry):
    X, known, y, names = of_classes(kind)
    free = OTPropagation(geometry=geometry).fit(X, y)
    bound = float(np.quantile(free.confidence_[~known], 0.3))
    model = OTPropagation(geometry=geometry, abstain_below=bound).fit(X, y)
    marker = -1 if names.dtype.kind in "iuf" else None
    unsure = ~known & (free.confidence_ < bound)
    assert 0.05 < unsure[~known].mean() < 0.5
    np.testing.assert_array_equal(model.transduction_[~unsure], free.transduction_[~unsure])
    assert all(label == marker for label in model.transduction_[unsure].tolist())
    assert model.transduction_[known].tolist() == y[known].tolist()
    np.testing.assert_array_equal(model.confidence_, free.confidence_)
    # Marked as unlabelled rows are in `fit`: what comes out may go in again.
    again = OTPropagation(geometry=geometry).fit(X, model.transduction_)
    assert (again.round_[unsure] != 0).all()
    assert not again.round_[~unsure].any()
    # Predictions agree.
    found = model.predict(X[~known])
    assert found.dtype == model.transduction_.dtype
    assert found.tolist() == model.transduction_[~known].tolist()
    assert next(model.predict_batches([X[~known]])).labels.tolist() == found.tolist()


def test_a_bound_of_nothing_leaves_no_row_out_and_one_of_all_leaves_out_all():
    X, _, y = tables.real("iris")
    free = OTPropagation().fit(X, y)
    low = OTPropagation(abstain_below=1 / 3).fit(X, y)
    np.testing.assert_array_equal(low.transduction_, free.transduction_)
    high = OTPropagation(abstain_below=1.0).fit(X, y)
    np.testing.assert_array_equal(high.transduction_, y)
    np.testing.assert_array_equal(high.predict(X[y < 0]), -1)


def test_a_row_without_label_counts_as_wrong():
    X, true, y = tables.blobs(150, 2, 3, seed=3, spread=0.9, known=0.3)
    free = OTPropagation().fit(X, y)
    bound = float(np.median(free.confidence_[y < 0]))
    model = OTPropagation(abstain_below=bound).fit(X, y)
    opened = y < 0
    kept = free.confidence_[opened] >= bound
    right = (free.transduction_ == true)[opened]
    assert model.score(X[opened], true[opened]) == (right & kept).mean()
    assert right[kept].mean() > right.mean()

"""LabelMendClassifier as users of scikit-learn and cleanlab use it."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelmend import InputError, LabelMendClassifier
from labelmend.faces.cross_fit import BaseLearner, corrected_targets, cross_fit, judged, refitted, weight_parameter
from labelmend.faces.label_issues import class_labels, flagged_rows

pandas = pytest.importorskip("pandas")

SHORT = {"net": "linear", "epochs": 2, "options": {"settings": {"folds": 3, "rounds": 1}}}
"""Our own learner in a tenth of a second: what is checked is its face."""
OWN = LabelMendClassifier(**SHORT, random_state=0)
BASE = LabelMendClassifier(LogisticRegression(max_iter=500), cv=2, repeats=1, random_state=0)
THREE = {"settings": {"folds": 3}}
ALONE = {"method": "mend", "settings": {"folds": 1}}
NAMES = np.array(["setosa", "versicolor", "virginica"])
CANNOT: dict[str, str] = {}
"""Checks of scikit-learn that cannot pass, by name, with the reason: none."""


@parametrize_with_checks([OWN], expected_failed_checks=lambda estimator: CANNOT)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # scikit-learn's own data
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([BASE], expected_failed_checks=lambda estimator: CANNOT)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_scikit_learn_accepts_the_estimator_around_another_one(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def flowers():
    """Iris with 15 % of the labels moved to the next class, and which these are."""
    x, truth = load_iris(return_X_y=True)
    wrong = np.random.default_rng(0).random(len(x)) < 0.15
    return x, np.where(wrong, (truth + 1) % 3, truth), wrong


@pytest.fixture(scope="module")
def frame(flowers):
    """The same as a table with a category, gaps and an index of its own."""
    x, _, _ = flowers
    found = pandas.DataFrame(x, columns=list("abcd"), index=[f"flower {row}" for row in range(len(x))])
    found.loc[found.index[::9], "a"] = np.nan
    return found.assign(colour=np.where(x[:, 2] < 2, "red", "blue"))


def test_a_wrapped_classifier_finds_wrong_labels(flowers):
    x, given, wrong = flowers
    forest = RandomForestClassifier(20, min_samples_leaf=3)
    found = LabelMendClassifier(forest, repeats=1, random_state=1).fit(x, given)
    assert roc_auc_score(wrong, found.label_issues_["noisy_probability"]) > 0.98
    assert f1_score(wrong, found.get_label_issues()["is_label_issue"]) > 0.85
    assert found.finding_ == "wrong labels found"
    assert abs(found.noise_rate_ - wrong.mean()) < 0.04
    assert found.noise_interval_[0] <= wrong.mean() <= found.noise_interval_[1]
    assert np.allclose(found.transition_.sum(axis=1), 1)


def test_a_wrapped_classifier_learns_better_than_alone(flowers):
    x, given, _ = flowers
    tree, truth = DecisionTreeClassifier(min_samples_leaf=3), load_iris().target
    found = LabelMendClassifier(tree, repeats=1, random_state=0).fit(x, given)
    assert found.score(x, truth) >= tree.fit(x, given).score(x, truth) + 0.02


def test_the_own_learner_finds_wrong_labels_and_learns_right_ones(flowers):
    x, given, wrong = flowers
    found = LabelMendClassifier(net="linear", epochs=16, options=THREE, random_state=0).fit(x, NAMES[given])
    assert roc_auc_score(wrong, 1 - found.get_label_issues()["label_quality"]) > 0.95
    assert found.score(x, NAMES[load_iris().target]) > 0.85
    assert found.finding_ == "wrong labels found"
    assert list(found.classes_) == list(NAMES)


@pytest.mark.parametrize("estimator", [OWN, BASE], ids=["own", "base"])
def test_a_frame_has_the_columns_types_and_rows_of_cleanlab(estimator, flowers):
    x, given, _ = flowers
    issues = clone(estimator).find_label_issues(x, labels=given)
    types = {"is_label_issue": "bool", "label_quality": "float64", "given_label": "int64", "predicted_label": "int64"}
    assert issues.dtypes.astype(str).to_dict() == types
    assert (issues["given_label"] == given).all()
    assert (issues["predicted_label"] != issues["given_label"])[issues["is_label_issue"]].all()
    assert issues["label_quality"].between(0, 1).all()
    assert issues.index.equals(pandas.RangeIndex(len(x)))


def test_the_names_of_clean_learning_mean_what_they_mean_there(flowers):
    x, given, _ = flowers
    theirs = LabelMendClassifier(clf=LogisticRegression(max_iter=500), seed=0, cv_n_folds=5, repeats=1)
    ours = LabelMendClassifier(LogisticRegression(max_iter=500), random_state=0, cv=5, repeats=1)
    issues = theirs.find_label_issues(X=x, labels=given)
    pandas.testing.assert_frame_equal(issues, ours.fit(x, y=given).get_label_issues())
    pandas.testing.assert_frame_equal(theirs.label_issues_df, issues)
    assert (theirs.label_issues_mask == issues["is_label_issue"]).all()
    assert np.allclose(ours.noise_matrix.sum(axis=0), 1)
    with pytest.raises(NotFittedError):
        theirs.predict(x)  # as there, looking for issues fits no model
    theirs.fit(x, labels=given, label_issues=issues)
    assert theirs.score(x, given) > 0.7
    theirs.save_space()
    with pytest.raises(NotFittedError, match="find_label_issues or fit"):
        theirs.get_label_issues()
    assert theirs.predict(x[:2]).tolist() == [0, 0]


def test_names_given_twice_are_refused(flowers):
    x, given, _ = flowers
    with pytest.raises(InputError, match="clf are two names"):
        LabelMendClassifier(LogisticRegression(), clf=LogisticRegression()).fit(x, given)
    with pytest.raises(InputError, match="labels are two names"):
        OWN.fit(x, given, labels=given)


@pytest.mark.parametrize("how", ["frame", "mask", "positions"])
def test_label_issues_are_left_out_of_training(how, flowers):
    x, given, wrong = flowers
    issues = {"frame": pandas.DataFrame({"is_label_issue": wrong}), "mask": wrong, "positions": np.flatnonzero(wrong)}
    found = LabelMendClassifier(LogisticRegression(max_iter=500)).fit(x, given, label_issues=issues[how])
    rest = LogisticRegression(max_iter=500).fit(x[~wrong], given[~wrong])
    assert np.allclose(found.predict_proba(x), rest.predict_proba(x))
    assert found.noise_rate_ == wrong.mean()
    assert list(found.get_label_issues()["is_label_issue"]) == list(wrong)


def test_the_own_learner_leaves_rows_of_any_sparse_format_out(flowers):
    x, given, wrong = flowers
    found = clone(OWN).fit(sparse.coo_array(x), given, label_issues=wrong)
    assert len(found.get_label_issues()) == len(x)
    assert found.score(x, load_iris().target) > 0.5


def test_label_issues_of_other_rows_are_refused(flowers):
    _, given, wrong = flowers
    shuffled = pandas.DataFrame({"is_label_issue": wrong, "given_label": given[::-1]})
    with pytest.raises(InputError, match="sorted or filtered"):
        flagged_rows(shuffled, given)
    with pytest.raises(InputError, match="positions below 150"):
        flagged_rows(np.array([150]), given)


def test_probabilities_of_ones_own_are_judged_without_samples(flowers):
    _, given, wrong = flowers
    probabilities = 0.9 * np.eye(3)[load_iris().target] + 0.1 / 3
    issues = LabelMendClassifier().find_label_issues(labels=given, pred_probs=probabilities)
    assert (issues["is_label_issue"] == wrong).all()
    with pytest.raises(InputError, match=r"must be \(150, 3\)"):
        LabelMendClassifier().find_label_issues(labels=given, pred_probs=probabilities[:, :2])


@pytest.mark.parametrize(
    ("estimator", "labels"),
    [
        (OWN, np.array(["no", "yes"])),
        (OWN, np.array([False, True])),
        (BASE, np.array([1.0, 2.0])),
        (BASE, np.array([-1, 7])),
    ],
    ids=["texts", "truth values", "floats", "numbers with gaps"],
)
def test_labels_keep_their_values(estimator, labels, flowers):
    x, given, _ = flowers
    found = clone(estimator).fit(x, labels[(given == 0).astype(int)])
    assert found.classes_.dtype == labels.dtype
    assert set(found.predict(x)) == set(labels)
    assert set(found.label_issues_["given"]) == set(labels)
    assert found.decision_function(x).shape == (len(x),)


def test_labels_of_pandas_may_be_categories_texts_or_nullable_numbers():
    for values in (["a", "b", "a"], [3, 4, 3]):
        for kind in ("category", "object", "string" if isinstance(values[0], str) else "Int64"):
            classes, labels = class_labels(pandas.Series(values, dtype=kind), 3)
            assert classes.tolist() == values[:2]
            assert labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["cat"] * 4, "of one class, 'cat'"),
        (["cat", "dog"], "4 samples, but there are 2 labels"),
        (["cat", None, "dog", "dog"], "1 labels are missing.*row 1"),
        ([0, 1, np.nan, np.nan], "2 labels are missing.*row 2"),
        (pandas.Series([0, 1, None, 1], dtype="Int64"), "row 2"),
        (np.array(["a", 1, "a", 1], dtype=object), "several types, int and str"),
        ([0.5, 1.5, 2.25, 3.1], "continuous"),
    ],
)
def test_labels_that_are_none_are_refused_by_what_is_wrong_with_them(y, said):
    with pytest.raises(ValueError, match=said):
        OWN.fit(np.zeros((4, 2)), y)


def test_a_table_keeps_its_index_and_its_columns(frame, flowers):
    found = clone(OWN).fit(frame, NAMES[flowers[1]])
    assert found.label_issues_.index.equals(frame.index)
    assert found.feature_names_in_.tolist() == [*"abcd", "colour"]
    assert found.n_features_in_ == 5
    assert found.predict_proba(frame[:7]).shape == (7, 3)
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- a"):
        found.predict(frame.drop(columns="a"))
    with pytest.warns(UserWarning, match="'green'"):
        found.predict(frame.assign(colour="green"))


def test_gaps_in_an_array_are_named_and_a_table_fills_them(flowers):
    x, given, _ = flowers
    holed = x.copy()
    holed[17, 2] = np.nan
    with pytest.raises(InputError, match="NaN, first in row 17; give a DataFrame"):
        clone(OWN).fit(holed, given)
    assert clone(OWN).fit(pandas.DataFrame(holed), given).score(pandas.DataFrame(holed), given) > 0.5


def test_texts_are_learned_by_either_way(flowers):
    _, given, _ = flowers
    words = ("good fine nice", "bad awful poor", "cold warm mild")
    texts = [f"{words[label]} number {row % 7}" for row, label in enumerate(load_iris().target)]
    for estimator in (OWN, LabelMendClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), repeats=1)):
        found = clone(estimator).fit(texts, NAMES[given])
        assert found.predict(texts).tolist() == NAMES[load_iris().target].tolist()
        assert found.predict(pandas.Series(texts[:2])).tolist() == ["setosa"] * 2
        assert not hasattr(found, "n_features_in_")
    with pytest.raises(InputError, match="single str"):
        clone(OWN).fit("a text", ["a"])
    with pytest.raises(InputError, match="rows of numbers, but the classifier was fitted on texts"):
        clone(OWN).fit(texts, given).predict(np.zeros((2, 4)))


@pytest.mark.parametrize("channels", [(), (1,), (3,)], ids=["grey", "one channel", "colour"])
def test_images_are_arrays_with_or_without_channels(channels):
    pixels, digit = load_digits(return_X_y=True)
    images = (pixels[:90].reshape(-1, 8, 8, *(1 for _ in channels)) * 15).astype(np.uint8)
    images = np.broadcast_to(images, (90, 8, 8, *channels))
    found = LabelMendClassifier(net="convnet", epochs=1, options=ALONE, random_state=0).fit(images, digit[:90])
    assert found.predict_proba(images[:4]).shape == (4, 10)
    assert len(found.label_issues_) == 90


def test_many_sparse_columns_are_reduced_and_never_made_dense(monkeypatch):
    rng, labels = np.random.default_rng(0), np.arange(400) % 2
    rows = sparse.random_array((400, 20_000), density=0.002, rng=rng, format="lil")
    rows[labels == 1, 7] = 1.0
    rows = rows.tocsr()
    monkeypatch.setattr(sparse.csr_array, "toarray", lambda *unused: pytest.fail("the rows became dense"))
    found = clone(OWN).fit(rows, labels)
    assert found.model_.reduction.shape == (256, 20_000)
    assert found.n_features_in_ == 20_000
    assert found.score(rows, labels) > 0.9


def test_a_row_is_predicted_alike_alone_and_among_others(flowers):
    x, given, _ = flowers
    options = {"method": "mend", "settings": {"folds": 3, "rounds": 1}}
    found = clone(OWN).set_params(net="mlp", options=options).fit(x, given)
    alone = np.concatenate([found.predict_proba(row[None]) for row in x[:20]])
    assert np.allclose(alone, found.predict_proba(x)[:20], rtol=0, atol=1e-12)


def test_the_same_state_gives_the_same_model_and_the_global_generators_stay(flowers):
    x, given, _ = flowers
    np.random.seed(5)
    before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    for estimator in (OWN, BASE):
        one, two = (clone(estimator).fit(x, given) for _ in range(2))
        assert (one.predict_proba(x) == two.predict_proba(x)).all()
        assert one.label_issues_.equals(two.label_issues_)
    other = clone(OWN).set_params(random_state=1).fit(x, given)
    assert (other.predict_proba(x) != clone(OWN).fit(x, given).predict_proba(x)).any()
    assert (np.random.get_state()[1] == before).all()
    assert (torch.get_rng_state() == torch_before).all()


def test_parts_of_a_wrapped_classifier_without_a_state_get_one_and_others_keep_theirs(flowers):
    x, given, _ = flowers
    found = LabelMendClassifier(
        make_pipeline(StandardScaler(), DecisionTreeClassifier()), cv=2, repeats=1, random_state=3
    )
    assert found.fit(x, given).estimator_[-1].random_state is not None
    assert found.base_estimator[-1].random_state is None
    kept = LabelMendClassifier(DecisionTreeClassifier(random_state=8), cv=2, repeats=1, random_state=3).fit(x, given)
    assert kept.estimator_.random_state == 8


def test_nothing_is_written_and_nothing_is_printed(flowers, tmp_path, monkeypatch, capfd):
    x, given, _ = flowers
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    images = [np.full((9 + row % 2, 9, 3), 60 * (row % 2), np.uint8) for row in range(12)]
    for estimator, samples, labels in ((OWN, x, given), (BASE, x, given)):
        clone(estimator).fit(samples, labels).predict(samples)
    LabelMendClassifier(net="convnet", epochs=1, options=ALONE).fit(images, np.arange(12) % 2).predict(images)
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_progress_is_shown_when_it_is_asked_for(flowers, capfd):
    x, given, _ = flowers
    for estimator, said in ((OWN, "epoch 2/2"), (BASE, "of 2")):
        clone(estimator).set_params(verbose=1).fit(x, given)
        assert said in capfd.readouterr().err


def test_joblib_stores_no_class_of_torch_and_gets_the_same_predictions(frame, flowers, tmp_path):
    joblib = pytest.importorskip("joblib")
    found = clone(OWN).fit(frame, NAMES[flowers[1]])
    before = found.predict_proba(frame)
    joblib.dump(found, tmp_path / "model.joblib")
    assert b"torch" not in (tmp_path / "model.joblib").read_bytes()
    assert (joblib.load(tmp_path / "model.joblib").predict_proba(frame) == before).all()


def test_grids_and_pipelines_reach_the_parameters(flowers):
    x, given, _ = flowers
    grid = GridSearchCV(clone(OWN), {"epochs": [1]}, cv=2, refit=False, error_score="raise").fit(x, NAMES[given])
    assert grid.best_score_ > 0.5
    grid = GridSearchCV(clone(BASE), {"base_estimator__C": [0.1, 1.0]}, cv=2).fit(x, given)
    assert grid.best_estimator_.estimator_.C in (0.1, 1.0)
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(OWN))
    scaled.fit(pandas.DataFrame(x, columns=list("abcd")), given)
    assert scaled[-1].feature_names_in_.tolist() == list("abcd")


def test_weights_of_samples_count_for_a_classifier_that_takes_them_and_are_refused_else(flowers):
    x, given, wrong = flowers
    weights = np.where(wrong, 1e-6, 1.0)
    heavy = clone(BASE).fit(x, given, sample_weight=weights)
    rest = LogisticRegression(max_iter=500).fit(x[~wrong], given[~wrong])
    assert np.abs(heavy.predict_proba(x) - rest.predict_proba(x)).mean() < 0.05
    for estimator in (OWN, LabelMendClassifier(KNeighborsClassifier())):
        with pytest.raises(InputError, match="takes no sample_weight"):
            clone(estimator).fit(x, given, sample_weight=weights)
    assert clone(OWN).fit(x, given, sample_weight=None).score(x, given) > 0.5


def test_tags_are_those_of_the_classifier_that_learns():
    assert get_tags(OWN).input_tags.sparse
    assert not get_tags(OWN).input_tags.allow_nan
    assert get_tags(LabelMendClassifier(DecisionTreeClassifier())).input_tags.allow_nan
    assert not hasattr(LabelMendClassifier(DecisionTreeClassifier()), "decision_function")
    assert hasattr(BASE, "decision_function")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"base_estimator": LinearSVC()}, r"LinearSVC has no predict_proba.*CalibratedClassifierCV\(LinearSVC\(\)\)"),
        ({"base_estimator": LogisticRegression}, r"give an object: LogisticRegression\(\)"),
        ({"base_estimator": "logistic"}, "is a str"),
        ({"base_estimator": LogisticRegression(), "cv": 1}, "cv is 1"),
        ({"base_estimator": LogisticRegression(), "repeats": 0}, "repeats is 0"),
        ({"net": "lineer"}, "did you mean 'linear'"),
        ({"options": {"out": "runs/a"}}, "unknown option of LabelMendClassifier 'out'"),
    ],
)
def test_parameters_that_cannot_be_are_refused_when_fitting(parameters, said, flowers):
    with pytest.raises(InputError, match=said):
        LabelMendClassifier(**parameters).fit(*flowers[:2])


class Watched(DecisionTreeClassifier):
    """A tree that notes which rows it learned, by their first column, and which of these it predicted."""

    seen: list[tuple[set[float], set[float]]] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        self.learned = {float(value) for value in X[:, 0]}
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):  # noqa: N803
        Watched.seen.append((self.learned, {float(value) for value in X[:, 0]}))
        return super().predict_proba(X)


@pytest.mark.parametrize(("folds", "fits"), [(5, 5), (3, 6), (7, 14), (13, 26)])
def test_no_copy_predicts_what_it_learned_and_all_samples_are_predicted_once_a_round(folds, fits):
    rng, labels = np.random.default_rng(0), np.arange(90) % 3
    rows = np.column_stack([np.arange(90), labels[:, None] + rng.normal(size=(90, 2))])
    Watched.seen = []
    learner = BaseLearner(Watched(max_depth=2), rows, np.arange(3))
    found = cross_fit(learner, labels, folds=folds, repeats=1, rng=np.random.RandomState(0))
    assert len(Watched.seen) == fits
    assert all(not learned & predicted for learned, predicted in Watched.seen)
    last = [row for _, predicted in Watched.seen[-folds:] for row in predicted]
    assert sorted(last) == list(range(90))
    assert np.allclose(found.sum(axis=1), 1)


def test_in_the_second_round_no_label_is_corrected_by_a_copy_that_learned_what_is_judged(monkeypatch):
    """By marking: each copy predicts who it left out, and so tells who corrected each label."""
    labels = np.arange(70) % 2
    rows, corrections = np.arange(70)[:, None], []

    class Marked(BaseLearner):
        def fitted(self, rows, labels, weights=None):
            return set(np.setdiff1d(np.arange(70), rows).tolist())

        def taught(self, rows, targets):
            corrections.append((rows, targets))
            return set(np.setdiff1d(np.arange(70), rows).tolist())

        def predicted(self, fitted, rows):
            assert set(rows.tolist()) <= fitted
            marks.append(fitted)
            return np.full((len(rows), 2), len(marks) / 1000)

    marks = []
    monkeypatch.setattr("labelmend.faces.cross_fit.corrected_targets", lambda labels, wrong, guessed: guessed[:, 0])
    cross_fit(Marked(None, rows, np.arange(2)), labels, folds=7, repeats=1, rng=np.random.RandomState(0))
    for others, guessed in corrections:
        judged_rows = set(np.setdiff1d(np.arange(70), others).tolist())
        for row, mark in zip(others.tolist(), guessed, strict=True):
            left_out = marks[round(mark * 1000) - 1]
            assert row in left_out
            assert judged_rows <= left_out


def test_targets_are_the_given_label_and_the_prediction_beside_it_by_p_wrong():
    targets = corrected_targets(np.array([0, 1, 2]), np.array([0.0, 0.25, 1.0]), np.array([[0.1, 0.2, 0.7]] * 3))
    assert np.allclose(targets, [[1, 0, 0], [0.25 * 0.1 / 0.8, 0.75, 0.25 * 0.7 / 0.8], [1 / 3, 2 / 3, 0]])
    assert corrected_targets(np.array([0]), np.array([0.9]), np.array([[1.0, 0.0]])).tolist() == [[1.0, 0.0]]


def test_soft_targets_are_weighted_rows_and_without_weights_the_largest_share(monkeypatch):
    seen = []
    rows, targets = np.arange(3)[:, None], np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])
    monkeypatch.setattr(
        LogisticRegression, "fit", lambda self, x, y, sample_weight=None: seen.append((x, y, sample_weight))
    )
    BaseLearner(LogisticRegression(), rows, np.array(["a", "b"])).taught(np.arange(3), targets)
    taken, labels, weights = seen.pop()
    assert taken[:, 0].tolist() == [0, 1, 1, 2]
    assert labels.tolist() == ["a", "a", "b", "b"]
    assert weights.tolist() == [1, 0.3, 0.7, 1]
    monkeypatch.setattr(KNeighborsClassifier, "fit", lambda self, x, y: seen.append((x, y)))
    BaseLearner(KNeighborsClassifier(), rows, np.array(["a", "b"])).taught(np.arange(3), targets)
    assert seen.pop()[1].tolist() == ["a", "b", "b"]


def test_weights_reach_the_last_step_of_a_pipeline():
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    assert weight_parameter(make_pipeline(StandardScaler(), inner)) == "pipeline__logisticregression__sample_weight"
    assert weight_parameter(make_pipeline(StandardScaler(), KNeighborsClassifier())) is None


def test_clean_labels_are_learned_as_they_are():
    x, truth = load_iris(return_X_y=True)
    learner = BaseLearner(LogisticRegression(max_iter=500), x, np.arange(3))
    probabilities = 0.98 * np.eye(3)[truth] + 0.02 / 3
    fitted = refitted(learner, truth, judged(truth, probabilities), probabilities)
    assert np.allclose(fitted.coef_, LogisticRegression(max_iter=500).fit(x, truth).coef_)


def test_a_class_of_one_sample_is_kept_and_not_doubted(flowers):
    x, given, _ = flowers
    labels = np.where(np.arange(len(given)) == 3, 9, given)
    found = clone(BASE).fit(x, labels)
    assert found.classes_.tolist() == [0, 1, 2, 9]
    assert found.label_issues_["noisy_probability"][3] == 0
    assert clone(OWN).fit(x, labels).predict_proba(x).shape == (150, 4)

"""Points leave as arrays, or as frames with the names of their columns where a frame is asked for."""

import numpy as np
import pytest

from fogline import IntegralSampler, PrivateDensity, PrivateGaussianMixture, release

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
VISITS = pd.DataFrame({"stay": RNG.gamma(2.0, 3.0, 2000), "age": RNG.normal(50, 9, 2000)})
BOUNDS = {"age": (0, 100), "stay": (0, 60)}


@pytest.fixture(scope="module")
def shape():
    return release(VISITS, columns=["age", "stay"], bounds=BOUNDS, epsilon=2.0)


def test_sample_is_an_array_and_by_wish_a_frame_of_the_same_points(shape):
    points = shape.sample(5, random_state=0)
    assert isinstance(points, np.ndarray)
    frame = shape.sample(5, random_state=0, output="pandas")
    assert frame.columns.tolist() == ["age", "stay"]
    assert np.array_equal(frame.to_numpy(), points)
    polars = pytest.importorskip("polars")
    assert shape.sample(5, random_state=0, output="polars").equals(polars.DataFrame(points, schema=["age", "stay"]))


def test_what_comes_out_does_not_depend_on_where_the_release_is_from(shape):
    opened = PrivateDensity.from_bytes(shape.to_fog())
    assert type(opened.sample(2)) is type(shape.sample(2))
    assert opened.sample(2, random_state=1, output="pandas").equals(shape.sample(2, random_state=1, output="pandas"))


def test_conditional_and_mixture_name_their_columns(shape):
    assert shape.given(age=(40, 60)).sample(3, output="pandas").columns.tolist() == ["stay"]
    mixture = PrivateGaussianMixture(n_components=1).read(shape)
    assert mixture.sample(3, output="pandas").columns.tolist() == ["age", "stay"]
    assert shape.sample(3, bandwidth=shape.bandwidth_range[1], output="pandas").shape == (3, 2)


def test_unknown_output_is_refused_before_a_draw_is_paid(shape):
    with pytest.raises(ValueError, match="output must be None, 'pandas' or 'polars', got 'arrow'"):
        shape.sample(3, output="arrow")
    sampler = IntegralSampler(epsilon=0.5, max_samples=3, base="uniform", bounds=BOUNDS).fit(VISITS)
    with pytest.raises(ValueError, match="output"):
        sampler.sample(1, output="arrow")
    assert sampler.draws_left_ == 3
    assert sampler.sample(3, output="pandas").columns.tolist() == ["stay", "age"]


def test_points_in_a_frame_are_read_by_name(shape):
    few = VISITS.head(4)
    assert np.array_equal(shape.pdf(few), shape.pdf(few[["age", "stay"]].to_numpy()))
    assert np.array_equal(shape.pdf(few.assign(cost=1.0)), shape.pdf(few))
    with pytest.raises(ValueError, match="x has no column 'age': the release has age, stay"):
        shape.pdf(few[["stay"]])
